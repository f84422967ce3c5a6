// The step of dual coordinate descent on one row, for those who go over rows: one by one and in batches (dual_descent),
// or for several tasks (task_group).
#pragma once

#include <algorithm>
#include <cmath>

#include "solve/dual/dual_descent.h"

namespace linblock {

template <Loss L, class SquaredLength>
DualDescent::Visit DualDescent::step(const L& loss, const Row& row, RowCache::Origin origin, const RowOfTask& of_task,
                                     const Range& range, const SquaredLength& norm2_of_row) {
  const auto& [cost, sign, margin, counted] = of_task;
  done_.work += static_cast<double>(row.index.size() + kRowWork);
  double& alpha = solution_.duals.page(origin.chunk)[origin.row];
  Visit result = visit(loss, alpha, margin, cost, counted, range, solution_.duals.passes_out(origin.chunk)[origin.row]);
  if (result.shrink || result.projected == 0) return result;
  const double norm2 = norm2_of_row();
  const double next = next_alpha(loss, alpha, margin, norm2, cost);
  if (next == alpha) return result;
  account(loss, alpha, next, margin, norm2, cost, row.index.size());
  result.moved = true;
  result.change = static_cast<float>(sign * (next - alpha));
  alpha = next;
  return result;
}

template <Loss L>
DualDescent::Visit DualDescent::visit(const L& loss, double alpha, double margin, double cost, bool counted,
                                      const Range& range, uint8_t& passes_out) {
  if (counted) losses_ += cost * loss.value(margin);
  if (counted && !met_all_ && alpha != 0) dual_values_ += loss.dual_value(alpha, cost);
  const double gradient = loss.dual_gradient(alpha == 0 ? loss.first_alpha(cost) : alpha, margin, cost);
  Visit result;
  if (alpha == 0 && gradient > 0) {
    if (gradient > range.top) result.shrink = true;
    if (counted && shrinking_.may_shrink(gradient)) shrinking_.shrink(passes_out, cost * loss.value(margin));
  } else if (alpha == loss.largest_alpha(cost) && gradient < 0) {
    if (gradient < range.bottom) result.shrink = true;
    if (counted && shrinking_.may_shrink(-gradient)) shrinking_.shrink(passes_out, cost * loss.value(margin));
  } else {
    result.projected = gradient;
    if (counted) shrinking_.add_violation(std::abs(gradient));
  }
  return result;
}

template <Loss L>
double DualDescent::next_alpha(const L& loss, double alpha, double margin, double norm2, double cost) const {
  // A row without features has no say in w: its alpha goes straight to where its own term is largest.
  const double from = alpha == 0 ? loss.first_alpha(cost) : alpha;
  const double next = loss.dual_step(from, margin, std::max(norm2, 1e-300), cost);
  if (over_relaxation_ == 1) return next;
  return std::clamp(alpha + over_relaxation_ * (next - alpha), 0.0, loss.largest_alpha(cost));
}

template <Loss L>
double DualDescent::account(const L& loss, double alpha, double next, double margin, double norm2, double cost,
                            size_t nonzeros) {
  const double value_change =
      (next == 0 ? 0 : loss.dual_value(next, cost)) - (alpha == 0 ? 0 : loss.dual_value(alpha, cost));
  const double gain = value_change - (next - alpha) * (margin + 0.5 * (next - alpha) * norm2);
  dual_values_ += value_change;
  done_.gain += gain;
  drift_.step(next - alpha, margin, norm2, nonzeros);
  return gain;
}

}  // namespace linblock
