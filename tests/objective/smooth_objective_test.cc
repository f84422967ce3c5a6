// Value, gradient, Hessian products and bounds against finite differences and the definitions, written out densely.
#include "objective/smooth_objective.h"

#include <gtest/gtest.h>

#include "support/chunks.h"
#include "support/memory_folder.h"
#include "support/small_problems.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

class RowSumsOf : public testing::TestWithParam<std::tuple<const char*, size_t>> {
 protected:
  RowSumsOf() {
    data_.rows[3].weight = 0.25F;
    data_.rows[5].weight = 2;
  }
  static std::string loss() { return std::get<0>(GetParam()); }
  static size_t accumulators() { return std::get<1>(GetParam()); }

  void pass(SmoothObjective& sums) const {
    Block block;
    for (uint32_t i = 0; i < chunks_.size(); ++i) {
      block.chunks.push_back(&chunks_[i]);
      block.numbers.push_back(i);
    }
    for (size_t accumulator = 0; accumulator < accumulators(); ++accumulator) sums.add(block, accumulator);
  }
  double value_at(const std::vector<double>& weights) const {
    double value = 0;
    for (const double weight : weights) value += 0.5 * weight * weight;
    for (const DenseRow& row : rows_) {
      double sum = 0;
      for (size_t j = 0; j < row.x.size(); ++j) sum += weights[place(j)] * row.x[j];
      value += row.cost * reference_loss(loss(), row.y * sum);
    }
    return value;
  }
  // Dense rows have features from 0 on, and the bias last; weights have one more, since indices begin with 1.
  static size_t place(size_t dense) { return dense + 1; }
  std::vector<double> some_weights(uint32_t seed) const {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::vector<double> weights(problem_.weights());
    for (double& weight : weights) weight = 0.3 * normal(random);
    weights[0] = 0;
    return weights;
  }
  std::vector<double> gradient_at(const std::vector<double>& weights) const {
    SmoothObjective sums(problem_, problem_.tasks[0], accumulators());
    sums.begin_evaluation(weights, false);
    pass(sums);
    std::vector<double> gradient(weights.size());
    for (size_t j = 0; j < weights.size(); ++j) gradient[j] = weights[j] - sums.v(j);
    return gradient;
  }

  Data data_ = make_data(60, 8, 3);
  const MemoryFolder folder_;
  const Store store_ = write_store(folder_, data_, 7);
  const std::vector<Chunk> chunks_ = chunks_of(store_);
  const Problem problem_ = [this] {
    Problem problem = problem_for(store_, loss(), 0.7, 2);
    problem.class_weights = {{-1, 1.5}};
    return problem;
  }();
  const std::vector<DenseRow> rows_ = dense(data_, 0.7, 2, {{-1, 1.5}});
};

TEST_P(RowSumsOf, HaveTheValueOfTheirDefinition) {
  const std::vector<double> weights = some_weights(1);
  SmoothObjective sums(problem_, problem_.tasks[0], accumulators());
  sums.begin_evaluation(weights, false);
  pass(sums);
  double square = 0;
  for (const double weight : weights) square += weight * weight;
  EXPECT_NEAR(0.5 * square + sums.losses(), value_at(weights), 1e-11);
}

TEST_P(RowSumsOf, HaveTheGradientOfFiniteDifferences) {
  const std::vector<double> weights = some_weights(2);
  const std::vector<double> gradient = gradient_at(weights);
  for (size_t j = 1; j < weights.size(); ++j) {
    constexpr double kStep = 1e-5;
    std::vector<double> up = weights;
    std::vector<double> down = weights;
    up[j] += kStep;
    down[j] -= kStep;
    EXPECT_NEAR(gradient[j], (value_at(up) - value_at(down)) / (2 * kStep), 1e-5) << "weight " << j;
  }
}

// At random weights no margin of these rows is so near to 1 that the corner of the squared hinge's derivative is met.
TEST_P(RowSumsOf, HaveTheHessianOfFiniteDifferences) {
  const std::vector<double> weights = some_weights(3);
  const std::vector<double> direction = some_weights(4);
  SmoothObjective sums(problem_, problem_.tasks[0], accumulators());
  sums.begin_evaluation(weights, false);
  pass(sums);
  std::vector<double> diagonal(weights.size());
  for (size_t j = 0; j < weights.size(); ++j) diagonal[j] = 1 + sums.diagonal(j);
  for (size_t j = 0; j < weights.size(); ++j) sums.set_direction(j, static_cast<float>(direction[j]));
  sums.begin_product();
  pass(sums);
  constexpr double kStep = 1e-6;
  std::vector<double> up = weights;
  std::vector<double> down = weights;
  for (size_t j = 0; j < weights.size(); ++j) {
    up[j] += kStep * direction[j];
    down[j] -= kStep * direction[j];
  }
  const std::vector<double> above = gradient_at(up);
  const std::vector<double> below = gradient_at(down);
  for (size_t j = 1; j < weights.size(); ++j) {
    EXPECT_NEAR(sums.product(j), (above[j] - below[j]) / (2 * kStep), 1e-4) << "weight " << j;
    std::vector<double> own_up = weights;
    std::vector<double> own_down = weights;
    own_up[j] += kStep;
    own_down[j] -= kStep;
    EXPECT_NEAR(diagonal[j], (gradient_at(own_up)[j] - gradient_at(own_down)[j]) / (2 * kStep), 1e-4) << "weight " << j;
  }
}

TEST_P(RowSumsOf, BoundTheOptimumFromBelowAndByNoMoreThanHalfTheSquaredGradient) {
  const double best = reference_optimum(loss(), rows_).primal;
  for (uint32_t seed = 1; seed < 20; ++seed) {
    const std::vector<double> weights = some_weights(seed);
    SmoothObjective sums(problem_, problem_.tasks[0], accumulators());
    sums.begin_evaluation(weights, false);
    pass(sums);
    double v2 = 0;
    double gradient2 = 0;
    for (size_t j = 0; j < weights.size(); ++j) {
      v2 += sums.v(j) * sums.v(j);
      gradient2 += std::pow(weights[j] - sums.v(j), 2);
    }
    EXPECT_LE(sums.dual({.value = v2}), best * (1 + 1e-8));
    EXPECT_GE(sums.dual({.value = v2}), value_at(weights) - 0.5 * gradient2 - 1e-9);
  }
}

TEST_P(RowSumsOf, KnowTheLossesBetweenTwoEvaluations) {
  const std::vector<double> from = some_weights(5);
  const std::vector<double> to = some_weights(6);
  SmoothObjective sums(problem_, problem_.tasks[0], accumulators());
  sums.begin_evaluation(from, false);
  pass(sums);
  sums.begin_evaluation(to, true);
  pass(sums);
  const auto losses_at = [&](double share) {
    std::vector<double> between = from;
    double square = 0;
    for (size_t j = 0; j < from.size(); ++j) {
      between[j] += share * (to[j] - from[j]);
      square += between[j] * between[j];
    }
    return value_at(between) - 0.5 * square;
  };
  for (const double share : {0.0, 0.3, 0.9, 1.0}) {
    constexpr double kStep = 1e-5;
    EXPECT_NEAR(sums.line_derivative(share), (losses_at(share + kStep) - losses_at(share - kStep)) / (2 * kStep), 1e-3)
        << share;
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, RowSumsOf,
                         testing::Combine(testing::Values("squared-hinge", "logistic"), testing::Values(1U, 2U, 5U)),
                         [](const auto& one) {
                           return std::string(std::get<0>(one.param) == std::string("logistic") ? "Logistic"
                                                                                                : "SquaredHinge") +
                                  std::to_string(std::get<1>(one.param));
                         });

}  // namespace
}  // namespace linblock
