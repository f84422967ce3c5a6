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
  double gradient = 0;  // D'(0)
  bool full = true;     // lambda = 1
  int evaluations = 0;
  int saved = 0;  // evaluations that a bound made needless
};

// D(t) <= D(0) + D'(0) t + t^2 (1/2 + curvature * growth(|t| largest)): e^a integrated twice, over a^2; or a little
// more.
inline double growth(double a) {
  return a < 0.1 ? 0.5 + a * (1.0 / 6 + a * (1.0 / 20)) : (std::exp(a) - 1 - a) / (a * a);
}

// `sums` of the whole column; change_of(t): how the losses change for a step of t.
template <class ChangeOf>
ColumnStep newton_step(double weight, const ColumnDerivatives& sums, const CurvatureBound& bound,
                       const ChangeOf& change_of) {
  ColumnStep newton{.gradient = weight + sums.gradient};
  const double curvature = 1 + sums.curvature;
  const double direction = -newton.gradient / curvature;
  if (direction == 0 || !std::isfinite(direction)) return newton;
  const double safe = curvature / (0.5 * (1 + bound.most_curvature * sums.bound) + kSufficientDecrease);
  for (double lambda = 1;; lambda *= kShrinkStep) {
    newton.step = lambda * direction;
    newton.full = lambda == 1;
    // Equation 15; and the same with the other bound, where lambda is what is left of -gradient / (step * curvature).
    const bool vouched =
        lambda <= safe || (bound.tame && lambda * (0.5 + sums.curvature * growth(std::abs(newton.step) * sums.largest) +
                                                   kSufficientDecrease) <=
                                             curvature);
    if (vouched) {
      ++newton.saved;
      return newton;
    }
    ++newton.evaluations;
    const double change = newton.step * (weight + 0.5 * newton.step) + change_of(newton.step).change;
    if (change <= -kSufficientDecrease * newton.step * newton.step || newton.step == 0) return newton;
  }
}

}  // namespace linblock
