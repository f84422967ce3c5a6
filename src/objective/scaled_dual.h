// The best lower bound that the duals of some weights give, all of them multiplied by one number.
//
// A smooth loss makes of any w the duals alpha = cost * share, share = -derivative(margin); they are allowed, and with
// v = sum of alpha y x, primal - dual = |w - v|^2 / 2. All times s they are allowed for every s that keeps them within
// their bounds, and D(s) = sum of dual_value(s alpha) - s^2 |v|^2 / 2 is concave: its best s costs sums over rows
// alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "objective/losses/losses.h"
#include "objective/rounding.h"

namespace linblock {

// How far all alphas may be scaled, where `largest` is the largest alpha as a share of its bound: as they are, at
// least.
inline double largest_scale(double largest) {
  return largest > 0 ? std::max(1.0, (1 - 1e-12) / largest) : std::numeric_limits<double>::infinity();
}

// A lower bound of the optimum: rounding is taken off. `v2_rounding` is a bound of that of v2, and `wrong` a further
// one of each sum over rows, relative to it.
struct ScaledDual {
  double v2 = 0;
  double v2_rounding = 0;
  double wrong = 0;

  // The best value of linear * s - square * s^2 / 2 - v2 * s^2 / 2 for s up to `most`, where the first two are sums
  // over rows.
  double of_parabola(const LongSum& linear, const LongSum& square, double most) const {
    const double curvature = square.value() + v2;
    if (!(curvature > 0))
      return std::isfinite(most) ? most * (linear.value() - 1.01 * terms_rounding(linear)) : 0;  // a line
    const double best = linear.value() / curvature;
    const double scale = std::min(best, most);
    const double rounding =
        scale * terms_rounding(linear) + 0.5 * scale * scale * (terms_rounding(square) + v2_rounding);
    const double value =
        scale == best ? 0.5 * linear.value() * scale : scale * (linear.value() - 0.5 * scale * curvature);
    return value - 1.01 * rounding;
  }
  // `values` of the dual at this scale, v2 apart.
  double of_values(const LongSum& values, double scale) const {
    const double taken = 0.5 * scale * scale * v2;
    return values.value() - taken -
           1.01 * (terms_rounding(values) + 0.5 * scale * scale * v2_rounding + 4 * kUnit * taken);
  }

 private:
  // All terms have the same sign.
  double terms_rounding(const LongSum& sum) const {
    return sum.rounding() + (kRoundingsPerTerm * kUnit + wrong) * std::abs(sum.value());
  }
};

// `for_each_row(add)` calls add(share, cost) for every row, as often as it is asked to.
template <QuadraticDual L, class ForEachRow>
double best_scaled_dual(const L& loss, const ScaledDual& dual, const ForEachRow& for_each_row) {
  LongSum linear;
  LongSum square;
  double largest = 0;
  for_each_row([&](double share, double cost) {
    const double alpha = cost * share;
    linear.add(loss.dual_linear(alpha, cost));
    square.add(loss.dual_square(alpha, cost));
    largest = std::max(largest, alpha / loss.largest_alpha(cost));
  });
  return dual.of_parabola(linear, square, largest_scale(largest));
}

template <GeneralDual L, class ForEachRow>
double best_scaled_dual(const L& loss, const ScaledDual& dual, const ForEachRow& for_each_row) {
  constexpr int kSteps = 10;  // of Newton's method, which begins next to the answer when it matters
  double largest = 0;
  for_each_row([&](double share, double) { largest = std::max(largest, share); });
  if (largest <= 0) return 0;
  // Short of the bound, where the slope is infinite; a share of 1 leaves s = 1 allowed.
  const double most = std::max(1.0, (1 - 1e-9) / largest);
  double best = 0;
  double scale = 1;
  for (int step = 0; step < kSteps; ++step) {
    LongSum values;
    double slope = 0;
    double curvature = dual.v2;
    for_each_row([&](double share, double cost) {
      if (scale * share <= 0) return;
      const ScaledDualTerm term = loss.scaled_dual(share, scale, cost);
      values.add(term.value);
      slope += term.slope;
      curvature += term.curvature;
    });
    slope -= scale * dual.v2;
    best = std::max(best, dual.of_values(values, scale));
    // Not all the way to the bound, from where Newton's method comes back but slowly.
    const double next =
        std::clamp(curvature > 0 ? scale + slope / curvature : scale, 0.1 * scale, 0.2 * scale + 0.8 * most);
    if (std::abs(next - scale) < 1e-7 * scale) break;
    scale = next;
  }
  return best;
}

}  // namespace linblock
