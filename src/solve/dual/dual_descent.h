// Dual coordinate descent on one block of rows, for one task: the step that dual, average and subsample share. Rows are
// stepped along one by one, or in batches on all threads; several tasks go over a block together in task_group.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "base/random.h"
#include "objective/drift.h"
#include "solve/core/solver.h"
#include "solve/dual/batches.h"
#include "solve/dual/shrinking.h"
#include "solve/dual/working_set.h"

namespace linblock {

class DualDescent {
 public:
  // Goes on from the solution's weights and duals, which must be there. `stop` ends the rounds over a block that takes
  // long.
  DualDescent(const Problem& problem, const Task& task, uint64_t seed, Solution& solution,
              const std::atomic<bool>* stop = nullptr);

  // Rows near the margin stay at hand across blocks, at most so many and in so much memory.
  void use_working_set(uint64_t bytes, uint64_t rows, const std::vector<Chunk>* resident);
  // Rows that are clearly at a bound are left out of a few passes.
  void use_shrinking() { shrinks_ = true; }
  // Few features for many rows: steps go beyond the best point of their own coordinate, and the mean of the weights
  // over a pass is kept, which is then much better than the last weights.
  void expect_few_features();
  // Batches of so many rows; none: as the rows of the first block suggest. `rows_stay`: in memory, decoded.
  void use_batches(const Team& team, std::optional<uint64_t> rows, bool rows_stay);
  // Empty where it is not kept.
  std::span<const float> mean() const { return mean_; }
  void set_idle(double idle) { working_set_.set_idle(idle); }

  void begin_pass(int pass);
  struct Rounds {
    int most = 1;
    bool converge = false;  // until the projected gradients lie within 0.1 of each other
    // Kept rows join every round; otherwise they have rounds of their own, as many as earn more than fresh rows do.
    bool kept_join = false;
  };
  // Rounds over the block in random order, with LIBLINEAR's shrinking. False: stopped half-way.
  bool solve_block(const Block& block, size_t number, const Rounds& rounds);

  void save(FieldWriter& to) const;
  // `order` and `done`: of the pass that the checkpoint stands in, and how many of its blocks are done.
  void restore(FieldReader& from, const BlockOrder& order, size_t done);

  // Of this pass: the losses of the rows as they were found, before their own step; of resting ones, as they were then.
  double losses() const { return losses_; }
  // The sum of dual_value over all rows, kept up to date; after a warm start, once a pass is done.
  double dual_values() const { return dual_values_; }
  double squared_weights() const;
  // How far the weights can be from v.
  double drift_bound() const { return drift_.value(); }
  void set_drift_bound(double bound) { drift_.set(bound); }

 private:
  struct Visitor {
    uint32_t place = 0;
    float margin = 0;  // as it was last seen
  };
  struct Visit {
    bool shrink = false;
    double projected = 0;  // gradient
    bool moved = false;
    float change = 0;  // w += change * x
  };
  // What a row is to a task. `counted`: it is its first visit in this pass.
  struct RowOfTask {
    double cost = 0;
    double sign = 0;
    double margin = 0;
    bool counted = false;
  };
  // The largest and smallest projected gradient: what a round may leave out, and what it has found.
  struct Range {
    double top = 0;
    double bottom = 0;

    static constexpr double kInfinity = std::numeric_limits<double>::infinity();
    static Range all() { return {.top = kInfinity, .bottom = -kInfinity}; }
    static Range none() { return {.top = -kInfinity, .bottom = kInfinity}; }
    void add(double projected) {
      top = std::max(top, projected);
      bottom = std::min(bottom, projected);
    }
    bool is_solved() const { return top - bottom <= kConvergeTolerance; }
    // Of the next round.
    Range as_limits() const { return {.top = top > 0 ? top : kInfinity, .bottom = bottom < 0 ? bottom : -kInfinity}; }

   private:
    static constexpr double kConvergeTolerance = 0.1;  // of a sub-problem: LIBLINEAR's default
  };
  // How batches are made; part of the run's state, once the first block has decided it.
  struct BatchState {
    bool chosen = false;
    uint64_t head = 0;
    BatchSize fresh;
    BatchSize kept;

    static void visit_fields(auto& self, auto&& field) {
      field("chosen", self.chosen);
      field("head", self.head);
      field("fresh", self.fresh);
      field("kept", self.kept);
    }
  };
  template <Loss L>
  class List;
  friend class TaskGroup;

  static void visit_fields(auto& self, auto&& field) {
    field("weights", std::span(self.solution_.weights));
    field("shrinking", self.shrinking_);
    field("mean", std::span(self.mean_));
    field("mean_of", self.mean_of_);
    field("pass", self.pass_);
    field("losses", self.losses_);
    field("dual_values", self.dual_values_);
    field("met_all", self.met_all_);
    field("drift", self.drift_);
    if (self.batch_team_) field("batches", self.batch_state_);
    if (!self.solution_.duals.in_file()) {
      field("duals", self.solution_.duals.all());
      field("passes_out", self.solution_.duals.all_passes_out());
    }
    if (self.working_set_.wanted()) field("kept", self.working_set_);
  }

  template <Loss L>
  bool solve_block_with(const L& loss, const Block& block, size_t number, const Rounds& rounds);
  void begin_block(const Block& block);
  void end_block(const Block& block);
  // Of a block's rounds.
  Random random_of(size_t number) const { return Random(seed_, mix64(static_cast<uint64_t>(pass_), number)); }
  void collect(const Block& block, bool kept_join);
  void choose_batches(const Block& block);
  void make_batches();
  // One round over the first `count` visitors, those that shrink moved behind the others. How many are left; none: told
  // to stop half-way.
  template <Loss L>
  std::optional<size_t> round(const L& loss, const Block& block, size_t count, bool first, Range& range,
                              BatchSize& size, const Stopwatch& working);
  template <Loss L>
  Visit update(const L& loss, const Block& block, Visitor& visitor, bool first, const Range& range);
  // The step of a row whose margin is known; `norm2` gives |x|^2. Whoever calls it changes the weights.
  template <Loss L, class SquaredLength>
  Visit step(const L& loss, const Row& row, RowCache::Origin origin, const RowOfTask& of_task, const Range& range,
             const SquaredLength& norm2);
  double squared_length(const Row& row) const;
  // What a margin asks of a row. `counted`: it is the row's first visit in this pass.
  template <Loss L>
  Visit visit(const L& loss, double alpha, double margin, double cost, bool counted, const Range& range,
              uint8_t& passes_out);
  template <Loss L>
  double next_alpha(const L& loss, double alpha, double margin, double norm2, double cost) const;
  // A step was made, at this margin. What it has added to the dual.
  template <Loss L>
  double account(const L& loss, double alpha, double next, double margin, double norm2, double cost, size_t nonzeros);
  template <Loss L>
  void choose_rows(const L& loss, const Block& block);
  template <Loss L>
  bool work_on_kept(const L& loss, const Block& block, Random& random, const Stopwatch& working);
  template <Loss L>
  bool kept_round(const L& loss, const Block& block, Random& random, const Stopwatch& working);
  template <Loss L>
  float priority_of(const L& loss, const Block& block, const Visitor& visitor, double cost);
  // Told to stop, and this block takes too long to be waited for.
  bool must_leave(const Stopwatch& working) const;
  void prefetch(const Block& block, size_t at, size_t end) const;

  const Problem& problem_;
  const HeldOut held_out_;
  const RowCost costs_;
  const uint64_t seed_;
  Solution& solution_;
  const std::atomic<bool>* stop_;
  std::vector<Visitor> visitors_;
  RowBuffer buffer_;
  std::vector<float> mean_;
  size_t mean_of_ = 0;          // blocks
  double over_relaxation_ = 1;  // of a step, in steps to the best point of its coordinate
  WorkingSet working_set_;
  bool shrinks_ = false;
  Progress done_;  // in this block so far
  int pass_ = 0;
  Shrinking shrinking_;
  double losses_ = 0;
  double dual_values_ = 0;
  DriftBound drift_;
  std::optional<Team> batch_team_;  // none: rows are stepped along one by one
  std::optional<uint64_t> batch_rows_;
  BatchState batch_state_;
  std::unique_ptr<Batches> batches_;
  std::vector<uint8_t> shrunk_;  // of the visitors of a round in batches
  bool remembers_rows_ = false;
  bool met_all_ = false;  // until then a row's dual value is added when it is first met
};

inline constexpr int kConvergeRounds = 1000;

}  // namespace linblock
