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

namespace linblock {

// The largest linear * s - square * s^2 / 2.
inline double best_of_parabola(double linear, double square) { return square > 0 ? 0.5 * linear * linear / square : 0; }

// `for_each_row(add)` calls add(share, cost) for every row, as often as it is asked to.
template <class ForEachRow>
double best_scaled_dual(const SquaredHinge&, double v2, const ForEachRow& for_each_row) {
  // dual_value(s alpha) = s cost share - s^2 cost share^2 / 4: D is a parabola.
  double linear = 0;
  double square = v2;
  for_each_row([&](double share, double cost) {
    linear += cost * share;
    square += 0.5 * cost * share * share;
  });
  return best_of_parabola(linear, square);
}

template <class ForEachRow>
double best_scaled_dual(const Logistic&, double v2, const ForEachRow& for_each_row) {
  constexpr int kSteps = 10;  // of Newton's method, which begins next to the answer when it matters
  double largest = 0;
  for_each_row([&](double share, double) { largest = std::max(largest, share); });
  if (largest <= 0) return 0;
  // Short of the bound, where the slope is infinite; a share of 1 leaves s = 1 allowed.
  const double most = std::max(1.0, (1 - 1e-9) / largest);
  const auto entropy = [](double x) { return x > 0 ? -x * std::log(x) : 0; };
  double best = 0;
  double scale = 1;
  for (int step = 0; step < kSteps; ++step) {
    double value = 0;
    double slope = 0;
    double bend = v2;
    for_each_row([&](double share, double cost) {
      const double own = std::min(1.0, scale * share);
      const double rest = 1 - own;
      if (own <= 0) return;
      value += cost * (entropy(own) + entropy(rest));
      if (rest <= 0) return;
      slope += cost * share * std::log(rest / own);
      bend += cost * share / (scale * rest);
    });
    value -= 0.5 * scale * scale * v2;
    slope -= scale * v2;
    best = std::max(best, value);
    // Not all the way to the bound, from where Newton's method comes back but slowly.
    const double next = std::clamp(bend > 0 ? scale + slope / bend : scale, 0.1 * scale, 0.2 * scale + 0.8 * most);
    if (std::abs(next - scale) < 1e-7 * scale) break;
    scale = next;
  }
  return best;
}

}  // namespace linblock
