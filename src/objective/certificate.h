// How far from the best possible objective some weights provably are.
#pragma once

#include <span>
#include <vector>

#include "objective/duals.h"
#include "objective/problem.h"

namespace linblock {

struct Certificate {
  double primal = 0;
  double dual = 0;
  // (primal - dual) / dual; no more than this can be gained.
  double gap() const;
};

// A pass over all rows at fixed weights. The primal is that of these very weights; the dual uses v = sum of alpha y x,
// summed anew in double, so that weights that have drifted from v can never make the gap look smaller than it is.
class Certifier {
 public:
  Certifier(const Problem& problem, const Task& task);

  // Chunks may come in any order; the sums depend on it in their last digits, so solvers keep to one.
  void add(const Chunk& chunk, std::span<const double> duals, std::span<const float> weights);
  Certificate finish(std::span<const float> weights) const;
  // v, from which a drifted w can be mended.
  std::span<const double> dual_weights() const { return v_; }

 private:
  const Problem& problem_;
  RowCost costs_;
  std::vector<double> v_;
  double losses_ = 0;
  double dual_values_ = 0;
  RowBuffer buffer_;
};

// y w.x, with the bias; in double where a float would overflow.
double margin_of(const Row& row, double sign, double bias, std::span<const float> weights);

}  // namespace linblock
