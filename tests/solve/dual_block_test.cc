#include <gtest/gtest.h>

#include "solve/solve.h"
#include "support/small_problems.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

// Solves, and holds every promise a summary makes against the reference.
Summary expect_optimum(const Problem& problem, const std::vector<DenseRow>& rows, SolveOptions options,
                       Context context = {}) {
  const std::string loss(name_of(problem.loss));
  const test::ReferenceOptimum reference = test::reference_optimum(loss, rows);
  EXPECT_LE(reference.primal - reference.dual, 1e-7 * std::abs(reference.dual)) << "the reference itself";
  context.observer.pass = [&](const PassReport& pass) {
    if (pass.certified) {
      EXPECT_LE(pass.certified->dual, pass.certified->primal);
    }
  };
  std::vector<Solution> solutions;
  const Summary summary = solve(problem, options, solutions, context);
  const Certificate& certificate = summary.certificates.front();
  EXPECT_LE(certificate.dual, certificate.primal);
  EXPECT_LE(certificate.dual, reference.primal * (1 + 1e-7));
  EXPECT_GE(certificate.primal, reference.dual * (1 - 1e-7));
  if (summary.termination == Termination::converged) {
    EXPECT_LE(certificate.gap(), options.tolerance);
  }
  EXPECT_NEAR(certificate.primal, reference.primal, 2 * options.tolerance * reference.primal);
  return summary;
}

class EveryLoss : public testing::TestWithParam<std::tuple<std::string, size_t, Schedule>> {};

TEST_P(EveryLoss, ReachesTheReferenceOptimumWithBlocksOfAnySize) {
  const auto& [loss, rows_per_chunk, schedule] = GetParam();
  const Folder folder;
  const Data data = make_data(42, 6, 1);
  const Store store = write_store(folder, data, rows_per_chunk);
  for (const int inner : {1, 4}) {
    const SolveOptions options{
        .method = Dual{.schedule = schedule, .inner = inner}, .tolerance = 1e-6, .max_passes = 20000};
    const Summary summary = expect_optimum(problem_for(store, loss, 1), dense(data, 1, -1), options);
    EXPECT_EQ(summary.termination, Termination::converged);
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryLoss,
                         testing::Combine(testing::Values("hinge", "squared-hinge", "logistic", "huber-hinge"),
                                          testing::Values(1, 7, 42),
                                          testing::Values(Schedule::recomposed, Schedule::fixed)));

TEST(Dual, SolvesEachBlockToConvergenceWhenAsked) {
  const Folder folder;
  const Data data = make_data(60, 5, 2);
  const Store store = write_store(folder, data, 15);
  for (const char* loss : {"hinge", "squared-hinge", "logistic", "huber-hinge"}) {
    const SolveOptions options{.method = Dual{.schedule = Schedule::fixed, .inner = InnerIterations::until_solved()},
                               .tolerance = 1e-4,
                               .max_passes = 5000};
    expect_optimum(problem_for(store, loss, 1), dense(data, 1, -1), options);
  }
}

TEST(Dual, TakesABiasClassWeightsAndRowWeightsIntoAccount) {
  const Folder folder;
  Data data = make_data(50, 4, 3);
  for (size_t i = 0; i < data.rows.size(); ++i) data.rows[i].weight = static_cast<float>(i % 4);
  const Store store = write_store(folder, data, 50);
  for (const char* loss : {"hinge", "squared-hinge", "logistic", "huber-hinge"}) {
    Problem problem = problem_for(store, loss, 0.7, 2.0);
    problem.class_weights = {{1, 3.0}};
    expect_optimum(problem, dense(data, 0.7, 2.0, problem.class_weights), {.tolerance = 1e-6, .max_passes = 20000});
  }
}

TEST(Dual, DoublingARowsWeightIsTheSameAsHavingItTwice) {
  const Folder one;
  const Folder two;
  Data weighted = make_data(30, 4, 4);
  Data repeated = weighted;
  weighted.rows[5].weight = 2;
  repeated.rows.push_back(repeated.rows[5]);
  const Store first = write_store(one, weighted, 30);
  const Store second = write_store(two, repeated, 31);
  const SolveOptions options{.tolerance = 1e-6, .max_passes = 20000};
  std::vector<Solution> solutions;
  const Summary a = solve(problem_for(first, "hinge", 1), options, solutions);
  solutions.clear();
  const Summary b = solve(problem_for(second, "hinge", 1), options, solutions);
  EXPECT_NEAR(a.certificates[0].primal, b.certificates[0].primal, 3e-6 * a.certificates[0].primal);
}

TEST(Dual, GivesTheSameBitsForAnyNumberOfThreads) {
  const Folder folder;
  const Data data = make_data(200, 10, 5);
  const Store store = write_store(folder, data, 20);
  std::vector<float> expected;
  for (const size_t threads : {1, 2, 3, 7}) {
    std::vector<Solution> solutions;
    solve(problem_for(store, "hinge", 1), {.method = Dual{.inner = 1}, .tolerance = 1e-4}, solutions,
          {.team = threads});
    if (threads == 1) expected = solutions[0].weights;
    EXPECT_EQ(solutions[0].weights, expected) << threads << " threads";
  }
}

TEST(Dual, NeverMakesANumberThatIsNotFinite) {
  for (const double scale : {1e30, 1e-30}) {
    for (const double cost : {1e-8, 1.0, 1e8}) {
      const Folder folder;
      Data data = make_data(30, 4, 6);
      for (OwnedRow& row : data.rows)
        for (float& value : row.value) value = static_cast<float>(value * scale);
      data.rows.push_back({.label = 1});  // a row without features
      data.rows.push_back({.label = -1});
      const Store store = write_store(folder, data, 32);
      for (const char* loss : {"hinge", "squared-hinge", "logistic", "huber-hinge"}) {
        std::vector<Solution> solutions;
        const Summary summary = solve(problem_for(store, loss, cost), {.tolerance = 0.01, .max_passes = 50}, solutions);
        for (const float weight : solutions[0].weights) EXPECT_TRUE(std::isfinite(weight)) << loss << " " << scale;
        EXPECT_TRUE(std::isfinite(summary.certificates[0].primal)) << loss << " " << scale << " " << cost;
        EXPECT_LE(summary.certificates[0].dual, summary.certificates[0].primal);
      }
    }
  }
}

TEST(Dual, RefusesOneClassAndAnUnknownLabel) {
  const Folder folder;
  Data data = make_data(10, 3, 7);
  for (OwnedRow& row : data.rows) row.label = 1;
  const Store store = write_store(folder, data, 10);
  std::vector<Solution> solutions;
  EXPECT_THROW(solve(problem_for(store, "hinge", 1), {}, solutions), Error);
  Problem problem = problem_for(store, "hinge", 1);
  problem.tasks[0].positive = 9;
  EXPECT_THROW(solve(problem, {}, solutions), Error);
}

TEST(Dual, RefusesAMemoryThatCannotHoldTheWeights) {
  const Folder folder;
  Data data = make_data(10, 3, 8);
  data.rows[0].index.push_back(100'000'000);
  data.rows[0].value.push_back(1);
  const Store store = write_store(folder, data, 10);
  std::vector<Solution> solutions;
  try {
    solve(problem_for(store, "hinge", 1), {}, solutions, {.memory_bytes = uint64_t{64} << 20});
    FAIL() << "was not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory);
    EXPECT_NE(std::string(error.what()).find("weights of 100,000,001 features"), std::string::npos) << error.what();
  }
}

TEST(Dual, SaysWhatIsCertifiedWhenALimitIsReached) {
  const Folder folder;
  const Data data = make_data(100, 8, 9);
  const Store store = write_store(folder, data, 10);
  std::vector<Solution> solutions;
  const Summary summary = solve(problem_for(store, "hinge", 1), {.tolerance = 1e-9, .max_passes = 2}, solutions);
  EXPECT_EQ(summary.termination, Termination::pass_limit);
  EXPECT_EQ(summary.passes, 2);
  EXPECT_GT(summary.certificates[0].gap(), 1e-9);
  EXPECT_TRUE(std::isfinite(summary.certificates[0].primal));
}

}  // namespace
}  // namespace linblock
