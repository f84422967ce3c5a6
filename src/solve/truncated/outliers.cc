#include "solve/truncated/outliers.h"

#include <algorithm>

#include "base/dot.h"
#include "objective/double_weights.h"
#include "objective/free_bias.h"

namespace linblock {

OutlierReading::OutlierReading(const Problem& problem, const Task& task, const RowSet& known, RowSet& outliers_now)
    : problem_(problem),
      costs_(problem, task),
      most_loss_(1 + *problem.truncate),
      margin_(outlier_margin(problem.loss, *problem.truncate)),
      known_(known),
      outliers_now_(outliers_now) {}

void OutlierReading::begin(Solution& solution, std::vector<float>& going_on) {
  solution_ = &solution;
  going_on_ = &going_on;
  w2_ = squared_norm_of(penalized(problem_, std::span<const float>(solution.weights)));
  half_w2_ = 0.5 * w2_.value;
  norm_ = std::sqrt(squared_norm_of(std::span<const float>(solution.weights)).value);
}

void OutlierReading::add(const Chunk& chunk, uint32_t number) {
  std::visit([&](const auto& loss) { add_with(loss, chunk, number); }, problem_.loss);
}

template <class L>
void OutlierReading::add_with(const L& loss, const Chunk& chunk, uint32_t number) {
  Duals& duals = solution_->duals;
  const std::span<double> alphas = duals.empty() ? std::span<double>() : duals.page(number);
  if (!duals.empty()) std::ranges::fill(duals.passes_out(number), uint8_t{0});
  for (uint32_t i = 0; i < chunk.rows(); ++i) {
    const Row row = chunk.row(i, buffer_);
    const double cost = costs_.cost(row);
    if (cost == 0) continue;
    const double sign = costs_.sign(row);
    double product = exact_dot(row.index, row.value, solution_->weights.data());
    if (problem_.has_bias()) product += problem_.bias * double{solution_->weights.back()};
    const double margin = sign * product;
    const double value = loss.value(margin);
    const bool out = margin < margin_;
    const bool was_out = known_.has(row.id);
    truncated_ += cost * (out ? most_loss_ : value);
    if (!was_out) losses_before_ += cost * value;
    if (!out)
      losses_now_.add(loss, cost, margin, norm_ * std::sqrt(squared_norm(row, problem_.bias)), row.index.size());
    if (out) ++outliers_;
    if (out != was_out) changed_ = true;
    outliers_now_.put(row.id, out);
    if (alphas.empty()) {
      if (!out && loss.derivative(margin) < 0) ++support_vectors_;
      continue;
    }
    if (alphas[i] == 0) continue;
    if (!out) {
      ++support_vectors_;
      continue;
    }
    const auto change = static_cast<float>(-sign * alphas[i]);
    add_scaled(row.index, row.value, change, going_on_->data());
    if (problem_.has_bias()) going_on_->back() += change * static_cast<float>(problem_.bias);
    alphas[i] = 0;
  }
}

}  // namespace linblock
