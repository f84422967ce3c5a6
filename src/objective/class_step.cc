#include "objective/class_step.h"

#include <algorithm>

namespace linblock {

double best_class_duals(std::vector<ClassCandidate>& candidates, double true_b, double norm2, double cost) {
  std::sort(candidates.begin(), candidates.end(), [](const ClassCandidate& left, const ClassCandidate& right) {
    return left.b != right.b ? left.b > right.b : left.number < right.number;
  });
  for (ClassCandidate& candidate : candidates) candidate.dual = 0;
  if (candidates.empty() || candidates.front().b <= true_b) return true_b;
  // All differences are taken from the largest numbers in them, so that nothing is lost where |x|^2 * cost is tiny or
  // huge beside them.
  double above = candidates.front().b - true_b;
  double raise = above / 2;  // beta - own
  size_t count = 1;
  while (count < candidates.size() && candidates[count].b - true_b > raise) {
    above += candidates[count++].b - true_b;
    raise = above / static_cast<double>(count + 1);
  }
  if (raise <= norm2 * cost) {
    for (size_t i = 0; i < count; ++i) candidates[i].dual = std::max(0.0, (candidates[i].b - true_b - raise) / norm2);
    return true_b + raise;
  }
  const double top = candidates.front().b;
  if (norm2 * cost == 0) {  // a row without features has no say in any weights
    candidates.front().dual = cost;
    return top;
  }
  double below = 0;
  double fall = norm2 * cost;  // top - beta
  count = 1;
  while (count < candidates.size() && top - candidates[count].b < fall) {
    below += top - candidates[count++].b;
    fall = (norm2 * cost + below) / static_cast<double>(count);
  }
  for (size_t i = 0; i < count; ++i)
    candidates[i].dual = cost * std::max(0.0, (fall - (top - candidates[i].b)) / (norm2 * cost));
  return top - fall;
}

}  // namespace linblock
