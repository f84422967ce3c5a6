#include "objective/certificate.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/dot.h"
#include "objective/double_weights.h"
#include "objective/drift.h"

namespace linblock {

namespace {

constexpr double kBoundsThemselves = 1.01;  // they are sums in double, too

}  // namespace

double relative_gap(double primal, double dual) {
  if (dual > 0) return (primal - dual) / dual;
  // So that a sum that is not a number certifies nothing.
  return primal <= dual ? 0 : std::numeric_limits<double>::infinity();
}

Certificate certificate_of(const SquaredNorm& w2, const LossSum& losses, const DualSum& duals, const SquaredNorm& v2) {
  const double primal = 0.5 * w2.value + losses.value();
  const double rounding = losses.rounding() + 0.5 * w2.rounding + duals.values_rounding() +
                          0.5 * duals.v2_rounding(v2) +
                          4 * kUnit * (primal + std::abs(duals.values()) + 0.5 * v2.value);
  return {.primal = primal, .dual = duals.values() - 0.5 * v2.value - kBoundsThemselves * rounding};
}

Certificate certificate_without_v(const SquaredNorm& primal_w2, const LossSum& losses, const CertificateSums& sums,
                                  const SquaredNorm& w2, double drift_bound) {
  const double primal = 0.5 * primal_w2.value + losses.value();
  const double values = sums.duals.values();
  const double products = sums.products.value();
  const double rounding = losses.rounding() + 0.5 * primal_w2.rounding + 0.5 * w2.rounding +
                          sums.duals.values_rounding() + sums.products_rounding + sums.products.rounding() +
                          4 * kUnit * (primal + std::abs(values) + std::abs(products) + 0.5 * w2.value);
  const double drift = 0.5 * drift_bound * drift_bound;
  const double dual = values - products + 0.5 * w2.value - kBoundsThemselves * (rounding + drift);
  // Where nothing is known of the drift, the dual says nothing.
  return {.primal = primal, .dual = std::isfinite(dual) ? dual : -std::numeric_limits<double>::infinity()};
}

Row part_of(const Row& row, size_t begin, size_t end) {
  const auto first = std::lower_bound(row.index.begin(), row.index.end(), begin);
  const auto last = std::lower_bound(first, row.index.end(), end);
  Row part = row;
  part.index = {first, last};
  part.value = row.value.subspan(static_cast<size_t>(first - row.index.begin()), part.index.size());
  return part;
}

double margin_of(const Row& row, double sign, double bias, std::span<const float> weights) {
  double sum = dot(row.index, row.value, weights.data());
  if (!std::isfinite(sum)) [[unlikely]]
    sum = exact_dot(row.index, row.value, weights.data());
  if (bias >= 0) sum += bias * double{weights.back()};
  return sign * sum;
}

Certifier::Certifier(const Problem& problem, const Task& task, size_t features_at_once,
                     std::optional<double> drift_bound)
    : problem_(problem),
      costs_(problem, task),
      drift_bound_(drift_bound),
      features_at_once_(std::max<size_t>(1, std::min(features_at_once, problem.weights()))),
      passes_(drift_bound ? 1 : std::max<size_t>(1, (problem.weights() + features_at_once_ - 1) / features_at_once_)) {}

void Certifier::begin_pass(size_t pass, std::span<const float> weights, std::span<const float> mean) {
  weights_ = weights;
  mean_ = mean;
  if (pass == 0) {
    w2_ = squared_norm_of(weights);
    w2_of_mean_ = squared_norm_of(mean);
    norm_ = std::sqrt(w2_.value);
    norm_of_mean_ = std::sqrt(w2_of_mean_.value);
  }
  if (!makes_v()) return;
  begin_ = pass * features_at_once_;
  v_.assign(std::min(features_at_once_, problem_.weights() - begin_), 0.0);
}

// `product`: w.x, and `length`: |x|.
template <Loss L>
void Certifier::add_row(const L& loss, const Row& row, double cost, double length, double product, double alpha,
                        CertificateSums& sums) const {
  const size_t terms = row.index.size();
  const double sign = costs_.sign(row);
  const double row_margin = sign * product;
  sums.losses.add(loss, cost, row_margin, norm_ * length, terms);
  if (!mean_.empty()) {
    double score = exact_dot(row.index, row.value, mean_.data());
    if (problem_.has_bias()) score += problem_.bias * double{mean_.back()};
    sums.losses_of_mean.add(loss, cost, sign * score, norm_of_mean_ * length, terms);
  }
  if (alpha == 0) return;
  sums.duals.add(alpha, loss.dual_value(alpha, cost), length);
  const double part = alpha * row_margin;
  sums.products.add(part);
  sums.products_rounding += alpha * product_rounding(static_cast<double>(terms)) * norm_ * length +
                            kRoundingsPerTerm * kUnit * std::abs(part);
}

void Certifier::find_sums(std::span<const Certifier> group, const WeightGroup& weights, const Chunk& chunk,
                          size_t first_row, size_t end_row, std::span<const std::span<const double>> duals,
                          RowBuffer& buffer, std::span<CertificateSums> sums) {
  const Problem& problem = group.front().problem_;
  std::array<double, kMostSideBySide> products;
  std::array<double, kMostSideBySide> costs;
  std::visit(
      [&](const auto& loss) {
        for (size_t i = first_row; i < end_row; ++i) {
          const Row row = chunk.row(i, buffer);
          bool counts = false;
          for (size_t c = 0; c < group.size(); ++c) {
            costs[c] = group[c].costs_.cost(row);
            counts = counts || costs[c] != 0;
          }
          if (!counts) continue;
          const double length = std::sqrt(squared_norm(row, problem.bias));
          weights.exact_products(row, products.data());
          for (size_t c = 0; c < group.size(); ++c)
            if (costs[c] != 0)
              group[c].add_row(loss, row, costs[c], length, products[c], duals[c].empty() ? 0 : duals[c][i], sums[c]);
        }
      },
      problem.loss);
}

void Certifier::add_to_v(const Chunk& chunk, std::span<const double> duals, size_t begin, size_t end,
                         RowBuffer& buffer) {
  const size_t first = begin_ + begin;
  const size_t last = begin_ + end;
  const bool whole = first == 0 && last == problem_.weights();
  for (size_t i = 0; i < chunk.rows(); ++i) {
    if (duals[i] == 0) continue;
    const Row row = chunk.row(i, buffer);
    if (costs_.cost(row) == 0) continue;
    const double scale = costs_.sign(row) * duals[i];
    const Row part = whole ? row : part_of(row, first, last);
    for (size_t k = 0; k < part.index.size(); ++k) v_[part.index[k] - begin_] += scale * double{part.value[k]};
    if (problem_.has_bias() && last == problem_.weights()) v_.back() += scale * problem_.bias;
  }
}

void Certifier::end_pass() {
  if (!makes_v()) return;
  v2_ += squared_norm_of(std::span<const double>(v_));
  for (size_t i = 0; i < v_.size(); ++i) {
    const double away = v_[i] - double{weights_[begin_ + i]};
    squared_drift_ += away * away;
  }
}

double Certifier::drift() const {
  return drift_bound_ ? *drift_bound_ : std::sqrt(squared_drift_) * (1 + 1e-6) + sums_.duals.v_rounding();
}

double Certifier::drift_of_v() const {
  return DriftBound::of_rounded(std::sqrt(v2_.value), sums_.duals.v_rounding(), problem_.weights());
}

Certificate Certifier::finish(const SquaredNorm& w2, const LossSum& losses) const {
  if (makes_v()) return certificate_of(w2, losses, sums_.duals, v2_);
  return certificate_without_v(w2, losses, sums_, w2_, *drift_bound_);
}

}  // namespace linblock
