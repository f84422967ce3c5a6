// One task's sums over all rows at fixed weights: the objective, a bound from the dual, the gradient, the diagonal of
// the Hessian, and the rows that the model of the next step is made of.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "objective/certificate.h"
#include "objective/free_bias.h"
#include "objective/problem.h"
#include "solve/newton/row_sample.h"
#include "solve/newton/row_term.h"
#include "store/blocks/block_source.h"

namespace linblock {

class NewtonEvaluation {
 public:
  // Of the centres, where the loss has a corner: as they are and as they would follow, each as a share of the cost.
  static constexpr uint64_t kBytesPerRow = 2 * sizeof(uint16_t);
  // In each accumulator.
  static constexpr uint64_t kBytesPerAccumulatedWeight = sizeof(double) + sizeof(float);
  // Beside it if the bias is free: the part of v from rows of y = -1.
  static constexpr uint64_t kBytesPerBalancedWeight = sizeof(double);
  static constexpr double kUsualZone = 1;
  // What threads note of a row of a block in work.
  static constexpr uint64_t kNoteBytes = sizeof(RowSample::Known) + 2 * sizeof(uint32_t);
  // So many that threads are busy and their sums are short: from the data alone.
  static size_t accumulators(uint64_t weights);

  NewtonEvaluation(const Problem& problem, const Task& task, size_t accumulators, uint64_t seed);

  bool has_centres() const { return !centres_.empty(); }
  double penalty() const { return penalty_; }
  void set_penalty(double penalty) { penalty_ = penalty; }
  // How far margins are expected to move in a step, for losses without centres.
  double zone() const { return zone_; }
  void set_zone(double zone) { zone_ = zone; }
  // The centres become the alphas of the last reading.
  void move_centres();

  struct Reading {
    uint64_t number = 0;           // each draws a sample of its own
    bool guesses_centres = false;  // the first of a warm start: they are what the margins say
    bool samples = true;           // rows are kept for a model

    static void visit_fields(auto& self, auto&& field) {
      field("number", self.number);
      field("guesses_centres", self.guesses_centres);
      field("samples", self.samples);
    }
  };
  // At these weights, which must stay as they are. `rarely`: 1 / (1 + the Hessian's diagonal) of the reading before;
  // empty: not known.
  void begin(std::span<const double> weights, std::span<const float> rarely, const Reading& reading);
  // The chunks of a block that belong to an accumulator; several threads may work on different ones.
  void add(const Block& block, size_t accumulator);
  // What they have found goes to the sample.
  void collect(const Block& block, RowSample& sample);

  // Afterwards.
  struct Sums {
    LossSum losses = {};
    double smoothed = 0;         // the sum of the terms
    double linear = 0;           // of alpha (1 - margin), where there are centres
    double complementarity = 0;  // likewise: how far the margins are from what the alphas ask for
    // For the bound, unless the bias is free.
    LongSum alphas = {};   // of dual values, or of their linear parts ...
    LongSum squares = {};  // ... and of their quadratic parts
    double largest = 0;    // of alpha / the largest alpha allowed
    double lengths = 0;    // of alpha |x|, and of how many rows: a bound of v's rounding
    double rows = 0;

    void add(const Sums& other);
    // A row's alpha, which is not 0.
    template <Loss L>
    void add_dual(const L& loss, double alpha, double cost);
    static void visit_fields(auto& self, auto&& field) {
      field("losses", self.losses);
      field("smoothed", self.smoothed);
      field("linear", self.linear);
      field("complementarity", self.complementarity);
      field("alphas", self.alphas);
      field("squares", self.squares);
      field("largest", self.largest);
      field("lengths", self.lengths);
      field("rows", self.rows);
    }
  };
  Sums sums() const;
  // v = sum of alpha y x, and the Hessian's diagonal without the 1.
  double v(size_t weight) const;
  double diagonal(size_t weight) const;
  // If the bias is free: the duals of both sides, and v once they balance.
  BalancedDual balanced() const;
  double balanced_v(size_t weight, const BalancingShares& shares) const;
  // The objective of the weights, and the best bound that the alphas give, all of them multiplied by one number.
  // Rounding is taken off both. Both norms are of the weights that are penalized, and v is balanced.
  Certificate certificate(const Sums& sums, const SquaredNorm& w2, const SquaredNorm& v2) const;

  void save(FieldWriter& to) const;
  // With what the reading was begun with.
  void restore(FieldReader& from, std::span<const double> weights, std::span<const float> rarely);

 private:
  struct Found {
    uint32_t chunk = 0;  // of the block
    uint32_t row = 0;
    RowSample::Known known = {};
  };
  struct alignas(64) Accumulator {  // threads that write to two of them share no cache line
    std::vector<double> v;
    std::vector<float> diagonal;
    std::vector<double> negative_v;  // of rows of y = -1; none unless the bias is free
    Sums sums = {};
    BalancedDual balance = {};
    RowBuffer buffer = {};
    std::vector<Found> found = {};
  };

  static void visit_fields(auto& self, auto&& field) {
    field("centres", std::span(self.centres_));
    field("next_centres", std::span(self.next_centres_));
    field("penalty", self.penalty_);
    field("zone", self.zone_);
    field("reading", self.reading_);
    field("bound", self.bound_);
    for (size_t i = 0; i < self.accumulators_.size(); ++i) {
      auto& accumulator = self.accumulators_[i];
      const std::string name = numbered("accumulator", i);
      field(name + ".v", std::span(accumulator.v));
      field(name + ".diagonal", std::span(accumulator.diagonal));
      field(name + ".sums", accumulator.sums);
      if (!self.problem_.free_bias) continue;
      field(name + ".negative_v", std::span(accumulator.negative_v));
      field(name + ".balance", accumulator.balance);
    }
  }

  template <Loss L>
  void add_chunk(const L& loss, const Chunk& chunk, uint32_t number, uint32_t in_block, Accumulator& accumulator);
  double weight_of(const Row& row, double curvature) const;

  const Problem& problem_;
  const RowCost costs_;
  const uint64_t seed_;
  std::vector<uint64_t> begin_;         // where a chunk's rows begin among all
  std::vector<uint16_t> centres_;       // one per row; none for a smooth loss
  std::vector<uint16_t> next_centres_;  // the alphas of the reading
  double penalty_ = 1;
  double zone_ = kUsualZone;
  std::vector<Accumulator> accumulators_;
  // Of the reading in work.
  std::span<const double> at_ = {};
  double norm_ = 0;
  std::span<const float> rarely_ = {};
  Reading reading_ = {};
  double bound_ = 0;  // of rarity: what the sample does not take is not noted
};

}  // namespace linblock
