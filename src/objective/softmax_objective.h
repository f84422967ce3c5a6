// What rows add to the objective of softmax (multinomial logistic regression), to its gradient and to products with its
// Hessian: one task, in passes over all rows. Weights are interleaved, weights[feature * classes + class].
//
// Objective:  1/2 |W|^2 + sum of cost * (log sum_k exp(w_k.x) - w_y.x)
// Gradient:   W - V,  v_k = sum of cost * ([y = k] - p_k) x,  p = softmax of the row's scores w_k.x
// Product:    S + sum of q x',  q = cost * (p * t - p (p.t)),  t = S x
// Dual:       the alphas cost * p are allowed in the dual, whatever distributions the p are, so an evaluation also
//             bounds the best objective: sum of cost * entropy(p) - 1/2 |V|^2.
// A bias that is not penalized adds to the dual that sum of cost * p_k is the cost N_k of the rows of class k. With e_k
// = sum of cost * p_k - N_k, every p is mixed with one distribution g, p -> (1 - theta) p + theta g, where theta is the
// least for which g = (theta N - (1 - theta) e) / (theta sum of cost) is one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/fields.h"
#include "base/team.h"
#include "objective/certificate.h"
#include "objective/problem.h"
#include "objective/rounding.h"
#include "store/blocks/block_source.h"

namespace linblock {

class SoftmaxObjective {
 public:
  static constexpr uint64_t kBytesPerAccumulatedWeight = sizeof(double) + sizeof(float);
  // What is kept of a row: its cost and its probabilities.
  static constexpr uint64_t row_bytes(size_t classes) { return sizeof(double) + classes * sizeof(float); }
  // What is noted of a row of a block in work: samples that it stands in, in the mean of the block's rows. What finds
  // no room is not sampled.
  static constexpr uint64_t kSamplesPerRow = 2;
  static constexpr uint64_t kNoteBytes = kSamplesPerRow * (3 * sizeof(uint32_t) + sizeof(float));

  // Chunk c adds to accumulator c modulo `accumulators`. `keeps_rows`: probabilities stay in memory from an evaluation
  // to the products after it; otherwise products compute them again.
  SoftmaxObjective(const Problem& problem, const Task& task, size_t accumulators, bool keeps_rows);

  size_t classes() const { return classes_; }
  // Each begins a pass; vectors must stay as they are until the pass is done.
  // As if every p were 0: v becomes the sums of cost * x, class by class.
  void begin_class_sums();
  // `norm`: |W|, from which the rounding of scores is bounded. `rates`: of each class; a row is taken into its sample
  // with the probability rate * cost * p_k (1 - p_k). Empty: no samples are wanted.
  void begin_evaluation(std::span<const double> weights, double norm, std::span<const double> rates = {});
  // `weights`: those of the last evaluation.
  void begin_product(std::span<const double> weights, std::span<const float> direction);
  // The chunks of a block that belong to an accumulator. Several threads may work on different accumulators.
  void add(const Block& block, size_t accumulator);

  // The class's sampled rows of the block, each with its share, the curvature divided by the probability of the row:
  // the lower triangle of sum of share x x', column by column. Before the next block.
  void add_samples(const Block& block, size_t of_class, std::span<double> matrix) const;
  void clear_samples();

  // Of what the pass sums up: v, or the product without the direction itself.
  double sum(size_t weight) const {
    double all = 0;
    for (const Accumulator& accumulator : accumulators_) all += accumulator.sums[weight];
    return all;
  }
  // Of the Hessian, without the 1, at the last evaluation.
  double diagonal(size_t weight) const {
    double all = 0;
    for (const Accumulator& accumulator : accumulators_) all += double{accumulator.diagonal[weight]};
    return all;
  }
  // Of each class: the sum of cost * p_k (1 - p_k).
  std::vector<double> curvatures() const;
  // The cost of all rows of each class.
  std::vector<double> class_costs() const;

  // After an evaluation: the loss with its rounding, and a bound of how wrong v is by rounding.
  LossSum losses() const;
  double v_rounding() const;
  // The dual values of the p as they are, of which v is the sum.
  DualSum dual_values() const;

  // How p is mixed where the bias is free.
  struct Mixture {
    double theta = 0;
    std::vector<double> constant = {};  // g
    DualSum values = {};
    double rounding = 0;    // of the dual, by what the sums of e can be wrong
    double g_rounding = 0;  // of each theta g
  };
  // Reads no row: from what is kept of them.
  Mixture mixture(std::span<const double> class_costs, const Team& team) const;

  void save(FieldWriter& to) const { visit_fields(*this, to); }
  // With the vectors that the pass was begun with.
  void restore(FieldReader& from, std::span<const double> weights, double norm, std::span<const double> rates,
               std::span<const float> direction);

 private:
  enum class Pass { class_sums, evaluation, product };
  friend constexpr Pass last_of(Pass) { return Pass::product; }
  struct Totals {
    LossSum losses = {};
    LongSum entropies = {};
    double lengths = 0;  // sum of cost * |p - e_y| |x|, and of how many rows: a bound of v's rounding
    double rows = 0;

    static void visit_fields(auto& self, auto&& field) {
      field("losses", self.losses);
      field("entropies", self.entropies);
      field("lengths", self.lengths);
      field("rows", self.rows);
    }
  };
  struct Sampled {
    uint32_t chunk = 0;  // of the block
    uint32_t row = 0;
    uint32_t of_class = 0;
    float share = 0;
  };
  static_assert(kSamplesPerRow * sizeof(Sampled) == kNoteBytes);
  struct alignas(64) Accumulator {  // threads that write to two of them share no cache line
    std::vector<double> sums;
    std::vector<float> diagonal;
    std::vector<LongSum> class_costs;
    std::vector<double> curvatures;
    std::vector<LongSum> excess;  // e, class by class
    std::vector<Sampled> samples;
    size_t most_samples = 0;  // of the block
    Totals totals = {};
    RowBuffer buffer = {};
    std::vector<double> scores = {};
    std::vector<double> scales = {};
    std::vector<float> shares = {};  // of a row that is not kept
  };

  static void visit_fields(auto& self, auto&& field) {
    field("pass", self.pass_);
    field("costs", std::span(self.row_costs_));
    field("shares", std::span(self.shares_));
    for (size_t i = 0; i < self.accumulators_.size(); ++i) {
      auto& accumulator = self.accumulators_[i];
      const std::string name = numbered("accumulator", i);
      field(name + ".sums", std::span(accumulator.sums));
      field(name + ".diagonal", std::span(accumulator.diagonal));
      for (size_t k = 0; k < accumulator.class_costs.size(); ++k)
        field(name + "." + numbered("class_cost", k), accumulator.class_costs[k]);
      field(name + ".curvatures", std::span(accumulator.curvatures));
      for (size_t k = 0; k < accumulator.excess.size(); ++k)
        field(name + "." + numbered("excess", k), accumulator.excess[k]);
      field(name + ".totals", accumulator.totals);
    }
  }

  void begin(Pass pass);
  bool has_free_bias() const { return problem_.free_bias; }
  void add_class_sums(const Chunk& chunk, Accumulator& accumulator) const;
  void evaluate(const Chunk& chunk, uint32_t in_block, uint64_t first_row, Accumulator& accumulator);
  void multiply(const Chunk& chunk, uint64_t first_row, Accumulator& accumulator) const;
  void find_scores(const Row& row, std::span<double> scores) const;
  void add_scaled_row(const Row& row, std::span<const double> scales, std::span<double> sums) const;

  const Problem& problem_;
  const RowCost costs_;
  const ClassNumbers numbers_;
  const size_t classes_;
  const bool keeps_rows_;
  std::vector<uint64_t> begin_;  // where a chunk's rows begin among all
  // Of each row, if they are kept: its cost, and p but for its own class, whose p is what is left of 1 and whose place
  // holds kOwnClass.
  std::vector<double> row_costs_;
  std::vector<float> shares_;
  std::vector<Accumulator> accumulators_;
  Pass pass_ = Pass::evaluation;
  std::span<const double> at_ = {};
  double norm_ = 0;
  std::span<const double> rates_ = {};
  std::span<const float> direction_ = {};
};

}  // namespace linblock
