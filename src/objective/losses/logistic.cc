#include "objective/losses/logistic.h"

namespace linblock {

double Logistic::dual_step(double alpha, double margin, double norm2, double cost) const {
  constexpr int kMostSteps = 100;
  constexpr double kShrink = 0.1;
  // Minimize  a/2 (z - old)^2 + b (z - old) + z log z + (cost - z) log(cost - z)  over z: alpha itself, or its
  // complement with the sign of the margin turned.
  const bool complement = margin * 1.0 + 0.5 * norm2 * (cost - 2 * alpha) < 0;
  const double sign = complement ? -1 : 1;
  const double b = sign * margin;
  const double old = complement ? cost - alpha : alpha;
  double z = old;
  if (cost - z < 0.5 * cost) z *= kShrink;
  z = std::max(z, std::numeric_limits<double>::min());
  double slope = norm2 * (z - old) + b + std::log(z / (cost - z));
  const double tolerance = 1e-12 * std::max(1.0, std::abs(b));
  for (int step = 0; step < kMostSteps && std::abs(slope) > tolerance; ++step) {
    const double curvature = norm2 + cost / (cost - z) / z;
    double next = z - slope / curvature;
    if (next <= 0) next = z * kShrink;
    if (next >= cost) next = 0.5 * (z + cost);
    if (next == z) break;
    z = next;
    slope = norm2 * (z - old) + b + std::log(z / (cost - z));
  }
  const double result = complement ? cost - z : z;
  // Rounding must not reach the bounds, where the slope is infinite.
  const double least = cost * 1e-15;
  return std::clamp(result, std::min(least, cost / 2), cost - least);
}

}  // namespace linblock
