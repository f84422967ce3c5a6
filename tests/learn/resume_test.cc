// A run that was stopped, through train: the same options go on, others are told what differs.
#include <gtest/gtest.h>

#include "learn/train.h"
#include "support/errors.h"
#include "support/packing.h"
#include "support/small_problems.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

class Resume : public testing::Test {
 protected:
  void SetUp() override {
    pack_rows(make_data(400, 8, 1).rows, folder_ / "store", small_options());
    options_.inputs = {folder_ / "store"};
    options_.loss = Hinge{};
    options_.solve = {.method = Dual{.inner = 1}, .tolerance = 1e-5, .max_passes = 5000};
    context_.checkpoint.path = folder_ / "STATE";
  }
  // At the end of its first block.
  void stop_early() {
    const std::atomic<bool> stop = true;
    Context context = context_;
    context.stop = &stop;
    expect_error(ErrorKind::interrupted, {"the same command resumes"}, [&] { train(options_, context, {}, false); });
    ASSERT_TRUE(std::filesystem::exists(folder_ / "STATE"));
  }
  TrainReport trained() {
    TrainObserver observer;
    observer.say = [&](const std::string& sentence) { said_ += sentence + "\n"; };
    return train(options_, context_, observer, false);
  }

  const Folder folder_;
  TrainOptions options_;
  Context context_;
  std::string said_;
};

TEST_F(Resume, GoesOnToTheSameModel) {
  Context without = context_;
  without.checkpoint.path.clear();
  const TrainReport whole = train(options_, without, {}, false);
  stop_early();
  const TrainReport resumed = trained();
  EXPECT_TRUE(contains(said_, "resuming from the checkpoint")) << said_;
  EXPECT_EQ(resumed.model.weights, whole.model.weights);
  EXPECT_EQ(resumed.summary.passes, whole.summary.passes);
}

TEST_F(Resume, OfOtherOptionsIsRefusedWithWhatDiffers) {
  stop_early();
  const std::vector<std::pair<std::function<void()>, std::string>> changes = {
      {[&] { options_.cost = 7; }, "cost: 1 then, 7 now"},
      {[&] { options_.bias = 2; }, "bias: none then, 2 now"},
      {[&] { options_.truncate = 1; }, "truncate: none then, 1 now"},
      {[&] { options_.loss = Logistic{}; }, "loss: hinge then, logistic now"},
      {[&] { options_.solve.tolerance = 0.5; }, "tolerance: 1e-05 then, 0.5 now"},
      {[&] { options_.solve.seed = 9; }, "seed: 1 then, 9 now"},
      {[&] {
         options_.class_weight.factors = {{1, 2.0}};
       },
       "class_weight:  then, 1=2 now"},
      {[&] { options_.solve.method = Dual{.inner = 3}; }, "inner: 1 then, 3 now"},
      {[&] { options_.solve.method = Dual{.schedule = Schedule::fixed, .inner = 1}; },
       "schedule: recomposed then, fixed now"}};
  const TrainOptions options = options_;
  const Context context = context_;
  for (const auto& [change, words] : changes) {
    options_ = options;
    context_ = context;
    change();
    expect_error(ErrorKind::usage, {"checkpoint of another run", words, "start over with fresh"}, [&] { trained(); });
  }
}

TEST_F(Resume, OfOtherDataIsRefused) {
  stop_early();
  append_rows(sample_rows(5, 3), folder_ / "store", small_options());
  expect_error(ErrorKind::usage, {"checkpoint of another run", "store: "}, [&] { trained(); });
}

TEST_F(Resume, FreshBeginsAnew) {
  stop_early();
  options_.cost = 7;
  options_.fresh = true;
  const TrainReport fresh = trained();
  EXPECT_FALSE(contains(said_, "going on")) << said_;
  std::filesystem::remove(folder_ / "STATE");
  EXPECT_EQ(fresh.model.weights, trained().model.weights);
}

// The number of threads and how often a checkpoint is written change no bits.
TEST_F(Resume, TakesAnotherNumberOfThreads) {
  Context without = context_;
  without.checkpoint.path.clear();
  const TrainReport whole = train(options_, without, {}, false);
  stop_early();
  context_.team = 3;
  context_.checkpoint.every_seconds = 0;
  EXPECT_EQ(trained().model.weights, whole.model.weights);
}

TEST_F(Resume, OfADamagedCheckpointIsRefusedAsDamaged) {
  stop_early();
  const std::string good = read_file(folder_ / "STATE");
  for (const size_t size : {size_t{0}, size_t{7}, good.size() / 2, good.size() - 1}) {
    write_file(folder_ / "STATE", good.substr(0, size));
    EXPECT_THAT([&] { trained(); }, fails_with(ErrorKind::damaged, "STATE' is damaged (start over with fresh)"))
        << size << " bytes";
  }
}

}  // namespace
}  // namespace linblock
