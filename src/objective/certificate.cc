#include "objective/certificate.h"

#include <cmath>

#include "base/dot.h"

namespace linblock {

double Certificate::gap() const {
  if (dual > 0) return (primal - dual) / dual;
  return primal > dual ? std::numeric_limits<double>::infinity() : 0;
}

double margin_of(const Row& row, double sign, double bias, std::span<const float> weights) {
  double sum = dot(row.index, row.value, weights.data());
  if (!std::isfinite(sum)) [[unlikely]]
    sum = exact_dot(row.index, row.value, weights.data());
  if (bias >= 0) sum += bias * double{weights.back()};
  return sign * sum;
}

Certifier::Certifier(const Problem& problem, const Task& task)
    : problem_(problem), costs_(problem, task), v_(problem.weights(), 0.0) {}

void Certifier::add(const Chunk& chunk, std::span<const double> duals, std::span<const float> weights) {
  std::visit(
      [&](const auto& loss) {
        for (size_t i = 0; i < chunk.rows(); ++i) {
          const Row row = chunk.row(i, buffer_);
          const double sign = costs_.sign(row);
          const double cost = costs_.cost(row);
          if (cost == 0) continue;
          double margin = exact_dot(row.index, row.value, weights.data());
          if (problem_.has_bias()) margin += problem_.bias * double{weights.back()};
          losses_ += cost * loss.value(sign * margin);
          if (duals[i] == 0) continue;
          dual_values_ += loss.dual_value(duals[i], cost);
          add_scaled(row.index, row.value, sign * duals[i], v_.data());
          if (problem_.has_bias()) v_.back() += sign * duals[i] * problem_.bias;
        }
      },
      problem_.loss);
}

Certificate Certifier::finish(std::span<const float> weights) const {
  double w2 = 0;
  double v2 = 0;
  for (const float weight : weights) w2 += double{weight} * double{weight};
  for (const double weight : v_) v2 += weight * weight;
  Certificate certificate{.primal = 0.5 * w2 + losses_, .dual = dual_values_ - 0.5 * v2};
  // Equal but for the rounding of sums in double: a bound cannot be above what it bounds.
  if (certificate.dual > certificate.primal && certificate.dual - certificate.primal < 1e-12 * certificate.dual)
    certificate.dual = certificate.primal;
  return certificate;
}

}  // namespace linblock
