// Dual coordinate descent on one block of rows, for one task: the step that dual_block, average and subsample share.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "solve/core/solver.h"
#include "solve/dual/shrinking.h"
#include "solve/dual/working_set.h"

namespace linblock {

class DualDescent {
 public:
  // Goes on from the solution's weights and duals, which must be there. `stop` ends the rounds over a block that takes
  // long.
  DualDescent(const Problem& problem, const Task& task, uint64_t seed, Solution& solution,
              const std::atomic<bool>* stop = nullptr);

  // Rows near the margin stay at hand across blocks, in so much memory.
  void use_working_set(uint64_t bytes, const std::vector<Chunk>* resident);
  // Rows that are clearly at a bound are left out of a few passes.
  void use_shrinking() { shrinks_ = true; }
  // Few features for many rows: steps go beyond the best point of their own coordinate, and the mean of the weights
  // over a pass is kept, which is then much better than the last weights.
  void expect_few_features();
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

 private:
  struct Visitor {
    uint32_t place = 0;
    float margin = 0;  // as it was last seen
  };
  struct Visit {
    bool shrink = false;
    double projected = 0;  // gradient
  };

  static void visit_fields(auto& self, auto&& field) {
    field("weights", std::span(self.solution_.weights));
    field("resting", self.resting_);
    field("mean", std::span(self.mean_));
    field("mean_of", self.mean_of_);
    field("pass", self.pass_);
    field("losses", self.losses_);
    field("dual_values", self.dual_values_);
    field("met_all", self.met_all_);
    if (!self.solution_.duals.in_file()) {
      field("duals", self.solution_.duals.all());
      field("rest", self.solution_.duals.all_rests());
    }
    if (self.working_set_.wanted()) field("kept", self.working_set_);
  }

  template <Loss L>
  bool solve_block_with(const L& loss, const Block& block, size_t number, const Rounds& rounds);
  void collect(const Block& block, bool kept_join);
  template <Loss L>
  Visit update(const L& loss, const Block& block, Visitor& visitor, bool first, double top, double bottom);
  template <Loss L>
  void choose_rows(const L& loss, const Block& block);
  template <Loss L>
  bool work_on_kept(const L& loss, const Block& block, Random& random, const Stopwatch& working);
  template <Loss L>
  void kept_round(const L& loss, const Block& block, Random& random);
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
  Shrinking resting_;
  double losses_ = 0;
  double dual_values_ = 0;
  bool met_all_ = false;  // until then a row's dual value is added when it is first met
};

inline constexpr int kConvergeRounds = 1000;

}  // namespace linblock
