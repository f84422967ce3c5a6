// One step of coordinate descent over features: along D(t), the objective as a function of one feature's weight, which
// the nonzeros of its column alone decide, because every row's w.x is at hand.
#pragma once

#include <cmath>

#include "solve/columns/column_rows.h"

namespace linblock {

inline constexpr double kSufficientDecrease = 0.01;  // sigma of equation 12
inline constexpr double kShrinkStep = 0.5;           // beta of Algorithm 2

// A step along one column by Algorithm 2.
struct ColumnStep {
  double step = 0;
  double slope = 0;  // D'(0)
  bool full = true;  // lambda = 1
  int evaluations = 0;
  int saved = 0;  // evaluations that a bound made needless
};

// D(t) <= D(0) + D'(0) t + t^2 (1/2 + bend * growth(|t| reach)): e^a integrated twice, over a^2; or a little more.
inline double growth(double a) {
  return a < 0.1 ? 0.5 + a * (1.0 / 6 + a * (1.0 / 20)) : (std::exp(a) - 1 - a) / (a * a);
}

// `sums` of the whole column; change_of(t): how the losses change for a step of t.
template <class ChangeOf>
ColumnStep newton_step(double weight, const ColumnDerivatives& sums, const CurvatureBound& bound,
                       const ChangeOf& change_of) {
  ColumnStep found{.slope = weight + sums.slope};
  const double bend = 1 + sums.bend;
  const double direction = -found.slope / bend;
  if (direction == 0 || !std::isfinite(direction)) return found;
  const double safe = bend / (0.5 * (1 + bound.most_curvature * sums.squares) + kSufficientDecrease);
  for (double lambda = 1;; lambda *= kShrinkStep) {
    found.step = lambda * direction;
    found.full = lambda == 1;
    // Equation 15; and the same with the other bound, where lambda is what is left of -slope / (step * bend).
    const bool vouched =
        lambda <= safe ||
        (bound.tame &&
         lambda * (0.5 + sums.bend * growth(std::abs(found.step) * sums.reach) + kSufficientDecrease) <= bend);
    if (vouched) {
      ++found.saved;
      return found;
    }
    ++found.evaluations;
    const double change = found.step * (weight + 0.5 * found.step) + change_of(found.step).change;
    if (change <= -kSufficientDecrease * found.step * found.step || found.step == 0) return found;
  }
}

}  // namespace linblock
