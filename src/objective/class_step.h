// The dual of one row of a problem with several classes, at its best while all other rows stay as they are.
//
// With s_m = w_m.x, the row's class y and its duals a_m >= 0 of the other classes, whose sum may not be above `cost`:
//   max over changes d   sum of d_m (s_m - s_y + 1) - 1/2 |x|^2 (sum of d_m^2 + (sum of d_m)^2)
// Its best point is a_m = max(0, (b_m - beta) / |x|^2) with
//   b_m = s_m + 1 + |x|^2 a_m   and, of the row's own class,   b_y = s_y - |x|^2 * sum of a_m,
// all at the present a. beta is the mean of b_y and of the b_m above beta; or, where the sum of a would be above the
// cost, what makes it the cost.
// Paper: Keerthi, Sundararajan, Chang, Hsieh, Lin, "A sequential dual method for large scale multi-class linear SVMs"
//        (2008), the sub-problem of section 3, solved by sorting.
#pragma once

#include <cstdint>
#include <vector>

namespace linblock {

struct ClassCandidate {
  uint32_t number = 0;  // of the class
  double b = 0;
  double before = 0;  // its dual
  double dual = 0;    // the answer
};

// Sorts the candidates, largest b first, and fills in the answers; classes that are not among them stay at zero.
// Returns beta: another class would be given something if its b were above it. `true_b` is b_y.
double best_class_duals(std::vector<ClassCandidate>& candidates, double true_b, double norm2, double cost);

}  // namespace linblock
