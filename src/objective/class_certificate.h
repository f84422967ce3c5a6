// The certificate of a classifier that tells all classes apart at once (Crammer and Singer). Used as Certifier is; the
// weights are interleaved, weights[feature * classes + class].
//
// Primal:  1/2 sum of |w_m|^2 + sum over rows of cost * max over m of (w_m.x - w_y.x + 1 - [m = y])
// Dual:    sum of all a - 1/2 sum of |v_m|^2,  v_m = sum over rows of m's class of x * (sum of its a) - sum over other
//          rows of a_m x,  where a row's a are not negative and their sum is not above its cost.
#pragma once

#include <span>
#include <vector>

#include "objective/certificate.h"
#include "objective/sparse_duals.h"

namespace linblock {

class ClassCertifier {
 public:
  // `weights_at_once` bounds how much of v is made in a pass; it is never less than one feature's.
  ClassCertifier(const Problem& problem, const Task& task, size_t weights_at_once = std::numeric_limits<size_t>::max());

  size_t passes() const { return passes_; }
  void begin_pass(size_t pass);
  // Two halves that share nothing, as in Certifier.
  void add_losses(const Chunk& chunk, const SparseDuals::Page& duals, std::span<const float> weights);
  void add_duals(const Chunk& chunk, const SparseDuals::Page& duals);
  void end_pass(std::span<const float> weights);

  Certificate finish(std::span<const float> weights) const {
    return certificate_of(squared_norm_of(weights), losses_, duals_, v2_);
  }
  // |v - w|^2: how far the weights have drifted.
  double drift() const { return drift_; }
  Certifier::FeatureRange range() const { return {begin_ * classes_, v_}; }

 private:
  const Problem& problem_;
  RowCost costs_;
  ClassNumbers numbers_;
  size_t classes_;
  size_t features_at_once_;
  size_t passes_;
  size_t begin_ = 0;  // the first feature of this pass
  std::vector<double> v_;
  std::vector<double> scores_;
  double norm_ = -1;  // of all weights; below 0: not known yet
  LossSum losses_;
  DualSum duals_;
  SquaredNorm v2_;
  double drift_ = 0;
  RowBuffer losses_buffer_;
  RowBuffer duals_buffer_;
};

// w_m.x of every class, with the bias; summed in double.
void exact_scores(const Row& row, double bias, std::span<const float> weights, std::span<double> scores);

}  // namespace linblock
