// What a loss is: a function of the margin y w.x alone. It knows nothing of rows, columns or storage.
//
// Primal:  min over w      1/2 |w|^2 + sum over rows of cost * value(margin)
// Dual:    max over alpha  sum over rows of dual_value(alpha, cost) - 1/2 |v|^2,   v = sum of alpha y x,
// where every alpha from 0 to largest_alpha(cost) is allowed, and at the optimum w = v.
//
// The concepts below list everything that solvers, certificates, model files and tuning ask of a loss. A loss that
// lacks a member does not compile.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <string_view>
#include <utility>

#include "base/option.h"

namespace linblock {

// The shape of dual_value in alpha: it decides how the best common multiple of all alphas is found (scaled_dual.h).
enum class DualForm {
  linear,
  quadratic,  // dual_linear(alpha) - dual_square(alpha) / 2
  general,    // scaled_dual()
};

// The names of LIBLINEAR's solvers for this loss. `exact` is false where LIBLINEAR lacks the loss: then the names are
// those of a loss whose models predict in the same way, and the model file says what the loss really is.
struct LiblinearNames {
  std::string_view primal;
  std::string_view dual;
  bool exact = true;
};

template <class L>
concept Loss = Unit<L> && requires(const L loss, double margin, double alpha, double norm2, double cost) {
  { loss.value(margin) } -> std::same_as<double>;
  { loss.derivative(margin) } -> std::same_as<double>;
  // Where the loss has this value, above 0.
  { loss.margin_of(1.0) } -> std::same_as<double>;
  // From this margin on there is no loss and no dual; infinity: never.
  { loss.flat_from() } -> std::same_as<double>;

  { loss.largest_alpha(cost) } -> std::same_as<double>;
  // Where a row's dual starts: 0, or next to it where the dual's slope at 0 is infinite.
  { loss.first_alpha(cost) } -> std::same_as<double>;
  { loss.dual_value(alpha, cost) } -> std::same_as<double>;
  // Of the dual as a minimization: negative where alpha should grow.
  { loss.dual_gradient(alpha, margin, cost) } -> std::same_as<double>;
  // The alpha that maximizes the dual along one coordinate: `margin` is y w.x at the present w = v, `norm2` is |x|^2.
  { loss.dual_step(alpha, margin, norm2, cost) } -> std::same_as<double>;
  { L::kDualForm } -> std::convertible_to<DualForm>;
  // Rows beyond flat_from() have no part in the answer.
  { L::kSparseDuals } -> std::convertible_to<bool>;
  // Alphas never touch their bounds, so steps must not overshoot.
  { L::kDualsInside } -> std::convertible_to<bool>;

  // Below this cost every row is at its bound, and the model changes only in length. `sum`: rows times the largest
  // |x|^2.
  { loss.smallest_useful_cost(1.0) } -> std::same_as<double>;
  // A decision value is the logarithm of the odds.
  { L::kProbabilities } -> std::convertible_to<bool>;
  { L::kLiblinear } -> std::convertible_to<LiblinearNames>;
};

// For methods that minimize over w.
template <class L>
concept SmoothLoss = Loss<L> && requires(const L loss, double margin, double alpha, double cost) {
  // The second derivative, generalized where the first has a kink.
  { loss.curvature(margin) } -> std::same_as<double>;
  // Derivative and curvature at once: they may share an exponential.
  { loss.derivatives(margin) } -> std::same_as<std::pair<double, double>>;
  { loss.most_curvature() } -> std::same_as<double>;
  // The curvature changes at most by a factor of e^|change of the margin|.
  { L::kCurvatureIsTame } -> std::convertible_to<bool>;
};

// dual_value(s alpha) = s dual_linear(alpha) - s^2 dual_square(alpha) / 2.
template <class L>
concept QuadraticDual = Loss<L> && L::kDualForm == DualForm::quadratic&& requires(const L loss, double x) {
  { loss.dual_linear(x, x) } -> std::same_as<double>;
  { loss.dual_square(x, x) } -> std::same_as<double>;
};

// dual_value(s alpha) of alpha = share * cost, with its first derivative in s and, up to sign, its second.
struct ScaledDualTerm {
  double value = 0;
  double slope = 0;
  double curvature = 0;
};
template <class L>
concept GeneralDual = Loss<L> && L::kDualForm == DualForm::general&& requires(const L loss, double x) {
  { loss.scaled_dual(x, x, x) } -> std::same_as<ScaledDualTerm>;
};

}  // namespace linblock
