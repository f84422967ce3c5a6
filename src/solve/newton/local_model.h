// The model that a Newton step minimizes: the rows of a sample with their true terms, all others as they were at the
// last reading.
//
//   model(u) = 1/2 |u|^2 + sum over the sample of scale * term(margin) + b.u + 1/2 sum of e_j (u_j - w_j)^2
//
// b makes the model's gradient at w that of all rows. e is the part of the Hessian's diagonal that a sample lacks (0
// where every row that matters is kept). It is minimized by Newton steps of its own, which read nothing: conjugate
// gradients, preconditioned by the diagonal or by a factorization, and an exact line search.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "base/team.h"
#include "objective/problem.h"
#include "solve/newton/evaluation.h"
#include "solve/newton/factor.h"
#include "solve/newton/row_sample.h"

namespace linblock {

// Matrices for factorizations, which are few where they are large: a task takes one while it makes a step.
class FactorPool {
 public:
  // None where `count` is 0.
  FactorPool(size_t count, size_t weights);
  bool empty() const { return mutexes_.empty(); }
  // Calls work with one that nobody else has.
  void with(size_t task, const std::function<void(Factor&)>& work);

 private:
  std::vector<Factor> factors_;
  std::vector<std::mutex> mutexes_;
};

class LocalModel {
 public:
  static constexpr uint64_t kBytesPerWeight = 11 * sizeof(double);
  // Partial sums over rows, where there are enough rows for several threads.
  static constexpr size_t kMostParts = 16;
  static uint64_t part_bytes(uint64_t weights) { return parts_of(weights) * weights * sizeof(double); }

  LocalModel(const Problem& problem, const RowSample& rows, const Team& team);

  struct Start {
    std::span<const double> weights = {};
    std::span<const double> v = {};        // of the reading
    std::span<const float> diagonal = {};  // of the Hessian, without the 1
    double penalty = 1;
    bool centres_moved = false;
    bool penalty_changed = false;
  };
  // The weights where the model is smallest, nearly. `products`: how many a step took last, which decides between
  // conjugate gradients and a factorization; updated. Ends early when told to stop.
  void minimize(const Start& start, FactorPool& factors, size_t task, double& products,
                const std::function<bool()>& stopped);
  std::span<const double> weights() const { return at_; }
  // How much the terms of the sample are above those with the alphas of the reading, at its weights, where centres
  // have moved or the penalty has changed.
  double rise() const { return rise_; }

 private:
  static size_t parts_of(uint64_t weights);
  size_t parts() const;
  // add(row number, row, out): what rows add to a vector.
  void sum_over(std::span<const uint32_t> rows, std::span<double> out,
                const std::function<void(uint32_t, const Row&, std::span<double>)>& add);
  void for_rows(std::span<const uint32_t> rows, const std::function<void(uint32_t, const Row&)>& work);
  void update_alphas();
  double complementarity() const;
  void step(FactorPool& factors, size_t task, double& products, const std::function<bool()>& stopped);
  bool conjugate_gradients(const Factor* factor, size_t most, double& made, const std::function<bool()>& stopped);
  bool factorize(Factor& factor);
  double best_length();
  void settle_bias();
  double slope_along(double length) const;

  const Problem& problem_;
  const RowSample& rows_;
  const Team team_;
  Start start_ = {};
  const size_t free_;  // the weight without a penalty
  double ridge_ = 0;   // its 1 in the Hessian, so that no row with curvature leaves it singular
  double rise_ = 0;
  // Of the sample.
  std::vector<uint32_t> all_;
  std::vector<double> margin_;
  std::vector<double> alpha_;
  std::vector<float> curvature_;  // times the scale
  std::vector<double> change_;    // of the margin, along the step
  std::vector<uint32_t> curved_;
  double curved_nonzeros_ = 0;
  double curved_squares_ = 0;  // of nonzeros: what a factorization looks at
  // Of the weights.
  std::vector<double> at_;
  std::vector<double> b_;
  std::vector<double> lacking_;  // e
  std::vector<double> pulled_;   // sum of scale alpha y x
  std::vector<double> gradient_;
  std::vector<double> step_;
  std::vector<double> residual_;
  std::vector<double> direction_;
  std::vector<double> product_;
  std::vector<double> solved_;    // the preconditioner's answer to the residual
  std::vector<double> diagonal_;  // of the model's Hessian
  std::vector<double> sums_;      // of the parts
};

}  // namespace linblock
