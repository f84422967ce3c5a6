#include "objective/class_step.h"

#include <algorithm>

namespace linblock {

double best_class_duals(std::vector<ClassCandidate>& candidates, double own, double norm2, double cost) {
  std::sort(candidates.begin(), candidates.end(), [](const ClassCandidate& one, const ClassCandidate& other) {
    return one.b != other.b ? one.b > other.b : one.number < other.number;
  });
  for (ClassCandidate& one : candidates) one.dual = 0;
  if (candidates.empty() || candidates.front().b <= own) return own;
  // All differences are taken from the largest numbers in them, so that nothing is lost where |x|^2 * cost is tiny or
  // huge beside them.
  double above = candidates.front().b - own;
  double raise = above / 2;  // beta - own
  size_t count = 1;
  while (count < candidates.size() && candidates[count].b - own > raise) {
    above += candidates[count++].b - own;
    raise = above / static_cast<double>(count + 1);
  }
  if (raise <= norm2 * cost) {
    for (size_t i = 0; i < count; ++i) candidates[i].dual = std::max(0.0, (candidates[i].b - own - raise) / norm2);
    return own + raise;
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
