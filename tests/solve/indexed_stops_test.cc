// Indexed block descent that is stopped, in little memory, and of several tasks.
#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/indexed_problems.h"
#include "support/tight_memory.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

class IndexedStops : public testing::TestWithParam<bool> {
 protected:
  IndexedStops() { build_index(store_, -1, 1000, 4); }

  Problem problem() const {
    Problem problem = problem_for(store_, "squared-hinge", 1);
    problem.tasks.push_back({.positive = -1, .cost = 0.1});
    problem.truncate = 1;
    return problem;
  }
  SolveOptions options() const {
    return {.method = Indexed{.query = 40, .block_solver = GetParam() ? BlockSolver::newton : BlockSolver::dual},
            .tolerance = 1e-2,
            .max_passes = 5000};
  }
  // Active rows do not all fit.
  uint64_t little_memory() const { return least_memory(problem(), options().method, "somewhere"); }

  const MemoryFolder folder_;
  const Data data_ = make_clusters(2500, 10, 3, 0.2);
  const Store store_ = write_store(folder_, data_, 100);
};

TEST_P(IndexedStops, AfterEveryStepEndsWithTheSameBits) {
  const Context whole = context_with(little_memory(), folder_ / "WHOLE");
  std::vector<Solution> expected;
  const Summary summary = solve(problem(), options(), expected, whole);
  ASSERT_EQ(summary.termination, Termination::converged);
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    if (entry.path().filename().string().starts_with("WHOLE.active-")) ++files;
  EXPECT_GT(files, 0U) << "all active rows fit: a test of nothing";

  // In the middle of a step, and at its end.
  for (const bool in_step : {true, false}) {
    std::vector<Solution> found;
    int stops = 0;
    for (bool done = false; !done; ++stops) {
      ASSERT_LT(stops, 3000);
      std::atomic<bool> stop = in_step;
      Context context = context_with(little_memory(), folder_ / fmt::format("STOPPED-{}", in_step));
      context.stop = &stop;
      context.observer.pass = [&](const PassReport&) { stop = true; };
      found.clear();
      try {
        const Summary last = solve(problem(), options(), found, context);
        EXPECT_EQ(last.termination, Termination::converged);
        EXPECT_EQ(last.passes, summary.passes);
        EXPECT_EQ(last.truncated[0].objective, summary.truncated[0].objective);
        done = true;
      } catch (const Error& error) {
        ASSERT_EQ(error.kind(), ErrorKind::interrupted) << error.what();
      }
    }
    EXPECT_GT(stops, 5);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(found[i].weights, expected[i].weights) << "task " << i;
  }
}

TEST_P(IndexedStops, AreNotNeededForTheSameAnswerInLittleMemory) {
  std::vector<Solution> little;
  std::vector<Solution> much;
  const Summary tight = solve(problem(), options(), little, context_with(little_memory(), folder_ / "STATE"));
  const Summary wide = solve(problem(), options(), much, context_with(uint64_t{1} << 30, folder_ / "OTHER"));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(tight.truncated[i].objective, wide.truncated[i].objective, 0.03 * wide.truncated[i].objective);
    EXPECT_LE(tight.certificates[i].gap(), 1e-2);
  }
  EXPECT_GT(tight.costs.bytes, wide.costs.bytes);
}

TEST_P(IndexedStops, AtALimitAreCertifiedAllTheSame) {
  for (const int passes : {1, 3, 10}) {
    SolveOptions few = options();
    few.max_passes = passes;
    Problem convex = problem();
    convex.truncate.reset();
    std::vector<Solution> solutions;
    const Summary summary = solve(convex, few, solutions);
    EXPECT_EQ(summary.termination, Termination::pass_limit);
    const auto rows = dense(data_, 1, -1);
    const double primal = objective_at("squared-hinge", rows, dense_weights(solutions[0].weights));
    EXPECT_NEAR(summary.certificates[0].primal, primal, 1e-8 * primal) << passes;
    EXPECT_LE(summary.certificates[0].dual, primal) << passes;
  }
}

// Even before the first outer step, when outliers are those of other weights.
TEST_P(IndexedStops, AtALimitSayTheTruncatedObjectiveOfTheSavedWeights) {
  const double s = *problem().truncate;
  for (const int passes : {1, 2, 3, 5, 10, 20}) {
    SolveOptions few = options();
    few.max_passes = passes;
    std::vector<Solution> solutions;
    const Summary summary = solve(problem(), few, solutions);
    const auto rows = dense(data_, problem().tasks[0].cost, -1);
    const double objective = objective_at("squared-hinge", rows, dense_weights(solutions[0].weights), 1 + s);
    EXPECT_NEAR(summary.truncated[0].objective, objective, 1e-8 * objective) << passes;
  }
}

INSTANTIATE_TEST_SUITE_P(Solvers, IndexedStops, testing::Bool(),
                         [](const auto& one) { return one.param ? "newton" : "dual"; });

}  // namespace
}  // namespace linblock
