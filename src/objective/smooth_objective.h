// Value, gradient and Hessian products of one task with a smooth loss: what rows add to them, in passes over all rows.
//
// Objective:  1/2 |w|^2 + sum of cost * loss(y w.x)
// Gradient:   w - v,  v = sum of alpha y x,  alpha = -cost * loss'(y w.x)
// Product:    d + sum of curvature * (x.d) x,  curvature = cost * loss''(y w.x)
// The alphas of any weights are allowed in the dual, so an evaluation also gives a bound on the best objective.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/fields.h"
#include "objective/free_bias.h"
#include "objective/problem.h"
#include "objective/rounding.h"
#include "store/blocks/block_source.h"

namespace linblock {

class SmoothObjective {
 public:
  // Of a weight, in one accumulator: a number of either kind of pass, and the curvature along it.
  struct Pair {
    float direction;
    float product;

    static void visit_fields(auto& self, auto&& field) {
      field("direction", self.direction);
      field("product", self.product);
    }
  };
  union Cell {
    double v;   // while the objective is evaluated
    Pair pair;  // while a direction is multiplied: both are needed together, so they share a cache line
  };
  // What the last evaluation, and the one before it, left of a row.
  struct RowState {
    float margin = 0;
    float change = 0;  // of the margin, since the evaluation that `margin` is of
    float curvature = 0;
    float cost = 0;

    static void visit_fields(auto& self, auto&& field) {
      field("margin", self.margin);
      field("change", self.change);
      field("curvature", self.curvature);
      field("cost", self.cost);
    }
  };
  static constexpr uint64_t kBytesPerRow = sizeof(RowState);
  static constexpr uint64_t kBytesPerAccumulatedWeight = sizeof(Cell) + sizeof(float);
  // Beside it if the bias is free: the part of v from rows of y = -1.
  static constexpr uint64_t kBytesPerBalancedWeight = sizeof(double);

  // Chunk c adds to accumulator c modulo `accumulators`, whoever works on it: sums do not depend on how many threads
  // there are.
  SmoothObjective(const Problem& problem, const Task& task, size_t accumulators);

  size_t weights() const { return problem_.weights(); }

  // Each begins a pass; the vector must stay as it is until the pass is done. `on_trial`: accept() makes these weights
  // the ones that later trials begin from; until then line_derivative() knows what lies between.
  void begin_evaluation(std::span<const double> weights, bool on_trial);
  // By set_direction() for every weight, before it.
  void begin_product();
  void begin_losses(std::span<const float> weights);
  void set_direction(size_t weight, float direction) {
    for (Accumulator& accumulator : accumulators_) accumulator.cells[weight].pair = {direction, 0};
  }
  double direction(size_t weight) const { return double{accumulators_.front().cells[weight].pair.direction}; }
  // The chunks of a block that belong to an accumulator. Several threads may work on different accumulators.
  void add(const Block& block, size_t accumulator);

  // After an evaluation.
  double losses() const;
  // After a pass for losses alone, with their rounding.
  LossSum saved_losses() const;
  double v(size_t weight) const {
    double sum = 0;
    for (const Accumulator& accumulator : accumulators_) sum += accumulator.cells[weight].v;
    return sum;
  }
  // Of the Hessian, without the 1.
  double diagonal(size_t weight) const {
    double sum = 0;
    for (const Accumulator& accumulator : accumulators_) sum += double{accumulator.diagonal[weight]};
    return sum;
  }
  // If the bias is free: the duals of both sides, and v once they balance.
  BalancedDual balanced() const;
  double balanced_v(size_t weight, const BalancingShares& shares) const {
    double negative = 0;
    for (const Accumulator& accumulator : accumulators_) negative += accumulator.negative_v[weight];
    return shares.v(v(weight), negative);
  }
  // The best lower bound that the alphas, all multiplied by one number, give: the dual, with its rounding taken off.
  // `v2`: of the weights that are penalized, balanced.
  double dual(const SquaredNorm& v2) const;
  void accept();
  // If the bias is free: the most that its diagonal can be at any weights.
  double most_diagonal_of_bias() const;
  // After a product, and the direction again.
  double product(size_t weight) const {
    double sum = weight == free_ ? 0 : direction(weight);
    for (const Accumulator& accumulator : accumulators_) sum += double{accumulator.cells[weight].pair.product};
    return sum;
  }
  // Of the losses, at a share of the way from the last evaluation that was not on trial to the one that is.
  double line_derivative(double share) const;

  void save(FieldWriter& to) const { visit_fields(*this, to); }
  // With the vectors that the pass was begun with.
  void restore(FieldReader& from, std::span<const double> weights, std::span<const float> rounded);

 private:
  enum class Pass { evaluation, trial, product, losses };
  friend constexpr Pass last_of(Pass) { return Pass::losses; }
  struct Totals {
    double losses = 0;
    LossSum saved_losses = {};
    // For the bound, unless the bias is free.
    LongSum alphas = {};   // sum of dual values, or of their linear parts ...
    LongSum squares = {};  // ... and of their quadratic parts, where the dual is quadratic
    double largest = 0;    // of alpha / the largest alpha allowed, likewise
    double lengths = 0;    // sum of alpha |x|, and of how many rows: a bound of v's rounding
    double rows = 0;

    static void visit_fields(auto& self, auto&& field) {
      field("losses", self.losses);
      field("saved_losses", self.saved_losses);
      field("alphas", self.alphas);
      field("squares", self.squares);
      field("largest", self.largest);
      field("lengths", self.lengths);
      field("rows", self.rows);
    }
  };
  struct alignas(64) Accumulator {  // threads that write to two of them share no cache line
    std::vector<Cell> cells;
    std::vector<float> diagonal;
    std::vector<double> negative_v;  // of rows of y = -1; none unless the bias is free
    Totals totals = {};
    BalancedDual balance = {};
    RowBuffer buffer = {};
    std::array<RowBuffer, 2> buffers = {};
  };

  static void visit_fields(auto& self, auto&& field) {
    field("rows", std::span(self.rows_));
    field("pass", self.pass_);
    for (size_t i = 0; i < self.accumulators_.size(); ++i) {
      auto& accumulator = self.accumulators_[i];
      const std::string name = numbered("accumulator", i);
      // What the cells are in this kind of pass.
      if (self.pass_ == Pass::product)
        field(name + ".cells", member_of_each(accumulator.cells, &Cell::pair));
      else
        field(name + ".cells", member_of_each(accumulator.cells, &Cell::v));
      field(name + ".diagonal", std::span(accumulator.diagonal));
      field(name + ".totals", accumulator.totals);
      if (!self.problem_.free_bias) continue;
      field(name + ".negative_v", std::span(accumulator.negative_v));
      field(name + ".balance", accumulator.balance);
    }
  }
  // All cells as that member of the union, which is as large as the cell.
  template <class Cells, class Member>
  static auto member_of_each(Cells& cells, Member Cell::*member) {
    static_assert(sizeof(Member) == sizeof(Cell));
    return std::span(cells.empty() ? nullptr : &(cells.data()->*member), cells.size());
  }

  void begin(Pass pass);
  template <SmoothLoss L>
  void evaluate(const L& loss, const Chunk& chunk, std::span<RowState> states, Accumulator& accumulator);
  void multiply(const Chunk& chunk, std::span<const RowState> states, Accumulator& accumulator) const;
  void add_losses(const Chunk& chunk, Accumulator& accumulator) const;

  const Problem& problem_;
  const RowCost costs_;
  const size_t free_;            // the weight without a penalty
  std::vector<uint64_t> begin_;  // where a chunk's rows begin among all
  std::vector<RowState> rows_;
  std::vector<Accumulator> accumulators_;
  Pass pass_ = Pass::evaluation;
  std::span<const double> at_ = {};
  std::span<const float> rounded_ = {};
  double rounded_norm_ = 0;
};

}  // namespace linblock
