// The losses: functions of the margin y w.x alone. They know nothing of rows, columns or storage.
//
// Primal:  min over w      1/2 |w|^2 + sum over rows of cost * value(margin)
// Dual:    max over alpha  sum over rows of dual_value(alpha, cost) - 1/2 |v|^2,   v = sum of alpha y x,
// where every alpha from 0 to largest_alpha(cost) is allowed, and at the optimum w = v.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <string_view>
#include <variant>

namespace linblock {

template <class L>
concept Loss = requires(const L& loss, double x) {
  { loss.value(x) } -> std::convertible_to<double>;
  { loss.derivative(x) } -> std::convertible_to<double>;
  { loss.margin_of(x) } -> std::convertible_to<double>;  // where the loss has this value, above 0
};

// For primal methods: the second derivative, generalised where there is a corner.
template <class L>
concept CurvedLoss = Loss<L> && requires(const L& loss, double x) {
  { loss.curvature(x) } -> std::convertible_to<double>;
};

// For dual methods. dual_step gives the alpha that maximises the dual along one coordinate: `margin` is y w.x at the
// present w = v, `norm2` is |x|^2.
template <class L>
concept DualLoss = Loss<L> && requires(const L& loss, double x) {
  { loss.dual_value(x, x) } -> std::convertible_to<double>;
  { loss.dual_step(x, x, x, x) } -> std::convertible_to<double>;
  { loss.dual_gradient(x, x, x) } -> std::convertible_to<double>;
  { loss.largest_alpha(x) } -> std::convertible_to<double>;
  { loss.first_alpha(x) } -> std::convertible_to<double>;
};

// max(0, 1 - margin)
struct Hinge {
  static constexpr std::string_view kName = "hinge";

  double value(double margin) const { return std::max(0.0, 1 - margin); }
  double derivative(double margin) const { return margin < 1 ? -1 : 0; }
  double margin_of(double value) const { return 1 - value; }

  double largest_alpha(double cost) const { return cost; }
  double first_alpha(double) const { return 0; }
  double dual_value(double alpha, double) const { return alpha; }
  // Of the dual as a minimisation: negative where alpha should grow.
  double dual_gradient(double, double margin, double) const { return margin - 1; }
  double dual_step(double alpha, double margin, double norm2, double cost) const {
    return std::clamp(alpha - (margin - 1) / norm2, 0.0, cost);
  }
};

// max(0, 1 - margin)^2
struct SquaredHinge {
  static constexpr std::string_view kName = "squared-hinge";

  double value(double margin) const {
    const double slack = std::max(0.0, 1 - margin);
    return slack * slack;
  }
  double derivative(double margin) const { return -2 * std::max(0.0, 1 - margin); }
  double margin_of(double value) const { return 1 - std::sqrt(value); }
  double curvature(double margin) const { return margin < 1 ? 2 : 0; }

  double largest_alpha(double) const { return std::numeric_limits<double>::infinity(); }
  double first_alpha(double) const { return 0; }
  double dual_value(double alpha, double cost) const { return alpha - alpha * alpha / (4 * cost); }
  double dual_gradient(double alpha, double margin, double cost) const { return margin - 1 + alpha / (2 * cost); }
  double dual_step(double alpha, double margin, double norm2, double cost) const {
    return std::max(0.0, alpha - dual_gradient(alpha, margin, cost) / (norm2 + 1 / (2 * cost)));
  }
};

// log(1 + exp(-margin))
struct Logistic {
  static constexpr std::string_view kName = "logistic";

  double value(double margin) const {
    return margin > 0 ? std::log1p(std::exp(-margin)) : -margin + std::log1p(std::exp(margin));
  }
  double derivative(double margin) const { return -1 / (1 + std::exp(margin)); }
  double margin_of(double value) const { return -value - std::log1p(-std::exp(-value)); }
  double curvature(double margin) const {
    const double share = 1 / (1 + std::exp(std::abs(margin)));
    return share * (1 - share);
  }

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

  // Of a share of at most 1/2 and the rest, without the digits that 1 - share would lose.
  static double entropy(double share) {
    return share > 0 ? -share * std::log(share) - (1 - share) * std::log1p(-share) : 0;
  }
};

static_assert(DualLoss<Hinge> && DualLoss<SquaredHinge> && DualLoss<Logistic>);
static_assert(CurvedLoss<SquaredHinge> && CurvedLoss<Logistic>);

using AnyLoss = std::variant<Hinge, SquaredHinge, Logistic>;

// A row with a smaller margin has a loss above 1 + s: it is an outlier where losses are truncated at that.
inline double outlier_margin(const AnyLoss& loss, double s) {
  return std::visit([&](const auto& one) { return one.margin_of(1 + s); }, loss);
}

// Throws ErrorKind::usage for an unknown name.
AnyLoss loss_of(std::string_view name);
inline std::string_view name_of(const AnyLoss& loss) {
  return std::visit([](const auto& one) { return one.kName; }, loss);
}

}  // namespace linblock
