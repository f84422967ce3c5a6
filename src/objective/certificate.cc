#include "objective/certificate.h"

#include <algorithm>
#include <cmath>

#include "base/dot.h"

namespace linblock {

double Certificate::gap() const {
  if (dual > 0) return (primal - dual) / dual;
  // So that a sum that is not a number certifies nothing.
  return primal <= dual ? 0 : std::numeric_limits<double>::infinity();
}

Certificate certificate_of(std::span<const float> weights, double losses, double dual_values, double v2) {
  double w2 = 0;
  for (const float weight : weights) w2 += double{weight} * double{weight};
  Certificate certificate{.primal = 0.5 * w2 + losses, .dual = dual_values - 0.5 * v2};
  // Equal but for the rounding of sums in double: a bound cannot be above what it bounds.
  if (certificate.dual > certificate.primal && certificate.dual - certificate.primal < 1e-12 * certificate.dual)
    certificate.dual = certificate.primal;
  return certificate;
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
  std::visit(
      [&](const auto& loss) {
        for (size_t i = 0; i < chunk.rows(); ++i) {
          const Row row = chunk.row(i, losses_buffer_);
          const double cost = costs_.cost(row);
          if (cost == 0) continue;
          losses_ += cost * loss.value(margin(row, weights));
          if (!others.empty()) losses_of_others_ += cost * loss.value(margin(row, others));
          if (!duals.empty() && duals[i] != 0) dual_values_ += loss.dual_value(duals[i], cost);
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
  for (size_t i = 0; i < v_.size(); ++i) {
    const double away = v_[i] - double{weights[begin_ + i]};
    v2_ += v_[i] * v_[i];
    drift_ += away * away;
  }
}

}  // namespace linblock
