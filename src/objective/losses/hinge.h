// max(0, 1 - margin)
#pragma once

#include "objective/losses/loss.h"

namespace linblock {

struct Hinge {
  static constexpr std::string_view kName = "hinge";
  static constexpr std::string_view kHelp = "max(0, 1 - margin), the linear SVM";
  static constexpr DualForm kDualForm = DualForm::linear;
  static constexpr bool kSparseDuals = true;
  static constexpr bool kDualsInside = false;
  static constexpr bool kProbabilities = false;
  static constexpr LiblinearNames kLiblinear = {"L2R_L1LOSS_SVC_DUAL", "L2R_L1LOSS_SVC_DUAL"};
  static constexpr auto options() { return std::tuple{}; }

  double value(double margin) const { return std::max(0.0, 1 - margin); }
  double derivative(double margin) const { return margin < 1 ? -1 : 0; }
  double margin_of(double value) const { return 1 - value; }
  double flat_from() const { return 1; }

  double largest_alpha(double cost) const { return cost; }
  double first_alpha(double) const { return 0; }
  double dual_value(double alpha, double) const { return alpha; }
  double dual_gradient(double, double margin, double) const { return margin - 1; }
  double dual_step(double alpha, double margin, double norm2, double cost) const {
    return std::clamp(alpha - (margin - 1) / norm2, 0.0, cost);
  }
  double smallest_useful_cost(double sum) const { return 1 / (2 * sum); }
};

}  // namespace linblock
