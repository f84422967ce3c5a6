// The hinge with its corner rounded: quadratic within `huber` of the margin 1, linear below, zero above. It tends to
// the hinge as huber -> 0, and it is smooth.
//
//   (1 + h - margin)^2 / (4 h)  for |1 - margin| <= h,  and  1 - margin  below
//
// Its dual is quadratic, as that of the squared hinge, and bounded, as that of the hinge: alpha (1 + h) - h alpha^2 / C
// on 0 <= alpha <= C.
#pragma once

#include "objective/losses/loss.h"

namespace linblock {

struct HuberHinge {
  static constexpr std::string_view kName = "huber-hinge";
  static constexpr std::string_view kHelp = "the hinge with a rounded corner";
  static constexpr DualForm kDualForm = DualForm::quadratic;
  static constexpr bool kSparseDuals = true;
  static constexpr bool kDualsInside = false;
  static constexpr bool kCurvatureIsTame = false;
  static constexpr bool kProbabilities = false;
  // LIBLINEAR has no such loss; a model of the hinge predicts in the same way.
  static constexpr LiblinearNames kLiblinear = {"L2R_L1LOSS_SVC_DUAL", "L2R_L1LOSS_SVC_DUAL", false};

  double huber = 0.5;  // h, half of the width of the quadratic part

  static constexpr auto options() {
    return std::tuple{option("huber", &HuberHinge::huber, "H",
                             "Half of the width of the rounded corner; it tends to the hinge as H -> 0",
                             {.from = 1e-6, .to = 1e6})};
  }

  double value(double margin) const {
    const double slack = slack_of(margin);
    if (slack <= 0) return 0;
    return slack >= 2 * huber ? 1 - margin : slack * slack / (4 * huber);
  }
  double derivative(double margin) const { return -std::clamp(slack_of(margin) / (2 * huber), 0.0, 1.0); }
  double margin_of(double value) const { return value >= huber ? 1 - value : 1 + huber - 2 * std::sqrt(huber * value); }
  double flat_from() const { return 1 + huber; }
  double curvature(double margin) const {
    const double slack = slack_of(margin);
    return slack > 0 && slack < 2 * huber ? most_curvature() : 0;
  }
  std::pair<double, double> derivatives(double margin) const { return {derivative(margin), curvature(margin)}; }
  double most_curvature() const { return 1 / (2 * huber); }

  double largest_alpha(double cost) const { return cost; }
  double first_alpha(double) const { return 0; }
  double dual_value(double alpha, double cost) const { return alpha * (1 + huber) - huber * alpha * alpha / cost; }
  double dual_linear(double alpha, double) const { return alpha * (1 + huber); }
  double dual_square(double alpha, double cost) const { return 2 * huber * alpha * alpha / cost; }
  double dual_gradient(double alpha, double margin, double cost) const {
    return 2 * huber * alpha / cost - slack_of(margin);
  }
  double dual_step(double alpha, double margin, double norm2, double cost) const {
    return std::clamp(alpha - dual_gradient(alpha, margin, cost) / (norm2 + 2 * huber / cost), 0.0, cost);
  }
  // Every row is at its bound while all margins are below 1 - h, and |w.x| is at most the cost times the sum.
  double smallest_useful_cost(double sum) const { return std::max(1e-3, 1 - huber) / (2 * sum); }

 private:
  // 1 + h - margin, without the digits that 1 + h would lose.
  double slack_of(double margin) const { return (1 - margin) + huber; }
};

}  // namespace linblock
