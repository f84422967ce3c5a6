// Multinomial logistic regression on small, dense problems: the objective in long double, and its optimum by Newton's
// method with the whole Hessian. It shares no code with src/solve and src/objective.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "support/class_problems.h"

namespace linblock::test {

using Real = long double;

struct SoftmaxProblem {
  std::vector<DenseRow> rows = {};
  std::vector<size_t> labels = {};  // numbers of classes
  size_t classes = 0;
  bool free_bias = false;  // the last feature is not penalized

  size_t features() const { return rows.empty() ? 0 : rows[0].x.size(); }
  Real penalty(size_t feature) const { return free_bias && feature + 1 == features() ? 0 : 1; }

  std::vector<Real> scores(const DenseRow& row, const std::vector<Real>& weights) const {
    std::vector<Real> all(classes, 0);
    for (size_t j = 0; j < row.x.size(); ++j)
      for (size_t c = 0; c < classes; ++c) all[c] += Real{row.x[j]} * weights[j * classes + c];
    return all;
  }
  std::vector<Real> shares(const DenseRow& row, const std::vector<Real>& weights) const {
    std::vector<Real> all = scores(row, weights);
    const Real most = *std::max_element(all.begin(), all.end());
    Real sum = 0;
    for (Real& share : all) sum += share = std::exp(share - most);
    for (Real& share : all) share /= sum;
    return all;
  }
  // weights[feature * classes + class]
  Real value(const std::vector<Real>& weights) const {
    Real sum = 0;
    for (size_t i = 0; i < weights.size(); ++i) sum += penalty(i / classes) * weights[i] * weights[i] / 2;
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::vector<Real> all = scores(rows[i], weights);
      const Real most = *std::max_element(all.begin(), all.end());
      Real total = 0;
      for (const Real score : all) total += std::exp(score - most);
      sum += Real{rows[i].cost} * (std::log(total) + most - all[labels[i]]);
    }
    return sum;
  }
  std::vector<Real> gradient(const std::vector<Real>& weights) const {
    std::vector<Real> all(weights.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = penalty(i / classes) * weights[i];
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::vector<Real> p = shares(rows[i], weights);
      for (size_t j = 0; j < features(); ++j)
        for (size_t c = 0; c < classes; ++c)
          all[j * classes + c] += Real{rows[i].cost} * (p[c] - (labels[i] == c ? 1 : 0)) * Real{rows[i].x[j]};
    }
    return all;
  }
};

inline SoftmaxProblem softmax_problem(const Data& data, double cost, double bias, bool free_bias = false,
                                      const std::map<int32_t, double>& weights = {}) {
  std::vector<int32_t> classes;
  for (const OwnedRow& row : data.rows) classes.push_back(row.label);
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  SoftmaxProblem problem{.rows = dense(data, cost, bias, weights), .classes = classes.size(), .free_bias = free_bias};
  for (const OwnedRow& row : data.rows)
    problem.labels.push_back(
        static_cast<size_t>(std::lower_bound(classes.begin(), classes.end(), row.label) - classes.begin()));
  return problem;
}

// The solution of matrix * x = right, a few unknowns, by elimination with pivots.
inline std::vector<Real> solve_dense(std::vector<std::vector<Real>> matrix, std::vector<Real> right) {
  const size_t n = right.size();
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < n; ++i)
      if (std::abs(matrix[i][k]) > std::abs(matrix[pivot][k])) pivot = i;
    std::swap(matrix[k], matrix[pivot]);
    std::swap(right[k], right[pivot]);
    for (size_t i = k + 1; i < n; ++i) {
      const Real share = matrix[i][k] / matrix[k][k];
      if (share == 0) continue;
      for (size_t j = k; j < n; ++j) matrix[i][j] -= share * matrix[k][j];
      right[i] -= share * right[k];
    }
  }
  for (size_t k = n; k-- > 0;) {
    for (size_t j = k + 1; j < n; ++j) right[k] -= matrix[k][j] * right[j];
    right[k] /= matrix[k][k];
  }
  return right;
}

// As exact as long double allows: until a step no longer lowers the objective.
inline Real softmax_optimum(const SoftmaxProblem& problem) {
  const size_t n = problem.features() * problem.classes;
  std::vector<Real> weights(n, 0);
  Real value = problem.value(weights);
  for (int step = 0; step < 200; ++step) {
    const std::vector<Real> gradient = problem.gradient(weights);
    std::vector<std::vector<Real>> hessian(n, std::vector<Real>(n, 0));
    // All biases may rise together where they are free: a little of a penalty decides by how much.
    for (size_t i = 0; i < n; ++i) hessian[i][i] = problem.penalty(i / problem.classes) == 0 ? Real{1e-9} : Real{1};
    for (const DenseRow& row : problem.rows) {
      const std::vector<Real> p = problem.shares(row, weights);
      for (size_t a = 0; a < n; ++a)
        for (size_t b = 0; b < n; ++b) {
          const size_t c = a % problem.classes;
          const size_t d = b % problem.classes;
          hessian[a][b] += Real{row.cost} * ((c == d ? p[c] : 0) - p[c] * p[d]) * Real{row.x[a / problem.classes]} *
                           Real{row.x[b / problem.classes]};
        }
    }
    const std::vector<Real> newton = solve_dense(hessian, gradient);
    std::vector<Real> next(n);
    Real next_value = 0;
    Real share = 1;
    for (; share > Real{1e-12}; share /= 2) {
      for (size_t i = 0; i < n; ++i) next[i] = weights[i] - share * newton[i];
      next_value = problem.value(next);
      if (next_value < value) break;
    }
    if (!(next_value < value)) break;
    weights = next;
    value = next_value;
  }
  return value;
}

}  // namespace linblock::test
