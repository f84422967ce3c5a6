// How far from the best possible objective some weights provably are.
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "objective/duals.h"
#include "objective/problem.h"
#include "objective/rounding.h"

namespace linblock {

// (primal - dual) / dual. Infinite where the dual says nothing.
double relative_gap(double primal, double dual);

// `dual` is lowered by a bound of all rounding, of its own sums and of the primal's: no weights have an objective below
// it, and the gap is true of the very weights whose objective is `primal`.
struct Certificate {
  double primal = 0;
  double dual = 0;

  double gap() const {
    return contradicts_itself() ? std::numeric_limits<double>::infinity() : relative_gap(primal, dual);
  }
  // A bound above what it bounds: a defect of linblock or of the machine. It certifies nothing.
  bool contradicts_itself() const { return dual > primal; }

  static void visit_fields(auto& self, auto&& field) {
    field("primal", self.primal);
    field("dual", self.dual);
  }
};

Certificate certificate_of(const SquaredNorm& w2, const LossSum& losses, const DualSum& duals, const SquaredNorm& v2);

// The part of a row whose features are from `begin` to before `end`.
Row part_of(const Row& row, size_t begin, size_t end);

// One or more passes over all rows at fixed weights. The primal is that of these very weights; the dual uses
// v = sum of alpha y x, summed anew in double, so that weights that have drifted from v can never make the gap look
// smaller than it is. Where v does not fit the memory it is made in ranges of features, one a pass.
class Certifier {
 public:
  Certifier(const Problem& problem, const Task& task, size_t features_at_once = std::numeric_limits<size_t>::max());

  size_t passes() const { return passes_; }
  void begin_pass(size_t pass);
  // The two halves of the work on a chunk; they share nothing, so two threads may do one each. Chunks may come in any
  // order; the sums depend on it in their last digits, so solvers keep to one. Losses are
  // asked for in the first pass. No duals at all are zeros.
  // Other weights, such as a mean, may be looked at beside them.
  void add_losses(const Chunk& chunk, std::span<const double> duals, std::span<const float> weights,
                  std::span<const float> others = {});
  void add_duals(const Chunk& chunk, std::span<const double> duals);
  void end_pass(std::span<const float> weights);

  Certificate finish(std::span<const float> weights) const { return finish(weights, losses_); }
  Certificate finish_others(std::span<const float> others) const { return finish(others, losses_of_others_); }
  // |v - w|^2: how far the weights have drifted.
  double drift() const { return drift_; }
  // The features of this pass of v, from `begin` on.
  struct Range {
    size_t begin = 0;
    std::span<const double> v = {};
  };
  Range range() const { return {begin_, v_}; }

 private:
  Certificate finish(std::span<const float> weights, const LossSum& losses) const {
    return certificate_of(squared_norm_of(weights), losses, duals_, v2_);
  }
  double margin(const Row& row, std::span<const float> weights) const;

  const Problem& problem_;
  RowCost costs_;
  size_t features_at_once_;
  size_t passes_;
  size_t begin_ = 0;
  std::vector<double> v_;
  double norm_ = -1;  // |w|; below 0: not known yet
  double norm_of_others_ = -1;
  LossSum losses_;
  LossSum losses_of_others_;
  DualSum duals_;
  SquaredNorm v2_;
  double drift_ = 0;
  RowBuffer losses_buffer_;
  RowBuffer duals_buffer_;
};

// y w.x, with the bias; in double where a float would overflow.
double margin_of(const Row& row, double sign, double bias, std::span<const float> weights);

}  // namespace linblock
