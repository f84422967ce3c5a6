// Dual coordinate descent on one block of rows: the step that dual_block, average and subsample share.
#pragma once

#include <cstdint>
#include <vector>

#include "base/snapshot.h"
#include "solve/solver.h"

namespace linblock {

class DualDescent {
 public:
  // Goes on from the solution's weights and duals; an empty solution begins at zero.
  DualDescent(const Problem& problem, const Task& task, uint64_t seed, Solution& solution);

  void begin_pass(int pass);
  // `rounds` over the block in random order, with LIBLINEAR's shrinking. With `converge`, until its projected gradients
  // lie within 0.1 of each other, and `rounds` at the most.
  void solve_block(const Block& block, size_t number, int rounds, bool converge);

  void save(SnapshotWriter& to) const;
  void restore(const SnapshotReader& from);

  // Of this pass: the losses of the rows as they were found, before their own step.
  double losses() const { return losses_; }
  // The sum of dual_value over all rows, kept up to date.
  double dual_values() const { return dual_values_; }

 private:
  struct Visit {
    bool shrink = false;
    double projected = 0;  // gradient
  };

  template <DualLoss L>
  void solve_block_with(const L& loss, const Block& block, size_t number, int rounds, bool converge);
  void collect(const Block& block);
  template <DualLoss L>
  Visit update(const L& loss, const Block& block, uint32_t place, bool first, double top, double bottom);

  const Problem& problem_;
  const RowCost costs_;
  const uint64_t seed_;
  Solution& solution_;
  std::vector<uint8_t> rest_;  // passes that a row is still left out; in the order of the duals
  std::vector<uint32_t> order_;
  RowBuffer buffer_;
  int pass_ = 0;
  double violation_ = 0;
  double last_violation_ = 0;
  double losses_ = 0;
  double dual_values_ = 0;
};

inline constexpr int kConvergeRounds = 1000;

}  // namespace linblock
