// What a row adds to the function that Newton's method minimizes, as a function of its margin.
//
// A smooth loss is that function itself: cost * loss(margin). The hinge has no curvature, so it is replaced by its
// augmented Lagrangian (a proximal point step on the dual, as in the SSNAL family of methods): with a centre c between
// 0 and the cost, and a penalty s,
//
//   value = a (1 - margin) - (a - c)^2 / (2 s),   a = clip(c + s (1 - margin), 0, cost),   curvature = s where a is
//   free
//
// The minimum over w for fixed centres is approached by Newton steps; then the centres become the a. Its a are allowed
// in the dual of the hinge at any w, so every reading gives a certificate.
#pragma once

#include <algorithm>
#include <type_traits>

#include "objective/losses/losses.h"

namespace linblock {

struct RowTerm {
  double value = 0;
  double alpha = 0;  // minus its derivative
  double curvature = 0;
};

template <Loss L>
inline constexpr bool kHasCentres = !SmoothLoss<L>;

// `penalty` and `centre` belong to a loss with a corner alone.
template <Loss L>
RowTerm term_of(const L& loss, double margin, double cost, double penalty, double centre) {
  if constexpr (kHasCentres<L>) {
    const double slack = 1 - margin;
    const double wanted = centre + penalty * slack;
    const double alpha = std::clamp(wanted, 0.0, cost);
    const double moved = alpha - centre;
    return {.value = alpha * slack - moved * moved / (2 * penalty),
            .alpha = alpha,
            .curvature = wanted > 0 && wanted < cost ? penalty : 0};
  } else {
    const auto [derivative, curvature] = loss.derivatives(margin);
    return {.value = cost * loss.value(margin), .alpha = -cost * derivative, .curvature = cost * curvature};
  }
}

// Without the value, which takes a logarithm.
template <Loss L>
RowTerm slope_of(const L& loss, double margin, double cost, double penalty, double centre) {
  if constexpr (kHasCentres<L>) {
    return term_of(loss, margin, cost, penalty, centre);
  } else {
    const auto [derivative, curvature] = loss.derivatives(margin);
    return {.alpha = -cost * derivative, .curvature = cost * curvature};
  }
}

// A row whose alpha stays as it is while its margin moves by less than a step's usual length needs no place in the
// model of a step: with centres, three times the zone in which it is free; otherwise `zone` margins more or less.
template <Loss L>
bool may_move(const L& loss, double margin, double cost, double penalty, double centre, double zone) {
  if constexpr (kHasCentres<L>) {
    const double wanted = centre + penalty * (1 - margin);
    return wanted > -cost && wanted < 2 * cost;
  } else if constexpr (L::kDualsInside) {
    return true;
  } else {
    return loss.derivative(margin - zone) != loss.derivative(margin + zone);
  }
}

// A row whose alpha is at a bound may become free in the step, but most such rows stay there: at 0 more than at the
// cost.
inline constexpr double kAtZero = 0.05;
inline constexpr double kAtCost = 0.2;

// The curvature by which a row is drawn: what it has where its alpha moves, or a part of that where it does not move
// yet. A loss whose alphas move everywhere is curved next to nowhere, and tells it by what it has now.
template <Loss L>
double typical_curvature_of(const L& loss, double cost, double penalty, const RowTerm& term) {
  double most = penalty;
  if constexpr (!kHasCentres<L>) {
    if (L::kCurvatureIsTame) return term.curvature;
    most = cost * loss.most_curvature();
  }
  return term.curvature > 0 ? term.curvature : (term.alpha == 0 ? kAtZero : kAtCost) * most;
}

}  // namespace linblock
