// Newton's method on the primal of a block of active rows, for squared hinge:
//   min over w  1/2 |w|^2 - w.v + sum over the block of C max(0, 1 - y w.x)^2,   v = sum of alpha y x of all other rows
// Gradient w - v - 2 sum of C (1 - margin) y x and Hessian I + 2 sum of C x x', both over the rows with a margin below
// 1 (indexed block coordinate descent paper, section 3.4, equations 16 and 17). The best w of the block has
// alpha = 2 C max(0, 1 - margin) and is v + sum of alpha y x again.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "objective/problem.h"
#include "solve/indexed/active_rows.h"

namespace linblock {

class BlockNewton {
 public:
  BlockNewton(const Problem& problem, const RowCost& costs, ActiveRows& rows)
      : problem_(problem), costs_(costs), rows_(rows) {}

  // Sets the alphas of the block, and w with them, so that w = v + sum of alpha y x still. That sum is as far from the
  // w that was found as the gradient is long, and the Hessian makes much of it: until the gradient is so small a part
  // of w.
  void solve(
      std::span<const uint32_t> block, std::vector<double>& w, double tolerance,
      const std::function<bool()>& give_up = [] { return false; });

 private:
  // For each row of the block: its place in it, the row, y, and C.
  void for_each(const std::function<void(size_t, const Row&, double, double)>& work);
  void multiply(std::span<const double> direction, std::vector<double>& product);
  double step_along(std::span<const double> w, std::span<const double> direction, std::span<const double> v);

  const Problem& problem_;
  const RowCost& costs_;
  ActiveRows& rows_;
  std::span<const uint32_t> block_ = {};
  std::vector<double> margins_;
  std::vector<double> changes_;  // of the margins, along the direction
  std::vector<double> row_costs_;
  RowBuffer buffer_;
};

}  // namespace linblock
