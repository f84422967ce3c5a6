// log(1 + exp(-margin))
#pragma once

#include "objective/losses/loss.h"

namespace linblock {

struct Logistic {
  static constexpr std::string_view kName = "logistic";
  static constexpr std::string_view kHelp = "log(1 + exp(-margin)), logistic regression";
  static constexpr DualForm kDualForm = DualForm::general;
  static constexpr bool kSparseDuals = false;
  static constexpr bool kDualsInside = true;
  static constexpr bool kCurvatureIsTame = true;
  static constexpr bool kProbabilities = true;
  static constexpr LiblinearNames kLiblinear = {"L2R_LR", "L2R_LR_DUAL"};
  static constexpr auto options() { return std::tuple{}; }

  double value(double margin) const {
    return margin > 0 ? std::log1p(std::exp(-margin)) : -margin + std::log1p(std::exp(margin));
  }
  double derivative(double margin) const { return -1 / (1 + std::exp(margin)); }
  double margin_of(double value) const { return -value - std::log1p(-std::exp(-value)); }
  double flat_from() const { return std::numeric_limits<double>::infinity(); }
  double curvature(double margin) const {
    const double share = 1 / (1 + std::exp(std::abs(margin)));
    return share * (1 - share);
  }
  std::pair<double, double> derivatives(double margin) const {
    const double share = 1 / (1 + std::exp(margin));
    return {-share, share * (1 - share)};
  }
  double most_curvature() const { return 0.25; }

  double largest_alpha(double cost) const { return cost; }
  // Never at a bound, where the dual's slope is infinite (LIBLINEAR starts there too).
  double first_alpha(double cost) const { return std::min(0.001 * cost, 1e-8); }
  // Of alpha and cost - alpha, the smaller has all digits that matter.
  double dual_value(double alpha, double cost) const { return cost * entropy(std::min(alpha, cost - alpha) / cost); }
  double dual_gradient(double alpha, double margin, double cost) const {
    return margin + std::log(alpha / (cost - alpha));
  }
  // Yu, Huang and Lin, "Dual coordinate descent methods for logistic regression and maximum entropy models" (2011),
  // algorithm 5: Newton steps in whichever of alpha and cost - alpha ends below cost / 2, where the logarithm is steep.
  double dual_step(double alpha, double margin, double norm2, double cost) const;
  ScaledDualTerm scaled_dual(double share, double scale, double cost) const {
    const double fraction = std::min(1.0, scale * share);
    const double complement = 1 - fraction;
    if (fraction <= 0) return {};
    ScaledDualTerm term{.value = cost * entropy(std::min(fraction, complement))};
    if (complement <= 0) return term;
    term.slope = cost * share * std::log(complement / fraction);
    term.curvature = cost * share / (scale * complement);
    return term;
  }
  double smallest_useful_cost(double sum) const { return 1 / sum; }

  // Of a share of at most 1/2 and the rest, without the digits that 1 - share would lose.
  static double entropy(double share) {
    return share > 0 ? -share * std::log(share) - (1 - share) * std::log1p(-share) : 0;
  }
};

}  // namespace linblock
