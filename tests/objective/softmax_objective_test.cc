// Sums over rows at fixed weights: against the objective in long double, differences of it, and any other weights.
#include "objective/softmax_objective.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/softmax_reference.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

struct Case {
  double bias = -1;
  bool free_bias = false;
  bool keeps_rows = true;
  double scale = 0.3;  // of the weights
};

class SoftmaxSums : public testing::TestWithParam<Case> {
 protected:
  SoftmaxSums() {
    for (size_t i = 0; i < data_.rows.size(); ++i) data_.rows[i].weight = static_cast<float>(i % 4);
    store_ = write_store(folder_, data_, 7);
    problem_ = class_problem(store_, 0.7, GetParam().bias);
    problem_.loss = Logistic{};
    problem_.free_bias = GetParam().free_bias;
    // By feature number, as the solver sees them.
    const std::vector<OwnedRow> numbered = rows_in_order(store_);
    reference_.classes = problem_.classes();
    reference_.free_bias = GetParam().free_bias;
    const ClassNumbers numbers(store_.info());
    for (const OwnedRow& row : numbered) {
      DenseRow dense_row;
      dense_row.x.assign(problem_.weights(), 0);
      for (size_t k = 0; k < row.index.size(); ++k) dense_row.x[row.index[k]] = double{row.value[k]};
      if (problem_.has_bias()) dense_row.x.back() = problem_.bias;
      dense_row.cost = 0.7 * double{row.weight};
      reference_.rows.push_back(dense_row);
      reference_.labels.push_back(numbers[row.label]);
    }
  }

  std::vector<double> random_vector(uint32_t seed, double scale) const {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::vector<double> all(problem_.weights() * problem_.classes());
    for (double& one : all) one = scale * normal(random);
    return all;
  }
  static std::vector<Real> real(const std::vector<double>& from) { return {from.begin(), from.end()}; }
  static double norm(const std::vector<double>& of) {
    return std::sqrt(squared_norm_of(std::span<const double>(of)).value);
  }

  void read(SoftmaxObjective& sums, size_t accumulators) const {
    for (uint32_t number = 0; number < store_.chunks().size(); ++number) {
      Chunk chunk;
      store_.read(number, chunk);
      const Block block{.chunks = {&chunk}, .numbers = {number}};
      for (size_t i = 0; i < accumulators; ++i) sums.add(block, i);
    }
  }

  const Folder folder_;
  Data data_ = make_class_data(60, 5, 4, 1);
  Store store_;
  Problem problem_;
  SoftmaxProblem reference_;
};

TEST_P(SoftmaxSums, AreTheObjectiveItsGradientAndItsDiagonal) {
  const std::vector<double> weights = random_vector(1, GetParam().scale);
  SoftmaxObjective sums(problem_, problem_.tasks[0], 3, GetParam().keeps_rows);
  sums.begin_evaluation(weights, norm(weights));
  read(sums, 3);
  Real value = Real{sums.losses().value()};
  for (size_t i = 0; i < weights.size(); ++i)
    value += reference_.penalty(i / reference_.classes) * Real{weights[i]} * Real{weights[i]} / 2;
  const Real exact = reference_.value(real(weights));
  EXPECT_LE(std::abs(value - exact), Real{1e-13} * exact);
  const std::vector<Real> gradient = reference_.gradient(real(weights));
  for (size_t i = 0; i < weights.size(); ++i) {
    const double penalized = static_cast<double>(reference_.penalty(i / reference_.classes)) * weights[i];
    // With a free bias p is rounded to float.
    EXPECT_NEAR(penalized - sums.sum(i), static_cast<double>(gradient[i]), GetParam().free_bias ? 1e-5 : 1e-10);
  }
  const double step = 1e-4;
  for (size_t i = 0; i < weights.size(); ++i) {
    std::vector<Real> before = real(weights);
    std::vector<Real> after = before;
    before[i] -= step;
    after[i] += step;
    const Real curvature = (reference_.gradient(after)[i] - reference_.gradient(before)[i]) / (2 * step);
    EXPECT_NEAR(sums.diagonal(i) + static_cast<double>(reference_.penalty(i / reference_.classes)),
                static_cast<double>(curvature), 1e-4 * static_cast<double>(curvature));
  }
}

TEST_P(SoftmaxSums, MultiplyByTheHessian) {
  const std::vector<double> weights = random_vector(2, GetParam().scale);
  const std::vector<double> wanted = random_vector(3, 1);
  const std::vector<float> direction(wanted.begin(), wanted.end());
  SoftmaxObjective sums(problem_, problem_.tasks[0], 2, GetParam().keeps_rows);
  sums.begin_evaluation(weights, norm(weights));
  read(sums, 2);
  sums.begin_product(weights, direction);
  read(sums, 2);
  const Real step = 1e-5L;
  std::vector<Real> before = real(weights);
  std::vector<Real> after = before;
  for (size_t i = 0; i < weights.size(); ++i) {
    before[i] -= step * Real{direction[i]};
    after[i] += step * Real{direction[i]};
  }
  const std::vector<Real> low = reference_.gradient(before);
  const std::vector<Real> high = reference_.gradient(after);
  for (size_t i = 0; i < weights.size(); ++i) {
    const Real product = (high[i] - low[i]) / (2 * step);
    const double own = static_cast<double>(reference_.penalty(i / reference_.classes)) * double{direction[i]};
    EXPECT_NEAR(own + sums.sum(i), static_cast<double>(product), 1e-4 + 1e-5 * std::abs(static_cast<double>(product)));
  }
}

INSTANTIATE_TEST_SUITE_P(Some, SoftmaxSums,
                         testing::Values(Case{}, Case{.bias = 1}, Case{.bias = 2, .free_bias = true},
                                         Case{.bias = 1, .keeps_rows = false}, Case{.scale = 0}, Case{.scale = 20}));

}  // namespace
}  // namespace linblock
