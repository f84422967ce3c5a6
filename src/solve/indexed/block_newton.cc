#include "solve/indexed/block_newton.h"

#include <algorithm>
#include <cmath>

#include "objective/double_weights.h"

namespace linblock {

namespace {

constexpr int kMostSteps = 100;
constexpr int kMostProducts = 200;
constexpr double kResidual = 0.1;  // of the gradient, where conjugate gradients stop
constexpr int kLineSteps = 60;

}  // namespace

void BlockNewton::for_each(const std::function<void(size_t, const Row&, double, double)>& work) {
  for (size_t i = 0; i < block_.size(); ++i) {
    const Row row = rows_.row(block_[i], buffer_);
    work(i, row, costs_.sign(row), costs_.cost_of_learned(row));
  }
}

void BlockNewton::multiply(std::span<const double> direction, std::vector<double>& product) {
  product.assign(direction.begin(), direction.end());
  for_each([&](size_t i, const Row& row, double, double cost) {
    if (margins_[i] >= 1) return;
    add_row(row, problem_.bias, 2 * cost * score_of(row, problem_.bias, direction), product);
  });
}

// The best length: where the derivative along the direction, which only grows, is 0.
double BlockNewton::step_along(std::span<const double> w, std::span<const double> direction,
                               std::span<const double> v) {
  const double linear = product_of(w, direction) - product_of(v, direction);
  const double square = product_of(direction, direction);
  const auto derivative = [&](double t) {
    double sum = linear + t * square;
    for (size_t i = 0; i < block_.size(); ++i)
      sum -= 2 * row_costs_[i] * std::max(0.0, 1 - margins_[i] - t * changes_[i]) * changes_[i];
    return sum;
  };
  double low = 0;
  double high = 1;
  while (derivative(high) < 0 && high < 1e6) {
    low = high;
    high *= 2;
  }
  if (low == 0 && std::abs(derivative(1)) <= 1e-3 * std::abs(derivative(0))) return 1;
  for (int step = 0; step < kLineSteps && high - low > 1e-12 * high; ++step) {
    const double middle = 0.5 * (low + high);
    (derivative(middle) < 0 ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

void BlockNewton::solve(std::span<const uint32_t> block, std::vector<double>& w, double tolerance,
                        const std::function<bool()>& give_up) {
  block_ = block;
  const size_t n = w.size();
  margins_.assign(block.size(), 0);
  changes_.assign(block.size(), 0);
  row_costs_.assign(block.size(), 0);
  const double bias = problem_.bias;
  std::vector<double> v = w;
  for_each([&](size_t i, const Row& row, double sign, double cost) {
    add_row(row, bias, -rows_.alpha(block[i]) * sign, v);
    row_costs_[i] = cost;
  });
  std::vector<double> gradient(n);
  std::vector<double> diagonal(n);
  std::vector<double> direction(n);
  std::vector<double> residual(n);
  std::vector<double> conjugate(n);
  std::vector<double> product(n);
  for (int step = 0; step < kMostSteps && !give_up(); ++step) {
    for (size_t j = 0; j < n; ++j) gradient[j] = w[j] - v[j];
    diagonal.assign(n, 1);
    for_each([&](size_t i, const Row& row, double sign, double cost) {
      margins_[i] = sign * score_of(row, bias, w);
      if (margins_[i] >= 1) return;
      add_row(row, bias, -2 * cost * (1 - margins_[i]) * sign, gradient);
      for (size_t k = 0; k < row.index.size(); ++k)
        diagonal[row.index[k]] += 2 * cost * double{row.value[k]} * double{row.value[k]};
      if (problem_.has_bias()) diagonal.back() += 2 * cost * bias * bias;
    });
    const double norm = std::sqrt(product_of(gradient, gradient));
    if (norm <= tolerance * std::sqrt(product_of(w, w)) || norm <= 1e-14) break;
    // Preconditioned conjugate gradients on H d = -gradient.
    std::fill(direction.begin(), direction.end(), 0.0);
    for (size_t j = 0; j < n; ++j) {
      residual[j] = -gradient[j];
      conjugate[j] = residual[j] / diagonal[j];
    }
    double rz = product_of(residual, conjugate);
    for (int count = 0; count < kMostProducts && rz > 0 && !give_up(); ++count) {
      multiply(conjugate, product);
      const double length = rz / product_of(conjugate, product);
      for (size_t j = 0; j < n; ++j) {
        direction[j] += length * conjugate[j];
        residual[j] -= length * product[j];
      }
      if (std::sqrt(product_of(residual, residual)) <= kResidual * norm) break;
      double next = 0;
      for (size_t j = 0; j < n; ++j) next += residual[j] * residual[j] / diagonal[j];
      for (size_t j = 0; j < n; ++j) conjugate[j] = residual[j] / diagonal[j] + next / rz * conjugate[j];
      rz = next;
    }
    for_each(
        [&](size_t i, const Row& row, double sign, double) { changes_[i] = sign * score_of(row, bias, direction); });
    const double length = step_along(w, direction, v);
    for (size_t j = 0; j < n; ++j) w[j] += length * direction[j];
  }
  w = v;
  for_each([&](size_t i, const Row& row, double sign, double cost) {
    // The margins of the last step.
    const double alpha = 2 * cost * std::max(0.0, 1 - margins_[i]);
    rows_.alpha(block[i]) = alpha;
    if (alpha != 0) add_row(row, bias, alpha * sign, w);
  });
}

}  // namespace linblock
