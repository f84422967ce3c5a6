// Dual coordinate descent on one block of rows: the step that dual_block, average and subsample share.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "base/snapshot.h"
#include "solve/solver.h"

namespace linblock {

class DualDescent {
 public:
  // Goes on from the solution's weights and duals, which must be there. `stop` ends the rounds over a block that takes
  // long.
  DualDescent(const Problem& problem, const Task& task, uint64_t seed, Solution& solution,
              const std::atomic<bool>* stop = nullptr);

  // Rows near the margin stay at hand across blocks, in so much memory.
  void keep_rows(uint64_t bytes, const std::vector<Chunk>* resident);
  // Few features for many rows: steps go beyond the best point of their own coordinate, and the mean of the weights
  // over a pass is kept, which is then much better than the last weights.
  void expect_few_features();
  // Empty where it is not kept.
  std::span<const float> mean() const { return mean_; }
  // How many seconds go by unused for each second of work: work on kept rows costs so much less.
  void set_idle(double idle) { idle_ = idle; }

  void begin_pass(int pass);
  struct Rounds {
    int most = 1;
    bool converge = false;  // until the projected gradients lie within 0.1 of each other
    // Kept rows join every round; otherwise they have rounds of their own, as many as earn more than fresh rows do.
    bool kept_join = false;
  };
  // Rounds over the block in random order, with LIBLINEAR's shrinking. False: stopped half-way.
  bool solve_block(const Block& block, size_t number, const Rounds& rounds);

  void save(SnapshotWriter& to) const;
  // `order` and `done`: of the pass that the checkpoint stands in, and how many of its blocks are done.
  void restore(const SnapshotReader& from, const BlockOrder& order, size_t done);

  // Of this pass: the losses of the rows as they were found, before their own step; of resting ones, as they were then.
  double losses() const { return losses_; }
  // The sum of dual_value over all rows, kept up to date.
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

  template <DualLoss L>
  bool solve_block_with(const L& loss, const Block& block, size_t number, const Rounds& rounds);
  void collect(const Block& block, bool kept_join);
  template <DualLoss L>
  Visit update(const L& loss, const Block& block, Visitor& visitor, bool first, double top, double bottom);
  template <DualLoss L>
  void choose_rows(const L& loss, const Block& block);
  template <DualLoss L>
  bool work_on_kept(const L& loss, const Block& block, Random& random, const Stopwatch& working);
  template <DualLoss L>
  void kept_round(const L& loss, const Block& block, Random& random);
  template <DualLoss L>
  float worth(const L& loss, const Block& block, const Visitor& visitor, double cost, uint64_t bytes);
  void evict();
  // Told to stop, and this block takes too long to be waited for.
  bool must_leave(const Stopwatch& working) const;
  void rest(RowCache::Origin origin, double loss);
  void look_ahead(const Block& block, size_t at, size_t end) const;

  const Problem& problem_;
  const RowCost costs_;
  const uint64_t seed_;
  Solution& solution_;
  const std::atomic<bool>* stop_;
  std::vector<Visitor> visitors_;
  RowBuffer buffer_;
  std::vector<float> mean_;
  size_t mean_of_ = 0;  // blocks
  double stride_ = 1;   // of a step, in steps to the best point of its coordinate
  RowCache cache_;
  std::vector<float> worths_;    // of the rows in cache_, for each of their bytes
  std::vector<uint8_t> active_;  // those that are not clearly at a bound
  float least_worth_ = 0;        // what a row must be worth to be kept

  // What steps have added to the dual, and the nonzeros they looked at: the price of progress.
  struct Yield {
    double gain = 0;
    double work = 0;
    double rate() const { return work > 0 ? gain / work : 0; }
  };
  Yield done_;         // in this block so far
  Yield fresh_;        // of fresh rows since kept ones were last worked on
  double credit_ = 0;  // work on kept rows that is due
  double zeal_ = 1;    // work on kept rows for each unit of work on fresh ones
  double idle_ = 0;
  double kept_top_ = 0;  // of the last round over kept rows: the largest and smallest projected gradient
  double kept_bottom_ = 0;
  int pass_ = 0;
  double violation_ = 0;                       // of this pass, added up ...
  uint64_t violations_ = 0;                    // ... over so many rows that are not at a bound
  double far_out_ = 0;                         // beyond it a row may rest
  std::array<double, 4> resting_losses_ = {};  // of rows that rest, by the pass they are missing from, modulo 4
  double losses_ = 0;
  double dual_values_ = 0;
};

inline constexpr int kConvergeRounds = 1000;

}  // namespace linblock
