// Data and costs at the ends of what numbers can say: finite weights, and a dual that never passes the primal.
#include <gtest/gtest.h>

#include "solve/solve.h"
#include "support/column_problems.h"
#include "support/small_problems.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

constexpr const char* kLosses[] = {"hinge", "squared-hinge", "logistic"};
const std::vector<double> kCosts = {1e-8, 1e-4, 1e-2, 1, 1e2, 1e4, 1e8};

bool supported(const AnyMethod& method, const std::string& loss) {
  if (std::holds_alternative<Pegasos>(method)) return loss != "logistic";
  if (std::holds_alternative<Primal>(method)) return loss != "hinge";
  return !std::holds_alternative<Cmls>(method) || loss == "squared-hinge";
}

class Extremes : public testing::TestWithParam<const char*> {
 protected:
  static AnyMethod method() {
    const std::string name = GetParam();
    if (name == "dual") return Dual{};
    if (name == "converge")
      return Dual{.schedule = Schedule::fixed, .blocks = 2, .inner = InnerIterations::until_solved()};
    if (name == "pegasos") return Pegasos{};
    if (name == "average") return Average{};
    if (name == "primal") return Primal{};
    if (name == "stored") return Primal{.order = ColumnOrder::cyclic, .exponential = Exponential::stored};
    if (name == "cmls") return Cmls{};
    return Subsample{.share = 0.5};
  }
  void expect_finite(const Data& data, double bias = -1) {
    const Folder folder;
    const Store store = write_store(folder, data, 8);
    write_columns(store, 2);
    for (const char* loss : kLosses) {
      if (!supported(method(), loss)) continue;
      for (const double cost : kCosts) {
        SCOPED_TRACE(testing::Message() << loss << ", cost " << cost << ", bias " << bias);
        std::vector<Solution> solutions;
        const Summary summary = solve(problem_for(store, loss, cost, bias),
                                      {.method = method(), .tolerance = 1e-3, .max_passes = 30}, solutions);
        for (const float weight : solutions.at(0).weights) ASSERT_TRUE(std::isfinite(weight));
        const Certificate& certificate = summary.certificates.at(0);
        ASSERT_TRUE(std::isfinite(certificate.primal));
        ASSERT_FALSE(std::isnan(certificate.dual));
        ASSERT_LE(certificate.dual, certificate.primal);
        ASSERT_FALSE(std::isnan(certificate.gap()));
      }
    }
  }
  static Data scaled(Data data, float factor) {
    for (OwnedRow& row : data.rows)
      for (float& value : row.value) value *= factor;
    return data;
  }
};

Data one_row_each() {
  return {.rows = {{.label = 1, .index = {1, 3}, .value = {0.5, 2}}, {.label = -1, .index = {2, 3}, .value = {1, -1}}},
          .features = 3};
}

TEST_P(Extremes, OneRowOfEachClass) {
  expect_finite(one_row_each());
  expect_finite(one_row_each(), 1);
}

TEST_P(Extremes, RowsWithoutFeatures) {
  const Data empty = {.rows = {{.label = 1}, {.label = -1}, {.label = 1}, {.label = -1}, {.label = 1}}, .features = 0};
  expect_finite(empty);
  expect_finite(empty, 1);
  Data some = make_data(20, 4, 1);
  some.rows.insert(some.rows.end(), empty.rows.begin(), empty.rows.end());
  expect_finite(some);
}

TEST_P(Extremes, RowsOfZeros) {
  Data zeros = one_row_each();
  expect_finite(scaled(zeros, 0));
  zeros.rows.push_back({.label = 1, .index = {1, 2, 3}, .value = {0, 0, 0}});
  zeros.rows.push_back({.label = -1, .index = {1, 2, 3}, .value = {0, 0, 0}});
  expect_finite(zeros);
}

TEST_P(Extremes, TheSameRowOftenAndWithBothLabels) {
  Data data = one_row_each();
  for (int i = 0; i < 40; ++i) data.rows.push_back(data.rows[static_cast<size_t>(i % 2)]);
  expect_finite(data);
  for (OwnedRow& row : data.rows) row = {.label = row.label, .index = {1, 2}, .value = {3, -4}};
  expect_finite(data);
}

TEST_P(Extremes, HugeValues) {
  expect_finite(scaled(make_data(30, 4, 2), 1e30F));
  expect_finite(scaled(make_data(30, 4, 2), 1e30F), 1);
}

TEST_P(Extremes, TinyValues) {
  expect_finite(scaled(make_data(30, 4, 3), 1e-30F));
  expect_finite(scaled(make_data(30, 4, 3), 1e-30F), 1);
}

TEST_P(Extremes, HugeAndTinyValuesTogether) {
  Data data = make_data(30, 4, 4);
  for (size_t i = 0; i < data.rows.size(); ++i)
    for (size_t k = 0; k < data.rows[i].value.size(); ++k)
      data.rows[i].value[k] *= (i + k) % 3 == 0 ? 1e30F : (i + k) % 3 == 1 ? 1e-30F : 1;
  expect_finite(data);
  expect_finite(data, 1);
}

TEST_P(Extremes, TheLargestAndSmallestFloats) {
  Data data = one_row_each();
  data.rows.push_back({.label = 1, .index = {1, 2}, .value = {3.4e38F, -3.4e38F}});
  data.rows.push_back({.label = -1, .index = {1, 2}, .value = {1e-45F, -1e-45F}});
  expect_finite(data);
}

TEST_P(Extremes, WeightsOfRowsFromTinyToHuge) {
  Data data = make_data(30, 4, 5);
  for (size_t i = 0; i < data.rows.size(); ++i) data.rows[i].weight = i % 3 == 0 ? 1e20F : i % 3 == 1 ? 1e-20F : 0;
  expect_finite(data);
}

TEST_P(Extremes, AFeatureFarFromAllOthers) {
  Data data = make_data(20, 4, 6);
  data.rows[7].index.push_back(300'000);
  data.rows[7].value.push_back(1);
  data.features = 300'000;
  expect_finite(data);
}

INSTANTIATE_TEST_SUITE_P(Methods, Extremes,
                         testing::Values("dual", "converge", "pegasos", "average", "subsample", "primal", "stored",
                                         "cmls"));

// Not only finite: right.
TEST(ExtremeOptimum, OfOneRowOfEachClassIsFoundAtEveryCost) {
  const Folder folder;
  const Data data = one_row_each();
  const Store store = write_store(folder, data, 2);
  for (const char* loss : kLosses)
    for (const double cost : kCosts) {
      const ReferenceOptimum reference = reference_optimum(loss, dense(data, cost, -1));
      std::vector<Solution> solutions;
      const Summary summary =
          solve(problem_for(store, loss, cost), {.tolerance = 1e-6, .max_passes = 20000}, solutions);
      EXPECT_EQ(summary.termination, Termination::converged) << loss << ", cost " << cost;
      EXPECT_NEAR(summary.certificates[0].primal, reference.primal, 2e-6 * reference.primal)
          << loss << ", cost " << cost;
    }
}

TEST(ExtremeOptimum, OfOneRowOfEachClassIsFoundByColumnsToo) {
  const Folder folder;
  const Data data = one_row_each();
  const Store store = write_store_with_columns(folder, data, 1);
  for (const char* loss : {"squared-hinge", "logistic"})
    for (const double cost : kCosts) {
      if (cost > 1e2) continue;  // steps along single features get nowhere then
      const ReferenceOptimum reference = reference_optimum(loss, dense(data, cost, -1));
      std::vector<Solution> solutions;
      const Summary summary = solve_columns(problem_for(store, loss, cost), Primal{}, 1e-6, solutions, {}, 20000);
      EXPECT_EQ(summary.termination, Termination::converged) << loss << ", cost " << cost;
      EXPECT_NEAR(summary.certificates[0].primal, reference.primal, 2e-6 * reference.primal)
          << loss << ", cost " << cost;
    }
}

// No columns at all: the bias is all there is.
TEST(ExtremeOptimum, OfRowsWithoutFeaturesIsTheBiasAlone) {
  const Folder folder;
  const Data data = {.rows = {{.label = 1}, {.label = -1}, {.label = -1}}, .features = 0};
  const Store store = write_store_with_columns(folder, data, 1);
  for (const char* loss : {"squared-hinge", "logistic"})
    for (const double bias : {-1.0, 1.0}) {
      const ReferenceOptimum reference = reference_optimum(loss, dense(data, 0.5, bias));
      std::vector<Solution> solutions;
      const Summary summary = solve_columns(problem_for(store, loss, 0.5, bias), Primal{}, 1e-8, solutions);
      EXPECT_EQ(summary.termination, Termination::converged);
      EXPECT_NEAR(summary.certificates[0].primal, reference.primal, 1e-7 * reference.primal) << loss << " " << bias;
    }
}

// Nothing to learn: w is 0, and the objective is the loss of a margin of 0.
TEST(ExtremeOptimum, OfRowsWithoutFeaturesIsZeroWeights) {
  const Folder folder;
  const Data data = {.rows = {{.label = 1}, {.label = -1}, {.label = -1}}, .features = 0};
  const Store store = write_store(folder, data, 3);
  for (const char* loss : kLosses)
    for (const double cost : kCosts) {
      std::vector<Solution> solutions;
      const Summary summary = solve(problem_for(store, loss, cost), {.tolerance = 1e-6, .max_passes = 100}, solutions);
      EXPECT_NEAR(summary.certificates[0].primal, 3 * cost * reference_loss(loss, 0), 1e-9 * cost);
      EXPECT_LE(summary.certificates[0].gap(), 1e-6) << loss << ", cost " << cost;
    }
}

TEST(ExtremeOptimum, OfScaledValuesIsThatOfTheOppositelyScaledCost) {
  for (const char* loss : kLosses)
    for (const float scale : {1e-15F, 1e15F}) {
      const Folder folder;
      const Data data = make_data(40, 4, 7);
      const ReferenceOptimum reference = reference_optimum(loss, dense(data, 1, -1));
      Data small = data;
      for (OwnedRow& row : small.rows)
        for (float& value : row.value) value *= scale;
      const Store store = write_store(folder, small, 8);
      const double cost = 1 / std::pow(double{scale}, 2);
      std::vector<Solution> solutions;
      const Summary summary = solve(problem_for(store, loss, cost), {.tolerance = 1e-4, .max_passes = 5000}, solutions);
      EXPECT_EQ(summary.termination, Termination::converged) << loss << ", scale " << scale;
      EXPECT_NEAR(summary.certificates[0].primal / cost, reference.primal, 2e-4 * reference.primal)
          << loss << ", scale " << scale;
    }
}

}  // namespace
}  // namespace linblock
