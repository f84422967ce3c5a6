// Folds: every row is held out by exactly one of them, and has no say there.
#include <gtest/gtest.h>

#include "support/tight_memory.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

constexpr uint32_t kFolds = 5;

HeldOut fold(uint32_t number) { return {.seed = 9, .parts = kFolds, .first = number, .last = number + 1}; }

TEST(HeldOut, HoldsEveryRowInExactlyOneFold) {
  constexpr uint64_t kRows = 20000;
  std::vector<uint64_t> sizes(kFolds, 0);
  for (uint64_t row = 0; row < kRows; ++row) {
    uint32_t holders = 0;
    for (uint32_t number = 0; number < kFolds; ++number) {
      if (!fold(number).holds(row)) continue;
      ++holders;
      ++sizes[number];
    }
    ASSERT_EQ(holders, 1U) << "row " << row;
  }
  for (const uint64_t size : sizes) EXPECT_NEAR(static_cast<double>(size), kRows / kFolds, 300);
}

TEST(HeldOut, HoldsNoRowUnlessAsked) {
  for (uint64_t row = 0; row < 1000; ++row) EXPECT_FALSE(HeldOut{.seed = 9}.holds(row));
  EXPECT_EQ(HeldOut{}.learned_share(), 1);
  EXPECT_DOUBLE_EQ(fold(2).learned_share(), 0.8);
}

TEST(HeldOut, OfAnotherSeedHoldsOtherRows) {
  uint64_t both = 0;
  for (uint64_t row = 0; row < 10000; ++row)
    if (fold(0).holds(row) && HeldOut{.seed = 10, .parts = kFolds, .first = 0, .last = 1}.holds(row)) ++both;
  EXPECT_NEAR(static_cast<double>(both), 10000.0 / kFolds / kFolds, 100);
}

class HeldOutRows : public testing::Test {
 protected:
  // Every fold's rows against the rest of them, and one task that learns from all.
  static Problem folds(const Store& store, const std::string& loss) {
    Problem problem{.store = &store, .loss = loss_of(loss), .bias = 1};
    for (uint32_t number = 0; number < kFolds; ++number)
      problem.tasks.push_back({.positive = 2, .cost = 0.1, .held_out = fold(number)});
    problem.tasks.push_back({.positive = 2, .cost = 0.1});
    return problem;
  }
  // Other labels and values, as many of them, so that chunks are as large as before.
  static Data with_other_rows_in(uint32_t number, Data data) {
    for (size_t id = 0; id < data.rows.size(); ++id) {
      OwnedRow& row = data.rows[id];
      if (!fold(number).holds(id)) continue;
      row.label = row.label % 3 + 1;
      for (float& value : row.value) value = 1 - 3 * value;
    }
    return data;
  }
  static std::vector<Solution> solved(const Problem& problem, const SolveOptions& options, uint64_t memory) {
    std::vector<Solution> solutions;
    solve(problem, options, solutions, context_with(memory));
    return solutions;
  }

  const Data data_ = make_classes(300, 24, 3, 4);
  const ManyChunks rows_{data_};
};

TEST_F(HeldOutRows, HaveNoSayInTheWeights) {
  constexpr uint32_t kChanged = 3;
  const ManyChunks other(with_other_rows_in(kChanged, data_));
  const std::vector<AnyMethod> methods = {Dual{.inner = 1},
                                          Dual{.inner = 2, .cache_fraction = 0.5},
                                          Dual{.schedule = Schedule::fixed, .inner = 1},
                                          Dual{.inner = InnerIterations::until_solved()},
                                          Pegasos{},
                                          Average{},
                                          Subsample{.share = 0.8}};
  const Problem problem = folds(rows_.store, "squared-hinge");
  for (const AnyMethod& method : methods) {
    for (const uint64_t memory :
         {uint64_t{1} << 30, memory_for_encoded_rows(problem, method, ""), streaming_memory(problem)}) {
      SCOPED_TRACE(testing::Message() << name_of(method) << " in " << memory);
      const SolveOptions options{.method = method, .tolerance = 1e-3, .max_passes = 12};
      // Alone: together, what other tasks need decides when certificates are made.
      const Problem alone = only_task(problem, kChanged);
      Problem changed = alone;
      changed.store = &other.store;
      const std::vector<float> expected = solved(alone, options, memory)[0].weights;
      EXPECT_EQ(solved(changed, options, memory)[0].weights, expected);
      changed.tasks[0].held_out = {};
      Problem all = alone;
      all.tasks[0].held_out = {};
      EXPECT_NE(solved(changed, options, memory)[0].weights, solved(all, options, memory)[0].weights)
          << "the change is none";
    }
  }
}

TEST_F(HeldOutRows, AreAsGoodAsAbsentForEveryFold) {
  for (const char* loss : {"hinge", "squared-hinge", "logistic"}) {
    const Problem problem = folds(rows_.store, loss);
    for (const AnyMethod& method : {AnyMethod(Dual{}), AnyMethod(Dual{.schedule = Schedule::fixed, .inner = 2}),
                                    AnyMethod(Subsample{.share = 1})}) {
      for (const uint64_t memory : {uint64_t{1} << 30, streaming_memory(problem)}) {
        std::vector<Solution> solutions;
        const SolveOptions options{.method = method, .tolerance = 1e-5, .max_passes = 5000};
        if (std::holds_alternative<Subsample>(method) && memory != uint64_t{1} << 30) continue;
        const Summary summary = solve(problem, options, solutions, context_with(memory));
        for (uint32_t number = 0; number <= kFolds; ++number) {
          std::vector<DenseRow> rows = dense(data_, 0.1, 1, {}, 2);
          for (size_t id = 0; id < rows.size(); ++id)
            if (number < kFolds && fold(number).holds(id)) rows[id].cost = 0;
          const ReferenceOptimum reference = reference_optimum(loss, rows, 1e-8);
          const Certificate& found = summary.certificates[number];
          EXPECT_NEAR(found.primal, reference.primal, 1e-5 * reference.primal) << loss << ", fold " << number;
          EXPECT_LE(found.gap(), 1e-5);
          EXPECT_LE(found.dual, reference.primal * (1 + 1e-7));
        }
      }
    }
  }
}

}  // namespace
}  // namespace linblock
