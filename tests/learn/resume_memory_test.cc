// A run that was stopped, under another memory limit: it resumes with the plan that it began with, and ends with the
// same bits, or it is refused in sizes that people write.
#include <gtest/gtest.h>

#include "learn/resume.h"
#include "learn/tune.h"
#include "support/errors.h"
#include "support/learning.h"
#include "support/tight_memory.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

constexpr uint64_t kMuch = uint64_t{1} << 30;

// Rows that are streamed under `little_`, and stay in memory under kMuch.
class ResumeUnderAnotherLimit : public testing::Test {
 protected:
  ResumeUnderAnotherLimit() {
    options_.inputs = {data_.store.path()};
    options_.loss = Hinge{};
    options_.solve = {.method = Dual{.inner = 1}, .tolerance = 1e-4, .max_passes = 4};
    const Problem problem = problem_for(data_.store, "hinge", 1);
    little_ = streaming_memory(problem) / 1024 * 1024;
  }
  Context context_with_checkpoint(uint64_t memory) const { return context_with(memory, folder_ / "STATE"); }
  TrainReport whole(uint64_t memory) const { return train(options_, context_with(memory), {}, false); }
  // At the end of its first block.
  void stop_early(uint64_t memory) const {
    const std::atomic<bool> stop = true;
    Context context = context_with_checkpoint(memory);
    context.stop = &stop;
    expect_error(ErrorKind::interrupted, {"the same command resumes"}, [&] { train(options_, context, {}, false); });
  }
  TrainReport resumed(Context context) {
    said_.clear();
    TrainObserver observer;
    observer.say = [&](const std::string& sentence) { said_ += plain_text(sentence) + "\n"; };
    return train(options_, context, observer, false);
  }

  const ManyChunks data_{20};
  const MemoryFolder folder_;  // checkpoints are written at every block
  TrainOptions options_;
  uint64_t little_ = 0;
  std::string said_;
};

TEST_F(ResumeUnderAnotherLimit, WithMoreMemoryHasTheBitsOfTheWholeRun) {
  const TrainReport expected = whole(little_);
  ASSERT_EQ(expected.summary.plan.rows, RowsHeld::streamed);
  ASSERT_EQ(whole(kMuch).summary.plan.rows, RowsHeld::decoded);
  for (const uint64_t memory : {little_, little_ + 1024, 2 * little_, kMuch}) {
    stop_early(little_);
    Context context = context_with_checkpoint(memory);
    context.team = 3;
    const TrainReport report = resumed(context);
    EXPECT_EQ(report.model.weights, expected.model.weights) << memory;
    EXPECT_EQ(report.summary.passes, expected.summary.passes);
    EXPECT_EQ(report.summary.plan.rows, RowsHeld::streamed);
    EXPECT_EQ(contains(said_, "resumes with its plan"), memory != little_) << said_;
    std::filesystem::remove(folder_ / "STATE");
  }
}

// Stopped again under the other limit, it resumes under the first, and under any that is larger.
TEST_F(ResumeUnderAnotherLimit, HasTheSameBitsWhateverTheLimitsInTurn) {
  const TrainReport expected = whole(little_);
  const std::vector<uint64_t> limits = {little_, 4 * little_, kMuch, little_, 2 * little_};
  TrainReport report;
  size_t life = 0;
  const int stops = with_stops(context_with_checkpoint(little_), {StopAt::block},
                               [&](Context context, const TrainObserver& observer) {
                                 context.memory_bytes = limits[life++ % limits.size()];
                                 report = train(options_, context, observer, false);
                               });
  EXPECT_GT(stops, 5);
  EXPECT_EQ(report.model.weights, expected.model.weights);
}

TEST_F(ResumeUnderAnotherLimit, WithLessMemoryIsAllowedIfThePlanIsTheSame) {
  const TrainReport expected = whole(kMuch);
  ASSERT_EQ(expected.summary.plan.rows, RowsHeld::decoded);
  const uint64_t enough = kMuch / 8;
  for (const uint64_t next : {enough, kMuch}) {
    stop_early(kMuch);
    stop_early(enough);  // and once more, under either
    const TrainReport report = resumed(context_with_checkpoint(next));
    EXPECT_EQ(report.model.weights, expected.model.weights);
    EXPECT_EQ(report.summary.passes, expected.summary.passes);
    std::filesystem::remove(folder_ / "STATE");
  }
}

TEST_F(ResumeUnderAnotherLimit, WithTooLittleMemoryIsRefusedInSizesThatPeopleWrite) {
  stop_early(kMuch);
  const std::string now = SizeText(little_).show();
  ASSERT_EQ(now.back(), 'K');
  expect_error(ErrorKind::usage,
               {"a run whose plan needs more memory", "memory: 1G then, " + now + " now", "give memory 1G or more",
                "start over with fresh"},
               [&] { resumed(context_with_checkpoint(little_)); });
  // So little that nothing could be trained: what would be enough for another run is not enough for this one.
  expect_error(ErrorKind::memory,
               {"training needs ", "STATE' is a checkpoint of a run that began with memory 1G", "give memory 1024M",
                "start over with fresh"},
               [&] { resumed(context_with_checkpoint(1 << 20)); });
  options_.cost = 7;
  expect_error(ErrorKind::usage, {"a checkpoint of another run", "cost: 1 then, 7 now", "memory: 1G then, "},
               [&] { resumed(context_with_checkpoint(little_)); });
}

TEST_F(ResumeUnderAnotherLimit, StartsOverWithFresh) {
  stop_early(kMuch);
  options_.fresh = true;
  EXPECT_EQ(resumed(context_with_checkpoint(little_)).model.weights, whole(little_).model.weights);
}

// Classes that did not fit in memory together still come one group after another.
TEST_F(ResumeUnderAnotherLimit, GroupsOfClassesHaveTheSameBits) {
  pack_rows(class_rows(300, 8, 4, 1), folder_ / "classes", small_options());
  options_.inputs = {folder_ / "classes"};
  const Store store = Store::open(folder_ / "classes");
  const Problem problem = make_problem(store, options_, choose_classes(store.info(), options_));
  const uint64_t memory = memory_for_tasks(problem, options_.solve, 3, folder_ / "STATE");
  const auto columns_of = [&](const TrainReport& report) {
    std::vector<std::vector<float>> columns;
    for (size_t i = 0; i < report.columns.size(); ++i) {
      columns.emplace_back(report.columns.rows());
      report.columns.read(i, 0, columns.back());
    }
    return columns;
  };
  const TrainReport expected = train(options_, context_with(memory, folder_ / "OTHER"), {}, false);
  ASSERT_GT(expected.groups, 1U);
  ASSERT_EQ(whole(kMuch).groups, 1U);
  TrainReport report;
  size_t life = 0;
  const std::vector<uint64_t> limits = {memory, kMuch, 2 * memory};
  const int stops =
      with_stops(context_with_checkpoint(memory), {StopAt::block}, [&](Context context, const TrainObserver& observer) {
        context.memory_bytes = limits[life++ % limits.size()];
        report = train(options_, context, observer, false);
      });
  EXPECT_GT(stops, 5);
  EXPECT_EQ(report.groups, expected.groups);
  EXPECT_EQ(columns_of(report), columns_of(expected));
}

TEST_F(ResumeUnderAnotherLimit, CrossValidationHasTheSameNumbers) {
  const auto validated = [&](const Context& context, const TrainObserver& observer) {
    return cross_validate(options_, {.folds = 3}, context, observer);
  };
  const Problem problem = problem_for(data_.store, "hinge", 1);
  Problem folds = problem;
  folds.tasks.assign(3, problem.tasks[0]);
  const uint64_t memory = least_memory(folds, options_.solve.method) + HeldOutRows::bytes_for(data_.store) + 65536;
  const CrossValidation expected = validated(context_with(memory), {});
  ASSERT_NE(expected.summary.plan.rows, validated(context_with(kMuch), {}).summary.plan.rows);
  CrossValidation found;
  size_t life = 0;
  const std::vector<uint64_t> limits = {memory, 2 * memory, kMuch};
  const int stops =
      with_stops(context_with_checkpoint(memory), {StopAt::block}, [&](Context context, const TrainObserver& observer) {
        context.memory_bytes = limits[life++ % limits.size()];
        found = validated(context, observer);
      });
  EXPECT_GT(stops, 5);
  ASSERT_EQ(found.folds.size(), expected.folds.size());
  for (size_t i = 0; i < found.folds.size(); ++i) EXPECT_EQ(found.folds[i].auc, expected.folds[i].auc);
  for (size_t i = 0; i < found.folds.size(); ++i)
    EXPECT_EQ(found.summary.certificates[i].primal, expected.summary.certificates[i].primal);
}

TEST_F(ResumeUnderAnotherLimit, TuneHasTheSameNumbersAndSaysWithWhichMemory) {
  const Problem problem = problem_for(data_.store, "hinge", 1);
  Problem folds = problem;
  folds.tasks.assign(2, problem.tasks[0]);
  uint64_t memory = least_memory(folds, options_.solve.method) + 4 * HeldOutRows::bytes_for(data_.store) + (1 << 17);
  const auto tuned = [&](const Context& context, const TrainObserver& observer) {
    return tune(options_, {{.folds = 2}, parse_costs("0.1,1,10")}, context, observer, [](const TunedCost&) {});
  };
  const Tuning expected = tuned(context_with(memory), {});
  Tuning found;
  size_t life = 0;
  const std::vector<uint64_t> limits = {memory, kMuch, 2 * memory};
  const int stops =
      with_stops(context_with_checkpoint(memory), {StopAt::block}, [&](Context context, const TrainObserver& observer) {
        context.memory_bytes = limits[life++ % limits.size()];
        found = tuned(context, observer);
        EXPECT_EQ(found.memory_bytes, memory);
      });
  EXPECT_GT(stops, 5);
  EXPECT_EQ(found.fold_values, expected.fold_values);
  EXPECT_EQ(found.best, expected.best);
  ASSERT_EQ(found.start.size(), expected.start.size());
  EXPECT_EQ(found.start[0].weights, expected.start[0].weights);
  std::filesystem::remove(folder_ / "STATE.stages");
}

TEST_F(ResumeUnderAnotherLimit, TheTextOfAPlanTellsPlansApart) {
  const Problem problem = problem_for(data_.store, "hinge", 1);
  const Plan plan = make_plan(problem, options_.solve, context_with(little_));
  Plan other = plan;
  EXPECT_EQ(text_of(plan), text_of(other));
  other.window_bytes += 1;
  EXPECT_NE(text_of(plan), text_of(other));
  other = plan;
  other.add_part("more", 1);
  EXPECT_NE(text_of(plan), text_of(other));
  EXPECT_NE(text_of(plan), text_of(make_plan(problem, options_.solve, context_with(kMuch))));
}

}  // namespace
}  // namespace linblock
