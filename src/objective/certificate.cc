#include "objective/certificate.h"

#include <algorithm>
#include <cmath>

#include "base/dot.h"
#include "objective/double_weights.h"

namespace linblock {

double relative_gap(double primal, double dual) {
  if (dual > 0) return (primal - dual) / dual;
  // So that a sum that is not a number certifies nothing.
  return primal <= dual ? 0 : std::numeric_limits<double>::infinity();
}

Certificate certificate_of(const SquaredNorm& w2, const LossSum& losses, const DualSum& duals, const SquaredNorm& v2) {
  constexpr double kBoundsThemselves = 1.01;  // they are sums in double, too
  const double primal = 0.5 * w2.value + losses.value();
  const double rounding = losses.rounding() + 0.5 * w2.rounding + duals.values_rounding() +
                          0.5 * duals.v2_rounding(v2) +
                          4 * kUnit * (primal + std::abs(duals.values()) + 0.5 * v2.value);
  return {.primal = primal, .dual = duals.values() - 0.5 * v2.value - kBoundsThemselves * rounding};
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

Certifier::Certifier(const Problem& problem, const Task& task, size_t features_at_once)
    : problem_(problem),
      costs_(problem, task),
      features_at_once_(std::max<size_t>(1, std::min(features_at_once, problem.weights()))),
      passes_(std::max<size_t>(1, (problem.weights() + features_at_once_ - 1) / features_at_once_)) {}

void Certifier::begin_pass(size_t pass) {
  begin_ = pass * features_at_once_;
  v_.assign(std::min(features_at_once_, problem_.weights() - begin_), 0.0);
}

double Certifier::margin(const Row& row, std::span<const float> weights) const {
  const double sum = exact_dot(row.index, row.value, weights.data());
  return costs_.sign(row) * (problem_.has_bias() ? sum + problem_.bias * double{weights.back()} : sum);
}

void Certifier::add_losses(const Chunk& chunk, std::span<const double> duals, std::span<const float> weights,
                           std::span<const float> others) {
  if (norm_ < 0) norm_ = std::sqrt(squared_norm_of(weights).value);
  if (norm_of_others_ < 0) norm_of_others_ = std::sqrt(squared_norm_of(others).value);
  std::visit(
      [&](const auto& loss) {
        for (size_t i = 0; i < chunk.rows(); ++i) {
          const Row row = chunk.row(i, losses_buffer_);
          const double cost = costs_.cost(row);
          if (cost == 0) continue;
          const double length = std::sqrt(squared_norm(row, problem_.bias));
          losses_.add(loss, cost, margin(row, weights), norm_ * length, row.index.size());
          if (!others.empty())
            losses_of_others_.add(loss, cost, margin(row, others), norm_of_others_ * length, row.index.size());
          if (!duals.empty() && duals[i] != 0) duals_.add(duals[i], loss.dual_value(duals[i], cost), length);
        }
      },
      problem_.loss);
}

void Certifier::add_duals(const Chunk& chunk, std::span<const double> duals) {
  const size_t end = begin_ + v_.size();
  for (size_t i = 0; i < chunk.rows(); ++i) {
    if (duals[i] == 0) continue;
    const Row row = chunk.row(i, duals_buffer_);
    if (costs_.cost(row) == 0) continue;
    const double scale = costs_.sign(row) * duals[i];
    // The whole row where there is but one range.
    const Row part = passes_ > 1 ? part_of(row, begin_, end) : row;
    for (size_t k = 0; k < part.index.size(); ++k) v_[part.index[k] - begin_] += scale * double{part.value[k]};
    if (problem_.has_bias() && end == problem_.weights()) v_.back() += scale * problem_.bias;
  }
}

void Certifier::end_pass(std::span<const float> weights) {
  v2_ += squared_norm_of(std::span<const double>(v_));
  for (size_t i = 0; i < v_.size(); ++i) {
    const double away = v_[i] - double{weights[begin_ + i]};
    drift_ += away * away;
  }
}

}  // namespace linblock
