// An independent solver for small problems: dense, in double, with the kernel matrix written out. It shares no code
// with src/solve and src/objective, and says how exact it is by its own duality gap.
#pragma once

#include <cmath>
#include <string>
#include <vector>

namespace linblock::test {

struct DenseRow {
  std::vector<double> x;  // with the bias feature, where there is one
  double y = 1;
  double cost = 1;
};

struct ReferenceOptimum {
  double primal = 0;
  double dual = 0;
  std::vector<double> weights;
};

inline constexpr double kReferenceHuber = 0.5;  // the default of huber-hinge

inline double reference_loss(const std::string& name, double margin) {
  if (name == "hinge") return std::max(0.0, 1 - margin);
  if (name == "squared-hinge") return std::pow(std::max(0.0, 1 - margin), 2);
  if (name == "huber-hinge") {
    if (margin >= 1 + kReferenceHuber) return 0;
    if (margin <= 1 - kReferenceHuber) return 1 - margin;
    return std::pow(1 + kReferenceHuber - margin, 2) / (4 * kReferenceHuber);
  }
  return margin > 0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin)) - margin;
}

inline double reference_dual_term(const std::string& name, double a, double cost) {
  if (name == "hinge") return a;
  if (name == "squared-hinge") return a - a * a / (4 * cost);
  if (name == "huber-hinge") return a * (1 + kReferenceHuber) - kReferenceHuber * a * a / cost;
  const auto term = [&](double z) { return z <= 0 ? 0 : -z * std::log(z / cost); };
  return term(a) + term(cost - a);
}

// The best a along one coordinate: the slope of the dual there falls, so bisection finds its zero whatever the loss.
inline double reference_step(const std::string& name, double a, double margin, double norm2, double cost) {
  const auto slope = [&](double z) {
    const double m = margin + (z - a) * norm2;
    if (name == "hinge") return 1 - m;
    if (name == "squared-hinge") return 1 - m - z / (2 * cost);
    if (name == "huber-hinge") return 1 + kReferenceHuber - m - 2 * kReferenceHuber * z / cost;
    return -m - std::log(z / (cost - z));
  };
  double low = name == "logistic" ? cost * 1e-14 : 0;
  double high = name == "hinge" || name == "huber-hinge" ? cost : name == "logistic" ? cost * (1 - 1e-14) : 1e12;
  if (slope(low) <= 0) return low;
  if (slope(high) >= 0) return high;
  for (int i = 0; i < 200; ++i) {
    const double middle = 0.5 * (low + high);
    (slope(middle) > 0 ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

inline ReferenceOptimum reference_optimum(const std::string& loss, const std::vector<DenseRow>& rows,
                                          double tolerance = 1e-9, int most_passes = 20000) {
  const size_t n = rows.empty() ? 0 : rows[0].x.size();
  std::vector<double> alpha(rows.size(), 0);
  ReferenceOptimum result;
  std::vector<double>& w = result.weights;
  w.assign(n, 0);
  const auto product = [&](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (size_t j = 0; j < a.size(); ++j) sum += a[j] * b[j];
    return sum;
  };
  for (int pass = 0; pass < most_passes; ++pass) {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].cost == 0) continue;
      const double next = reference_step(loss, alpha[i], rows[i].y * product(w, rows[i].x),
                                         product(rows[i].x, rows[i].x), rows[i].cost);
      for (size_t j = 0; j < n; ++j) w[j] += (next - alpha[i]) * rows[i].y * rows[i].x[j];
      alpha[i] = next;
    }
    if (pass % 20 != 19) continue;
    w.assign(n, 0);
    result.primal = result.dual = 0;
    for (size_t i = 0; i < rows.size(); ++i)
      for (size_t j = 0; j < n; ++j) w[j] += alpha[i] * rows[i].y * rows[i].x[j];
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].cost == 0) continue;
      result.primal += rows[i].cost * reference_loss(loss, rows[i].y * product(w, rows[i].x));
      result.dual += reference_dual_term(loss, alpha[i], rows[i].cost);
    }
    result.primal += 0.5 * product(w, w);
    result.dual -= 0.5 * product(w, w);
    if (result.primal - result.dual <= tolerance * std::max(1e-300, std::abs(result.dual))) break;
  }
  return result;
}

}  // namespace linblock::test
