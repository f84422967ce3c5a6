// Data that does not fit in memory: the same bits for any number of threads, and true certificates.
#include "support/streamed.h"

#include <gtest/gtest.h>

#include <cstring>

#include "solve/solve.h"
#include "support/small_problems.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

class Streamed : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new Folder;
    store_ = new Store(write_streamed_store(*folder_ / "store"));
  }
  static void TearDownTestSuite() {
    delete store_;
    delete folder_;
  }

  struct Run {
    Summary summary;
    std::vector<float> weights;
  };
  static Run run(const AnyMethod& method, const char* loss, const Context& context) {
    std::vector<Solution> solutions;
    Run run;
    run.summary = solve(problem_for(*store_, loss, 0.01), {.method = method, .tolerance = 1e-3, .max_passes = 4},
                        solutions, context);
    run.weights = std::move(solutions.at(0).weights);
    return run;
  }
  static void expect_same_bits_for_any_threads(const AnyMethod& method, const char* loss) {
    std::optional<Run> one;
    for (const size_t threads : {1, 2, 3, 7}) {
      SCOPED_TRACE(testing::Message() << loss << ", " << threads << " threads");
      const Run found = run(method, loss, {.memory_bytes = kStreamedMemory, .team = threads});
      ASSERT_EQ(found.summary.plan.rows, RowsHeld::streamed) << "these rows are too few to be a test";
      ASSERT_GT(store_->chunks().size(), found.summary.plan.chunks_per_block) << "one block is no test";
      if (!one) one = found;
      EXPECT_EQ(found.summary.passes, one->summary.passes);
      EXPECT_EQ(found.summary.certificates[0].primal, one->summary.certificates[0].primal);
      EXPECT_EQ(found.summary.certificates[0].dual, one->summary.certificates[0].dual);
      ASSERT_EQ(found.weights.size(), one->weights.size());
      EXPECT_EQ(std::memcmp(found.weights.data(), one->weights.data(), found.weights.size() * sizeof(float)), 0);
    }
  }

  static inline Folder* folder_ = nullptr;
  static inline Store* store_ = nullptr;
};

TEST_F(Streamed, DualDescentGivesTheSameBitsForAnyNumberOfThreads) {
  expect_same_bits_for_any_threads(Dual{.inner = 2}, "hinge");
  expect_same_bits_for_any_threads(Dual{.schedule = Schedule::fixed, .inner = 1}, "logistic");
  expect_same_bits_for_any_threads(Dual{.inner = InnerIterations::until_solved()}, "squared-hinge");
}

TEST_F(Streamed, PegasosGivesTheSameBitsForAnyNumberOfThreads) {
  expect_same_bits_for_any_threads(Pegasos{.step = 1}, "hinge");
  expect_same_bits_for_any_threads(Pegasos{.step = 0}, "squared-hinge");
}

TEST_F(Streamed, AveragesAreTheSameBitsForAnyNumberOfThreads) { expect_same_bits_for_any_threads(Average{}, "hinge"); }

TEST_F(Streamed, SubsamplesAreTheSameBitsForAnyNumberOfThreads) {
  expect_same_bits_for_any_threads(Subsample{}, "hinge");
}

// The first pass reads everything; how much of it later ones still hold is the plan's affair, but it is not all.
TEST_F(Streamed, EveryPassReadsFromTheStore) {
  std::vector<uint64_t> read;
  Context context{.memory_bytes = kStreamedMemory};
  context.observer.pass = [&](const PassReport& pass) { read.push_back(pass.bytes_read); };
  run(Dual{.inner = 1}, "hinge", context);
  uint64_t stored = 0;
  for (const ChunkInfo& chunk : store_->chunks()) stored += chunk.extent();
  ASSERT_GE(read.size(), 2U);
  EXPECT_GE(read[0], stored);
  for (size_t i = 1; i < read.size(); ++i) EXPECT_GT(read[i] - read[i - 1], stored / 4) << "pass " << i + 1;
}

TEST_F(Streamed, ReachesTheSameOptimumAsInMemory) {
  const auto primal = [](uint64_t memory_bytes) {
    std::vector<Solution> solutions;
    const Summary summary = solve(problem_for(*store_, "hinge", 0.01), {.tolerance = 1e-4, .max_passes = 500},
                                  solutions, {.memory_bytes = memory_bytes});
    EXPECT_EQ(summary.termination, Termination::converged);
    EXPECT_LE(summary.certificates[0].dual, summary.certificates[0].primal);
    return summary.certificates[0].primal;
  };
  const double streamed = primal(kStreamedMemory);
  EXPECT_NEAR(streamed, primal(uint64_t{1} << 30), 1e-4 * streamed);
}

}  // namespace
}  // namespace linblock
