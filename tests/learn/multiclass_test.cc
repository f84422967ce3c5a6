// More classes than fit in memory together: groups of them, one after another, are the same model.
#include <gtest/gtest.h>

#include <sstream>

#include "learn/evaluate.h"
#include "learn/train.h"
#include "solve/solve.h"
#include "support/errors.h"
#include "support/memory_folder.h"
#include "support/packing.h"
#include "support/small_problems.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

constexpr int32_t kClasses = 105;
constexpr double kTolerance = 1e-4;

class Groups : public testing::Test {
 protected:
  void SetUp() override {
    // Features far apart, so that weights are what the memory goes to.
    Data data = make_classes(420, 40, kClasses, 1);
    for (OwnedRow& row : data.rows)
      for (uint32_t& index : row.index) index *= 100;
    pack_rows(data.rows, folder_ / "store", small_options());
    options_.inputs = {folder_ / "store"};
    options_.test = {folder_ / "store.svm"};
    options_.loss = SquaredHinge{};
    options_.cost = 0.5;
    options_.bias = 1;
    options_.solve = {.method = Dual{.inner = 1}, .tolerance = kTolerance, .max_passes = 5000};
    context_.checkpoint.path = folder_ / "STATE";
    context_.checkpoint.every_seconds = 1e9;
    context_.memory_bytes = memory_for(35);
  }
  // The least, about, in which so many tasks can be trained together.
  uint64_t memory_for(size_t tasks) const {
    uint64_t refused = 0;
    uint64_t enough = uint64_t{1} << 30;
    while (enough - refused > (4 << 10)) {
      const uint64_t middle = refused + (enough - refused) / 2;
      (groups_in(middle) <= (kClasses + tasks - 1) / tasks ? enough : refused) = middle;
    }
    return enough;
  }
  size_t groups_in(uint64_t memory_bytes) const {
    size_t groups = 1;
    TrainObserver observer;
    observer.say = [&](const std::string& sentence) {
      const size_t at = sentence.find("memory together: ");
      if (at != std::string::npos) groups = std::stoul(sentence.substr(at + 17));
    };
    Context context = context_;
    context.memory_bytes = memory_bytes;
    try {
      train(options_, context, observer, true);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::memory) << error.what();
      return kClasses + 1;
    }
    return groups;
  }
  static std::vector<float> column(const TrainReport& report, size_t number) {
    std::vector<float> weights(report.columns.rows());
    report.columns.read(number, 0, weights);
    return weights;
  }
  void forget() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      if (entry.path().filename().string().starts_with("STATE")) std::filesystem::remove(entry.path());
  }

  const MemoryFolder folder_;
  TrainOptions options_;
  Context context_;
};

TEST_F(Groups, AreWithinTheToleranceOfOneGroup) {
  Context large = context_;
  large.memory_bytes = uint64_t{1} << 30;
  const TrainReport one = train(options_, large, {}, false);
  EXPECT_EQ(one.groups, 1U);
  forget();
  const TrainReport several = train(options_, context_, {}, false);
  EXPECT_EQ(several.groups, 3U);
  ASSERT_EQ(several.summary.certificates.size(), static_cast<size_t>(kClasses));
  ASSERT_EQ(several.columns.size(), static_cast<size_t>(kClasses));
  EXPECT_EQ(several.summary.termination, Termination::converged);
  for (size_t i = 0; i < kClasses; ++i) {
    const Certificate& found = several.summary.certificates[i];
    EXPECT_LE(found.gap(), kTolerance);
    EXPECT_NEAR(found.primal, one.summary.certificates[i].primal, kTolerance * found.primal);
    // As strongly convex as it is, weights that are as good as that are near each other.
    const std::vector<float> a = column(one, i);
    const std::vector<float> b = column(several, i);
    ASSERT_EQ(a.size(), b.size());
    double distance = 0;
    for (size_t j = 0; j < a.size(); ++j) distance += std::pow(double{a[j]} - double{b[j]}, 2);
    EXPECT_LE(std::sqrt(distance), 2 * std::sqrt(2 * kTolerance * found.primal)) << "class " << i + 1;
  }
}

TEST_F(Groups, WithFixedBlocksAreTheSameBitsAsOneGroup) {
  options_.solve.method = Dual{.schedule = Schedule::fixed, .blocks = 10, .inner = 1, .cache_fraction = 0};
  context_.memory_bytes = memory_for(35);
  Context large = context_;
  large.memory_bytes = uint64_t{1} << 30;
  const TrainReport one = train(options_, large, {}, false);
  forget();
  const TrainReport several = train(options_, context_, {}, false);
  ASSERT_GT(several.groups, 1U);
  for (size_t i = 0; i < kClasses; ++i) EXPECT_EQ(column(one, i), column(several, i)) << "class " << i + 1;
}

TEST_F(Groups, AreSavedAsOneModelInTheOrderOfTheLabels) {
  TrainReport report = train(options_, context_, {}, false);
  ASSERT_EQ(report.groups, 3U);
  std::vector<std::vector<float>> columns;
  for (size_t i = 0; i < kClasses; ++i) columns.push_back(column(report, i));
  save_trained(folder_ / "model", options_, report, 2);
  std::istringstream text(read_file(folder_ / "model"));
  std::string line;
  std::getline(text, line);
  EXPECT_EQ(line, "solver_type L2R_L2LOSS_SVC_DUAL");
  std::getline(text, line);
  EXPECT_EQ(line, "nr_class 105");
  std::getline(text, line);
  std::string labels = "label";
  for (int32_t label = 1; label <= kClasses; ++label) labels += " " + std::to_string(label);
  EXPECT_EQ(line, labels);
  std::getline(text, line);
  EXPECT_EQ(line, "nr_feature 4000");
  std::getline(text, line);
  EXPECT_EQ(line, "bias 1");
  std::getline(text, line);
  EXPECT_EQ(line, "w ");
  size_t rows = 0;
  for (; std::getline(text, line) && !line.starts_with('#'); ++rows) {
    std::istringstream numbers(line);
    for (size_t i = 0; i < kClasses; ++i) {
      std::string number;
      ASSERT_TRUE(numbers >> number) << "row " << rows << " has " << i << " columns";
      ASSERT_EQ(std::stof(number), columns[i][rows]) << "row " << rows << ", column " << i;
    }
    std::string more;
    EXPECT_FALSE(numbers >> more);
  }
  EXPECT_EQ(rows, 4001U);
  const Model model = load_model(folder_ / "model");
  EXPECT_EQ(model.columns(), static_cast<size_t>(kClasses));
}

TEST_F(Groups, AreTestedAsTheSavedModelIs) {
  for (const char* loss : {"squared-hinge", "hinge"}) {
    options_.loss = loss_of(loss);
    forget();
    TrainReport report = train(options_, context_, {}, false);
    ASSERT_GT(report.groups, 1U);
    ASSERT_TRUE(report.test.has_value());
    save_trained(folder_ / "model", options_, report, 1);
    const Evaluation found = evaluate(load_model(folder_ / "model"), options_.test, uint64_t{64} << 20);
    EXPECT_EQ(report.test->rows, 420U);
    EXPECT_EQ(report.test->correct, found.correct);
    EXPECT_GT(found.accuracy(), 0.2);
    EXPECT_LT(found.accuracy(), 1);
  }
}

// Killed in the middle of a group, between two, and when a group's solver is done: it goes on to the same bits.
TEST_F(Groups, KilledAnywhereGoOnToTheSameBits) {
  struct Crash {};
  int blocks = 0;
  TrainObserver counting;
  counting.block = [&](const BlockReport&) { ++blocks; };
  const TrainReport whole = train(options_, context_, counting, false);
  ASSERT_EQ(whole.groups, 3U);
  std::vector<std::vector<float>> expected;
  for (size_t i = 0; i < kClasses; ++i) expected.push_back(column(whole, i));
  Random random(4);
  for (const double every_seconds : {0.0, 1e9}) {
    forget();
    context_.checkpoint.every_seconds = every_seconds;
    int lives = 0;
    for (uint64_t most = static_cast<uint64_t>(blocks) / 4;; most += most / 3) {
      ++lives;
      auto left = static_cast<int64_t>(1 + random.below(most));
      int plans = 0;
      TrainObserver observer;
      observer.block = [&](const BlockReport&) {
        if (--left == 0) throw Crash();
      };
      // Every second life ends where the next group begins.
      observer.plan = [&](const Plan&) {
        if (++plans == 2 && lives % 2 == 0) throw Crash();
      };
      try {
        const TrainReport found = train(options_, context_, observer, false);
        EXPECT_EQ(found.groups, 3U);
        EXPECT_EQ(found.summary.passes, whole.summary.passes);
        EXPECT_EQ(found.test->correct, whole.test->correct);
        ASSERT_EQ(found.columns.size(), static_cast<size_t>(kClasses));
        for (size_t i = 0; i < kClasses; ++i) {
          EXPECT_EQ(column(found, i), expected[i]) << "class " << i + 1;
          EXPECT_EQ(found.summary.certificates[i].primal, whole.summary.certificates[i].primal);
          EXPECT_EQ(found.summary.certificates[i].dual, whole.summary.certificates[i].dual);
        }
        break;
      } catch (const Crash&) {
      }
    }
    EXPECT_GE(lives, 4);
  }
}

TEST_F(Groups, StoppedAnywhereGoOnToTheSameBits) {
  const TrainReport whole = train(options_, context_, {}, false);
  std::vector<std::vector<float>> expected;
  for (size_t i = 0; i < kClasses; ++i) expected.push_back(column(whole, i));
  forget();
  int lives = 0;
  for (int64_t least = 7;; ++lives, least += 3) {
    std::atomic<bool> stop = false;
    Context context = context_;
    context.stop = &stop;
    int64_t left = least;
    TrainObserver observer;
    observer.block = [&](const BlockReport&) {
      if (--left == 0) stop = true;
    };
    try {
      const TrainReport found = train(options_, context, observer, false);
      for (size_t i = 0; i < kClasses; ++i) EXPECT_EQ(column(found, i), expected[i]) << "class " << i + 1;
      break;
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::interrupted) << error.what();
    }
  }
  EXPECT_GE(lives, 3);
}

TEST_F(Groups, WithoutACheckpointAreRefused) {
  context_.checkpoint.path.clear();
  options_.test.clear();  // test rows are kept beside the checkpoint too
  EXPECT_THAT([&] { train(options_, context_, {}, false); }, fails_with(ErrorKind::memory, "no checkpoint"));
}

}  // namespace
}  // namespace linblock
