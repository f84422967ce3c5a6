// Dual descent on data that is read again each pass, with and without rows kept near the margin, reaches the optimum
// of the reference solver; what it certifies on the way is true.
#include <gtest/gtest.h>

#include "base/random.h"
#include "support/chunks.h"
#include "support/tight_memory.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

constexpr double kCost = 0.1;
constexpr double kExactly = 1e-6;

class WorkingSetReach : public testing::TestWithParam<std::tuple<const char*, bool>> {
 protected:
  static void solve_and_expect(const Problem& problem, const Dual& method, const ReferenceOptimum& best) {
    Context context = context_with(streaming_memory(problem));
    int certified = 0;
    context.observer.pass = [&](const PassReport& pass) {
      if (!pass.certified) return;
      ++certified;
      EXPECT_LE(pass.certified->dual, pass.certified->primal);
      EXPECT_LE(pass.certified->dual, best.primal * (1 + 1e-9));
      EXPECT_GE(pass.certified->primal, best.dual * (1 - 1e-9));
    };
    std::vector<Solution> solutions;
    const Summary summary =
        solve(problem, {.method = method, .tolerance = kExactly, .max_passes = 20000}, solutions, context);
    ASSERT_EQ(summary.plan.rows, RowsHeld::streamed);
    EXPECT_EQ(summary.plan.few_features, std::get<1>(GetParam()));
    EXPECT_EQ(summary.plan.cache_bytes > 0, method.cache_fraction.value_or(1) > 0);
    EXPECT_EQ(summary.termination, Termination::converged);
    EXPECT_GE(certified, 1);
    EXPECT_LE(summary.certificates[0].gap(), kExactly);
    EXPECT_NEAR(summary.certificates[0].primal, best.primal, kExactly * best.primal);
  }
};

TEST_P(WorkingSetReach, TheReferenceOptimumInAnyRoundsAndAnyShareOfTheMemory) {
  const auto& [loss, few_features] = GetParam();
  const ManyChunks rows = few_features ? ManyChunks::with_few_features() : ManyChunks(24);
  const double cost = few_features ? kCost / 30 : kCost;
  const Problem problem = problem_for(rows.store, loss, cost, 1);
  const ReferenceOptimum best = reference_optimum(loss, dense(rows.data, cost, 1), 1e-7);
  ASSERT_LE(best.primal - best.dual, 1e-7 * best.dual) << "the reference itself";
  for (const Dual& rounds :
       {Dual{}, Dual{.inner = 1}, Dual{.inner = 3}, Dual{.inner = InnerIterations::until_solved()}}) {
    for (const double share : {-1.0, 0.0, 0.3, 0.8}) {
      SCOPED_TRACE(testing::Message() << "inner " << rounds.inner.show() << ", cache fraction " << share);
      Dual method = rounds;
      if (share >= 0) method.cache_fraction = share;
      solve_and_expect(problem, method, best);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, WorkingSetReach,
                         testing::Combine(testing::Values("hinge", "squared-hinge", "logistic"), testing::Bool()));

class DualsInAFileReach : public testing::TestWithParam<const char*> {};

TEST_P(DualsInAFileReach, TheReferenceOptimum) {
  const ManyChunks rows(24);
  const Problem problem = problem_for(rows.store, GetParam(), kCost, 1);
  const SolveOptions options{
      .method = Dual{.inner = 2, .cache_fraction = 0}, .tolerance = kExactly, .max_passes = 20000};
  const Context context = context_with(memory_without_duals(problem), rows.folder / "STATE");
  std::vector<Solution> solutions;
  const Summary summary = solve(problem, options, solutions, context);
  ASSERT_TRUE(summary.plan.duals_in_file);
  ASSERT_EQ(summary.plan.rows, RowsHeld::streamed);
  EXPECT_TRUE(std::filesystem::exists(rows.folder / "STATE.duals"));
  EXPECT_EQ(summary.termination, Termination::converged);
  EXPECT_LE(summary.certificates[0].dual, summary.certificates[0].primal);

  const ReferenceOptimum best = reference_optimum(GetParam(), dense(rows.data, kCost, 1), 1e-8);
  EXPECT_NEAR(summary.certificates[0].primal, best.primal, kExactly * best.primal);
}

// Rows of ones take so much less encoded than decoded that all of them fit where four decoded chunks hardly do.
TEST_P(DualsInAFileReach, TheOptimumWhereAllRowsStayInMemoryEncoded) {
  const MemoryFolder folder;
  std::vector<OwnedRow> rows(4200);
  Random random(3);
  for (OwnedRow& row : rows) {
    double score = random.unit() - 0.5;
    for (uint32_t index = 1; index <= 200; ++index) {
      if (random.below(2) == 0) continue;
      row.index.push_back(index);
      row.value.push_back(1);
      score += index % 2 == 0 ? 0.2 : -0.2;
    }
    row.label = score > 0 ? 1 : -1;
  }
  const Store store = write_rows(folder / "store", rows, 8, 16 << 10);
  const Problem problem = problem_for(store, GetParam(), 0.01);
  const SolveOptions options{.tolerance = 1e-4, .max_passes = 3000};
  const uint64_t memory = least_memory_where(problem, Dual{}, "somewhere",
                                             [](const Plan& plan) { return plan.rows != RowsHeld::streamed; });
  std::vector<Solution> solutions;
  const Summary small = solve(problem, options, solutions, context_with(memory + 4096, folder / "STATE"));
  ASSERT_EQ(small.plan.rows, RowsHeld::encoded);
  ASSERT_TRUE(small.plan.duals_in_file) << "duals fit wherever rows do: this test has lost its subject";
  ASSERT_LT(small.plan.chunks_per_block, store.chunks().size());
  EXPECT_EQ(small.termination, Termination::converged);
  solutions.clear();
  const Summary large = solve(problem, options, solutions);
  EXPECT_NEAR(small.certificates[0].primal, large.certificates[0].primal, 1e-4 * large.certificates[0].primal);
}

INSTANTIATE_TEST_SUITE_P(Losses, DualsInAFileReach, testing::Values("hinge", "squared-hinge", "logistic"));

// A mean of weights is nobody's v: what is certified of it must be its own primal.
TEST(MeanWeights, AreCertifiedByTheirOwnPrimal) {
  const ManyChunks rows = ManyChunks::with_few_features();
  for (const char* loss : {"hinge", "squared-hinge", "logistic"}) {
    const Problem problem = problem_for(rows.store, loss, 1, 1);
    const std::vector<DenseRow> plain = dense(rows.data, 1, 1);
    for (const int passes : {1, 2, 5, 20}) {
      for (const uint64_t memory : {streaming_memory(problem), uint64_t{1} << 30}) {
        SCOPED_TRACE(testing::Message() << loss << ", " << passes << " passes, memory " << memory);
        std::vector<Solution> solutions;
        const Summary summary =
            solve(problem, {.tolerance = 1e-9, .max_passes = passes}, solutions, context_with(memory));
        ASSERT_TRUE(summary.plan.few_features);
        const Certificate& said = summary.certificates[0];
        EXPECT_LE(said.dual, said.primal);
        double primal = 0;
        for (const float weight : solutions[0].weights) primal += 0.5 * double{weight} * double{weight};
        for (size_t i = 0; i < plain.size(); ++i) {
          const OwnedRow& row = rows.data.rows[i];
          double score = double{solutions[0].weights.back()};
          for (size_t k = 0; k < row.index.size(); ++k)
            score += double{solutions[0].weights[rows.store.features().number(row.index[k])]} * double{row.value[k]};
          primal += plain[i].cost * reference_loss(loss, plain[i].y * score);
        }
        EXPECT_NEAR(said.primal, primal, 1e-10 * primal);
      }
    }
  }
}

}  // namespace
}  // namespace linblock
