// What must be true of any optimum, whatever the numbers: symmetries of the problem.
#include <gtest/gtest.h>

#include <algorithm>

#include "solve/solve.h"
#include "support/small_problems.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

constexpr double kTolerance = 1e-6;

struct Optimum {
  double primal = 0;
  double dual = 0;
  std::vector<double> weights = {};  // by original index, from 1; the bias last where there is one
};

class Properties : public testing::TestWithParam<const char*> {
 protected:
  // Problems differ in what `change` makes of them.
  template <typename Change>
  Optimum optimum(const Data& data, double cost, Change&& change) {
    const Folder folder;
    const Store store = write_store(folder, data, 16);
    Problem problem = problem_for(store, GetParam(), cost);
    change(problem);
    std::vector<Solution> solutions;
    const Summary summary = solve(problem, {.tolerance = kTolerance, .max_passes = 50000}, solutions);
    EXPECT_EQ(summary.termination, Termination::converged);
    Optimum found{.primal = summary.certificates.at(0).primal, .dual = summary.certificates.at(0).dual};
    EXPECT_LE(found.dual, found.primal);
    const std::vector<float>& weights = solutions.at(0).weights;
    for (uint32_t index = 1; index <= data.features; ++index)
      found.weights.push_back(weights.at(store.features().number(index)));
    if (problem.has_bias()) found.weights.push_back(weights.back());
    return found;
  }
  Optimum optimum(const Data& data, double cost = 1) {
    return optimum(data, cost, [](Problem&) {});
  }
};

// Both lie between the best and the best plus the tolerance; the objective is strongly convex, so weights as good as
// that are near each other too.
void expect_same(const Optimum& a, const Optimum& b, double turned = 1) {
  EXPECT_NEAR(a.primal, b.primal, kTolerance * a.primal);
  EXPECT_LE(a.dual, b.primal);
  EXPECT_LE(b.dual, a.primal);
  const double farthest = 2 * std::sqrt(2 * kTolerance * a.primal);
  ASSERT_EQ(a.weights.size(), b.weights.size());
  double distance = 0;
  double length = 0;
  for (size_t j = 0; j < a.weights.size(); ++j) {
    distance += std::pow(a.weights[j] - turned * b.weights[j], 2);
    length += a.weights[j] * a.weights[j];
  }
  EXPECT_LE(std::sqrt(distance), farthest);
  EXPECT_GT(std::sqrt(length), 10 * farthest) << "the weights are too small to tell anything";
}

TEST_P(Properties, ThePermutationOfRowsDoesNotMatter) {
  const Data data = make_data(80, 6, 1);
  const Optimum expected = optimum(data);
  std::mt19937 random(7);
  for (int i = 0; i < 3; ++i) {
    Data permuted = data;
    std::shuffle(permuted.rows.begin(), permuted.rows.end(), random);
    expect_same(expected, optimum(permuted));
  }
}

TEST_P(Properties, ThePermutationOfFeaturesPermutesTheWeights) {
  const Data data = make_data(80, 6, 2);
  Data turned = data;
  for (OwnedRow& row : turned.rows) {
    for (uint32_t& index : row.index) index = 7 - index;
    std::reverse(row.index.begin(), row.index.end());
    std::reverse(row.value.begin(), row.value.end());
  }
  Optimum other = optimum(turned);
  std::reverse(other.weights.begin(), other.weights.end());
  expect_same(optimum(data), other);
}

TEST_P(Properties, ARowTwiceIsARowOfTwiceTheWeight) {
  Data weighted = make_data(50, 5, 3);
  Data repeated = weighted;
  for (size_t i = 0; i < 50; i += 3) {
    weighted.rows[i].weight = 2;
    repeated.rows.push_back(repeated.rows[i]);
  }
  expect_same(optimum(weighted), optimum(repeated));
}

TEST_P(Properties, ARowOfNoWeightIsNoRow) {
  Data weighted = make_data(60, 5, 4);
  Data fewer = weighted;
  fewer.rows.clear();
  for (size_t i = 0; i < weighted.rows.size(); ++i) {
    if (i % 4 == 2)
      weighted.rows[i].weight = 0;
    else
      fewer.rows.push_back(weighted.rows[i]);
  }
  expect_same(optimum(weighted), optimum(fewer));
}

TEST_P(Properties, FlippedLabelsFlipTheWeights) {
  const Data data = make_data(70, 5, 5);
  Data flipped = data;
  for (OwnedRow& row : flipped.rows) row.label = -row.label;
  expect_same(optimum(data), optimum(flipped), -1);
  expect_same(optimum(data), optimum(data, 1, [](Problem& problem) { problem.tasks[0].positive = -1; }), -1);
}

TEST_P(Properties, ACostIsAWeightOfEveryClassOrOfEveryRow) {
  const Data data = make_data(70, 5, 6);
  const Optimum expected = optimum(data, 4);
  expect_same(expected, optimum(data, 0.5, [](Problem& problem) { problem.class_weights = {{1, 8.0}, {-1, 8.0}}; }));
  Data weighted = data;
  for (OwnedRow& row : weighted.rows) row.weight = 16;
  expect_same(expected, optimum(weighted, 0.25));
}

TEST_P(Properties, ScaledValuesAreAScaledCost) {
  const Data data = make_data(70, 5, 7);
  Data scaled = data;
  for (OwnedRow& row : scaled.rows)
    for (float& value : row.value) value *= 4;
  Optimum other = optimum(scaled, 1.0 / 16);
  other.primal *= 16;
  other.dual *= 16;
  expect_same(optimum(data, 1), other, 4);
}

TEST_P(Properties, ABiasIsAFeatureThatEveryRowHas) {
  const Data data = make_data(70, 5, 8);
  Data with_feature = data;
  with_feature.features = 6;
  for (OwnedRow& row : with_feature.rows) {
    row.index.push_back(6);
    row.value.push_back(1.5);
  }
  expect_same(optimum(data, 1, [](Problem& problem) { problem.bias = 1.5; }), optimum(with_feature));
}

TEST_P(Properties, AnUnusedFeatureHasNoWeight) {
  Data data = make_data(40, 5, 9);
  const Optimum expected = optimum(data);
  for (OwnedRow& row : data.rows)
    for (uint32_t& index : row.index) index += 100;
  data.features = 105;
  Optimum other = optimum(data);
  for (size_t j = 0; j < 100; ++j) EXPECT_EQ(other.weights[j], 0) << j;
  other.weights.erase(other.weights.begin(), other.weights.begin() + 100);
  expect_same(expected, other);
}

INSTANTIATE_TEST_SUITE_P(Losses, Properties, testing::Values("hinge", "squared-hinge", "logistic", "huber-hinge"));

}  // namespace
}  // namespace linblock
