// max(0, 1 - margin)^2
#pragma once

#include "objective/losses/loss.h"

namespace linblock {

struct SquaredHinge {
  static constexpr std::string_view kName = "squared-hinge";
  static constexpr std::string_view kHelp = "max(0, 1 - margin)^2";
  static constexpr DualForm kDualForm = DualForm::quadratic;
  static constexpr bool kSparseDuals = true;
  static constexpr bool kDualsInside = false;
  static constexpr bool kCurvatureIsTame = false;
  static constexpr bool kProbabilities = false;
  static constexpr LiblinearNames kLiblinear = {"L2R_L2LOSS_SVC", "L2R_L2LOSS_SVC_DUAL"};
  static constexpr auto options() { return std::tuple{}; }

  double value(double margin) const {
    const double slack = std::max(0.0, 1 - margin);
    return slack * slack;
  }
  double derivative(double margin) const { return -2 * std::max(0.0, 1 - margin); }
  double margin_of(double value) const { return 1 - std::sqrt(value); }
  double flat_from() const { return 1; }
  double curvature(double margin) const { return margin < 1 ? 2 : 0; }
  std::pair<double, double> derivatives(double margin) const { return {derivative(margin), curvature(margin)}; }
  double most_curvature() const { return 2; }

  double largest_alpha(double) const { return std::numeric_limits<double>::infinity(); }
  double first_alpha(double) const { return 0; }
  double dual_value(double alpha, double cost) const { return alpha - alpha * alpha / (4 * cost); }
  double dual_linear(double alpha, double) const { return alpha; }
  double dual_square(double alpha, double cost) const { return alpha * alpha / (2 * cost); }
  double dual_gradient(double alpha, double margin, double cost) const { return margin - 1 + alpha / (2 * cost); }
  double dual_step(double alpha, double margin, double norm2, double cost) const {
    return std::max(0.0, alpha - dual_gradient(alpha, margin, cost) / (norm2 + 1 / (2 * cost)));
  }
  double smallest_useful_cost(double sum) const { return 1 / (2 * sum); }
};

}  // namespace linblock
