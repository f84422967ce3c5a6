// Dual coordinate descent on one block of rows for a group of tasks, row by row: a row and the weights of its features
// are looked up once for all of them. Each task shrinks, rests and ends on its own, and rows come in the same order for
// all tasks, so a task's result is the same whatever group it is in.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "objective/side_by_side.h"
#include "solve/dual/dual_descent.h"

namespace linblock {

class TaskGroup {
 public:
  // Tasks that have no working set and keep no mean.
  TaskGroup(std::vector<DualDescent*> tasks, const WeightGroup& weights)
      : tasks_(std::move(tasks)), weights_(weights) {}

  // As DualDescent::solve_block. False: stopped half-way.
  bool solve_block(const Block& block, size_t number, const DualDescent::Rounds& rounds);

 private:
  using Bits = uint8_t;  // of a group's tasks
  static_assert(kMostSideBySide <= 8);

  struct Visitor {
    uint32_t place = 0;
    Bits tasks = 0;   // that look at it
    Bits active = 0;  // of them, those that have not left it out of this block's later rounds
  };
  // How a task's rounds over the block go.
  struct Turn {
    bool done = false;
    uint64_t visitors = 0;
    uint64_t active = 0;
    DualDescent::Range left;   // by the last round
    DualDescent::Range found;  // in this one
  };

  void collect(const Block& block);
  template <Loss L>
  bool solve_block_with(const L& loss, const Block& block, size_t number, const DualDescent::Rounds& rounds);
  template <Loss L>
  void round(const L& loss, const Block& block, bool first);
  template <Loss L>
  void visit(const L& loss, const Row& row, Visitor& visitor, RowCache::Origin origin, bool first);
  void end_round(const DualDescent::Rounds& rounds);
  void prefetch(const Block& block, size_t at) const;

  std::vector<DualDescent*> tasks_;
  WeightGroup weights_;
  std::vector<Visitor> visitors_;
  std::array<Turn, kMostSideBySide> turns_;
  Bits in_work_ = 0;
  RowBuffer buffer_;
};

}  // namespace linblock
