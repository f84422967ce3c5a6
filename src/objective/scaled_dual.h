// The best lower bound that the duals of some weights give, all of them multiplied by one number.
//
// A smooth loss makes of any w the duals alpha = cost * share, share = -derivative(margin); they are allowed, and with
// v = sum of alpha y x, primal - dual = |w - v|^2 / 2. All times s they are allowed for every s that keeps them within
// their bounds, and D(s) = sum of dual_value(s alpha) - s^2 |v|^2 / 2 is concave: its best s costs sums over rows
// alone.
#pragma once

#include <algorithm>
#include <cmath>

#include "objective/loss.h"
#include "objective/rounding.h"

namespace linblock {

// A lower bound of the optimum: rounding is taken off. `v2_rounding` is a bound of that of v2.
struct ScaledDual {
  double v2 = 0;
  double v2_rounding = 0;

  // The best value of linear * s - square * s^2 / 2 - v2 * s^2 / 2, where the first two are sums over rows.
  double of_parabola(const LongSum& linear, const LongSum& square) const {
    const double bend = square.value() + v2;
    if (!(bend > 0)) return 0;
    const double scale = linear.value() / bend;
    const double rounding =
        scale * terms_rounding(linear) + 0.5 * scale * scale * (terms_rounding(square) + v2_rounding);
    return 0.5 * linear.value() * scale - 1.01 * rounding;
  }
  // `values` of the dual at this scale, v2 apart.
  double of_values(const LongSum& values, double scale) const {
    const double taken = 0.5 * scale * scale * v2;
    return values.value() - taken -
           1.01 * (terms_rounding(values) + 0.5 * scale * scale * v2_rounding + 4 * kUnit * taken);
  }

 private:
  // All terms have the same sign.
  static double terms_rounding(const LongSum& sum) {
    return sum.rounding() + kRoundingsPerTerm * kUnit * std::abs(sum.value());
  }
};

// `for_each_row(add)` calls add(share, cost) for every row, as often as it is asked to.
template <class ForEachRow>
double best_scaled_dual(const SquaredHinge&, const ScaledDual& dual, const ForEachRow& for_each_row) {
  // dual_value(s alpha) = s cost share - s^2 cost share^2 / 4: D is a parabola.
  LongSum linear;
  LongSum square;
  for_each_row([&](double share, double cost) {
    linear.add(cost * share);
    square.add(0.5 * cost * share * share);
  });
  return dual.of_parabola(linear, square);
}

template <class ForEachRow>
double best_scaled_dual(const Logistic& loss, const ScaledDual& dual, const ForEachRow& for_each_row) {
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
    double bend = dual.v2;
    for_each_row([&](double share, double cost) {
      const double own = std::min(1.0, scale * share);
      const double rest = 1 - own;
      if (own <= 0) return;
      values.add(cost * loss.entropy(std::min(own, rest)));
      if (rest <= 0) return;
      slope += cost * share * std::log(rest / own);
      bend += cost * share / (scale * rest);
    });
    slope -= scale * dual.v2;
    best = std::max(best, dual.of_values(values, scale));
    // Not all the way to the bound, from where Newton's method comes back but slowly.
    const double next = std::clamp(bend > 0 ? scale + slope / bend : scale, 0.1 * scale, 0.2 * scale + 0.8 * most);
    if (std::abs(next - scale) < 1e-7 * scale) break;
    scale = next;
  }
  return best;
}

}  // namespace linblock
