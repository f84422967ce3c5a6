// How far from the best possible objective some weights provably are.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "objective/duals.h"
#include "objective/problem.h"
#include "objective/rounding.h"
#include "objective/side_by_side.h"

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

// The sums of a certificate over some rows.
struct CertificateSums {
  LossSum losses = {};
  LossSum losses_of_mean = {};  // at the second weights, a mean
  DualSum duals = {};
  LongSum products = {};  // alpha times margin: v.w
  double products_rounding = 0;

  void add(const CertificateSums& other) {
    losses.add(other.losses);
    losses_of_mean.add(other.losses_of_mean);
    duals.add(other.duals);
    products.add(other.products);
    products_rounding += other.products_rounding;
  }
};

// From margins alone: `w2` is of the weights w whose margins are in `sums`, and no v is farther from w than
// `drift_bound`. `primal_w2` and `losses` may be of other weights.
Certificate certificate_without_v(const SquaredNorm& primal_w2, const LossSum& losses, const CertificateSums& sums,
                                  const SquaredNorm& w2, double drift_bound);

// One or more passes over all rows at fixed weights w. The primal is that of these very weights. The dual has one of
// two forms, and weights that have drifted from v = sum of alpha y x can make the gap look smaller in neither:
//   with v, summed anew in double:  sum of dual values - 1/2 |v|^2. Where v does not fit in memory it is made in
//     ranges of features, one a pass.
//   from margins alone, given a bound e >= |v - w|:  since v.w = sum of alpha_i m_i and |v|^2 = 2 v.w - |w|^2 + |v -
//   w|^2,
//     sum of dual values - sum of alpha_i m_i + 1/2 |w|^2 - 1/2 e^2.
class Certifier {
 public:
  // `drift_bound`: e; v is not made then.
  Certifier(const Problem& problem, const Task& task, size_t features_at_once = std::numeric_limits<size_t>::max(),
            std::optional<double> drift_bound = {});

  size_t passes() const { return passes_; }
  // `mean`: second weights, whose losses are summed as well; none if empty.
  void begin_pass(size_t pass, std::span<const float> weights, std::span<const float> mean = {});

  // The work on a chunk, in parts that share nothing, so that several threads may do them. Losses and what belongs to
  // them are asked for in the first pass, of some rows at a time and for a group of tasks; the sums are then added in
  // the order of the rows. `weights`: of all of them, side by side. Each has a span of `duals` and adds to one of
  // `sums`; no duals at all are zeros.
  static void find_sums(std::span<const Certifier> group, const WeightGroup& weights, const Chunk& chunk,
                        size_t first_row, size_t end_row, std::span<const std::span<const double>> duals,
                        RowBuffer& buffer, std::span<CertificateSums> sums);
  void add(const CertificateSums& sums) { sums_.add(sums); }
  // A part of v, of the features from `begin` to before `end`, counted from the first of this pass. Chunks come in
  // their order.
  void add_to_v(const Chunk& chunk, std::span<const double> duals, size_t begin, size_t end, RowBuffer& buffer);
  void end_pass();

  Certificate finish() const { return finish(w2_, sums_.losses); }
  Certificate finish_mean() const { return finish(w2_of_mean_, sums_.losses_of_mean); }
  // A bound on |v - w|: measured, where v was made.
  double drift() const;
  // The same, once the weights are replaced by v.
  double drift_of_v() const;
  bool makes_v() const { return !drift_bound_; }
  // The features of this pass of v, from `begin` on.
  struct FeatureRange {
    size_t begin = 0;
    std::span<const double> v = {};
  };
  FeatureRange range() const { return {begin_, v_}; }

 private:
  Certificate finish(const SquaredNorm& w2, const LossSum& losses) const;
  template <Loss L>
  void add_row(const L& loss, const Row& row, double cost, double length, double product, double alpha,
               CertificateSums& sums) const;

  const Problem& problem_;
  RowCost costs_;
  std::optional<double> drift_bound_;
  size_t features_at_once_;
  size_t passes_;
  size_t begin_ = 0;
  std::vector<double> v_;
  std::span<const float> weights_ = {};
  std::span<const float> mean_ = {};
  SquaredNorm w2_;
  SquaredNorm w2_of_mean_;
  double norm_ = 0;  // |w|
  double norm_of_mean_ = 0;
  CertificateSums sums_;
  SquaredNorm v2_;
  double squared_drift_ = 0;
};

// y w.x, with the bias; in double where a float would overflow.
double margin_of(const Row& row, double sign, double bias, std::span<const float> weights);

}  // namespace linblock
