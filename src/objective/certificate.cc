#include "objective/certificate.h"

#include <algorithm>
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

void Certifier::begin_pass(size_t pass, std::span<const float> weights, std::span<const float> others) {
  weights_ = weights;
  others_ = others;
  if (pass == 0) {
    norm_ = std::sqrt(squared_norm_of(weights).value);
    norm_of_others_ = std::sqrt(squared_norm_of(others).value);
  }
  if (!makes_v()) return;
  begin_ = pass * features_at_once_;
  v_.assign(std::min(features_at_once_, problem_.weights() - begin_), 0.0);
}

double Certifier::margin(const Row& row, std::span<const float> weights) const {
  const double sum = exact_dot(row.index, row.value, weights.data());
  return costs_.sign(row) * (problem_.has_bias() ? sum + problem_.bias * double{weights.back()} : sum);
}

CertificateSums Certifier::sums_of(const Chunk& chunk, size_t first_row, size_t end_row, std::span<const double> duals,
                                   RowBuffer& buffer) const {
  CertificateSums sums;
  std::visit(
      [&](const auto& loss) {
        for (size_t i = first_row; i < end_row; ++i) {
          const Row row = chunk.row(i, buffer);
          const double cost = costs_.cost(row);
          if (cost == 0) continue;
          const size_t terms = row.index.size();
          const double length = std::sqrt(squared_norm(row, problem_.bias));
          const double own = margin(row, weights_);
          sums.losses.add(loss, cost, own, norm_ * length, terms);
          if (!others_.empty())
            sums.losses_of_others.add(loss, cost, margin(row, others_), norm_of_others_ * length, terms);
          if (duals.empty() || duals[i] == 0) continue;
          sums.duals.add(duals[i], loss.dual_value(duals[i], cost), length);
          const double product = duals[i] * own;
          sums.products.add(product);
          sums.products_rounding += duals[i] * product_rounding(static_cast<double>(terms)) * norm_ * length +
                                    kRoundingsPerTerm * kUnit * std::abs(product);
        }
      },
      problem_.loss);
  return sums;
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

Certificate Certifier::finish(std::span<const float> weights, const LossSum& losses) const {
  const SquaredNorm primal_w2 = squared_norm_of(weights);
  if (makes_v()) return certificate_of(primal_w2, losses, sums_.duals, v2_);
  return certificate_without_v(primal_w2, losses, sums_, squared_norm_of(weights_), *drift_bound_);
}

}  // namespace linblock
