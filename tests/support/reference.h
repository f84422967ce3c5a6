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

// With a bias that is not penalized, for rows without a bias feature: Newton's method on the primal, with the matrix
// written out, or for the hinge the method of multipliers with such steps. The bias is the last of the weights. Its own
// duality gap says how exact it is: at the end the alphas of both sides have the same sum.
class FreeReference {
 public:
  FreeReference(std::string loss, std::vector<DenseRow> rows) : loss_(std::move(loss)) {
    for (DenseRow& row : rows) {
      if (row.cost == 0) continue;
      row.x.push_back(1);
      rows_.push_back(std::move(row));
    }
    n_ = rows_.at(0).x.size();
    w_.assign(n_, 0);
    centers_.assign(rows_.size(), 0);
    double most = 0;
    for (const DenseRow& row : rows_) most = std::max(most, row.cost);
    penalty_ = most;
  }

  ReferenceOptimum find() {
    ReferenceOptimum best;
    for (int stage = 0; stage < (loss_ == "hinge" ? 60 : 1); ++stage) {
      while (step()) continue;
      best = {.weights = w_};
      std::vector<double> v(n_, 0);
      for (size_t i = 0; i < rows_.size(); ++i) {
        const Term term = term_of(i, margin(i, w_));
        best.primal += rows_[i].cost * reference_loss(loss_, margin(i, w_));
        best.dual += reference_dual_term(loss_, term.alpha, rows_[i].cost);
        for (size_t j = 0; j < n_; ++j) v[j] += term.alpha * rows_[i].y * rows_[i].x[j];
        centers_[i] = term.alpha;
      }
      for (size_t j = 0; j + 1 < n_; ++j) {
        best.primal += 0.5 * w_[j] * w_[j];
        best.dual -= 0.5 * v[j] * v[j];
      }
      if (best.primal - best.dual <= 1e-11 * best.primal) break;
      penalty_ *= 1.5;
    }
    return best;
  }

 private:
  struct Term {
    double value = 0;
    double alpha = 0;
    double curvature = 0;
  };

  double margin(size_t i, const std::vector<double>& w) const {
    double sum = 0;
    for (size_t j = 0; j < n_; ++j) sum += w[j] * rows_[i].x[j];
    return rows_[i].y * sum;
  }

  Term term_of(size_t i, double margin) const {
    const double cost = rows_[i].cost;
    const double value = cost * reference_loss(loss_, margin);
    if (loss_ == "hinge") {
      const double wanted = centers_[i] + penalty_ * (1 - margin);
      const double alpha = std::min(cost, std::max(0.0, wanted));
      return {alpha * (1 - margin) - (alpha - centers_[i]) * (alpha - centers_[i]) / (2 * penalty_), alpha,
              wanted > 0 && wanted < cost ? penalty_ : 0};
    }
    if (loss_ == "squared-hinge") return {value, 2 * cost * std::max(0.0, 1 - margin), margin < 1 ? 2 * cost : 0};
    if (loss_ == "huber-hinge") {
      const double slope = (1 + kReferenceHuber - margin) / (2 * kReferenceHuber);
      return {value, cost * std::min(1.0, std::max(0.0, slope)),
              slope > 0 && slope < 1 ? cost / (2 * kReferenceHuber) : 0};
    }
    const double share = 1 / (1 + std::exp(margin));
    return {value, cost * share, cost * share * (1 - share)};
  }

  double value_at(const std::vector<double>& w) const {
    double value = 0;
    for (size_t j = 0; j + 1 < n_; ++j) value += 0.5 * w[j] * w[j];
    for (size_t i = 0; i < rows_.size(); ++i) value += term_of(i, margin(i, w)).value;
    return value;
  }

  // False: it gets no better.
  bool step() {
    std::vector<double> gradient(w_);
    std::vector<std::vector<double>> matrix(n_, std::vector<double>(n_, 0));
    gradient[n_ - 1] = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const Term term = term_of(i, margin(i, w_));
      for (size_t j = 0; j < n_; ++j) {
        gradient[j] -= term.alpha * rows_[i].y * rows_[i].x[j];
        for (size_t k = 0; k < n_; ++k) matrix[j][k] += term.curvature * rows_[i].x[j] * rows_[i].x[k];
      }
    }
    for (size_t j = 0; j + 1 < n_; ++j) matrix[j][j] += 1;
    matrix[n_ - 1][n_ - 1] += matrix[n_ - 1][n_ - 1] > 0 ? 0 : 1e-3 * penalty_;
    const std::vector<double> direction = solve(std::move(matrix), gradient);
    const double now = value_at(w_);
    double slope = 0;
    for (size_t j = 0; j < n_; ++j) slope -= gradient[j] * direction[j];
    for (double length = 1; length > 1e-12; length /= 2) {
      std::vector<double> next(w_);
      for (size_t j = 0; j < n_; ++j) next[j] -= length * direction[j];
      const double value = value_at(next);
      if (!(value < now) || !(value <= now + 1e-4 * length * slope)) continue;
      w_ = next;
      return true;
    }
    return false;
  }

  // Elimination with pivots from the diagonal.
  static std::vector<double> solve(std::vector<std::vector<double>> matrix, std::vector<double> right) {
    const size_t n = right.size();
    for (size_t p = 0; p < n; ++p) {
      for (size_t i = p + 1; i < n; ++i) {
        const double factor = matrix[i][p] / matrix[p][p];
        for (size_t k = p; k < n; ++k) matrix[i][k] -= factor * matrix[p][k];
        right[i] -= factor * right[p];
      }
    }
    for (size_t p = n; p-- > 0;) {
      for (size_t k = p + 1; k < n; ++k) right[p] -= matrix[p][k] * right[k];
      right[p] /= matrix[p][p];
    }
    return right;
  }

  std::string loss_;
  std::vector<DenseRow> rows_;
  size_t n_ = 0;
  std::vector<double> w_;
  std::vector<double> centers_;  // of the hinge: the alphas of the stage before
  double penalty_ = 1;
};

inline ReferenceOptimum reference_free_optimum(const std::string& loss, std::vector<DenseRow> rows) {
  return FreeReference(loss, std::move(rows)).find();
}

}  // namespace linblock::test
