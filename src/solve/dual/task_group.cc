#include "solve/dual/task_group.h"

#include <algorithm>
#include <bit>

#include "solve/core/pass.h"
#include "solve/dual/dual_step.h"

namespace linblock {

bool TaskGroup::solve_block(const Block& block, size_t number, const DualDescent::Rounds& rounds) {
  for (DualDescent* task : tasks_) task->begin_block(block);
  const bool finished = std::visit([&](const auto& loss) { return solve_block_with(loss, block, number, rounds); },
                                   tasks_.front()->problem_.loss);
  if (!finished) return false;
  for (DualDescent* task : tasks_) task->end_block(block);
  return true;
}

// Which rows of the block each task is to look at: not those that rest, or are held out.
void TaskGroup::collect(const Block& block) {
  visitors_.clear();
  size_t rows = 0;
  for (const Chunk* chunk : block.chunks) rows += chunk->rows();
  visitors_.reserve(rows);  // and not twice as much
  turns_ = {};
  for (uint32_t number = 0; number < block.chunks.size(); ++number) {
    const Chunk& chunk = *block.chunks[number];
    const size_t begin = visitors_.size();
    for (uint32_t row = 0; row < chunk.rows(); ++row) visitors_.push_back({.place = Block::place(number, row)});
    for (size_t c = 0; c < tasks_.size(); ++c) {
      const std::span<uint8_t> passes_out = tasks_[c]->solution_.duals.passes_out(block.numbers[number]);
      for (uint32_t row = 0; row < chunk.rows(); ++row) {
        if (tasks_[c]->held_out_.holds(chunk.id(row))) continue;
        if ((passes_out[row] & ~WorkingSet::kMark) != 0) {
          --passes_out[row];
          continue;
        }
        visitors_[begin + row].tasks |= static_cast<Bits>(1U << c);
        ++turns_[c].visitors;
      }
    }
  }
}

template <Loss L>
bool TaskGroup::solve_block_with(const L& loss, const Block& block, size_t number, const DualDescent::Rounds& rounds) {
  collect(block);
  for (Visitor& visitor : visitors_) visitor.active = visitor.tasks;
  for (Turn& turn : turns_) {
    turn.active = turn.visitors;
    turn.left = DualDescent::Range::all();
  }
  in_work_ = static_cast<Bits>((1U << tasks_.size()) - 1);
  const DualDescent& one = *tasks_.front();
  Random random = one.random_of(number);
  const Stopwatch working;
  for (int number_of_round = 0; number_of_round < rounds.most && in_work_ != 0; ++number_of_round) {
    if (number_of_round > 0 && one.must_leave(working)) return false;
    // All rows, also those that nobody looks at: the order is the same for every group.
    for (size_t i = visitors_.size(); i > 1; --i) std::swap(visitors_[i - 1], visitors_[random.below(i)]);
    round(loss, block, number_of_round == 0);
    end_round(rounds);
  }
  return true;
}

template <Loss L>
void TaskGroup::round(const L& loss, const Block& block, bool first) {
  for (Turn& turn : turns_) turn.found = DualDescent::Range::none();
  for (size_t i = 0; i < visitors_.size(); ++i) {
    prefetch(block, i);
    Visitor& visitor = visitors_[i];
    if ((visitor.active & in_work_) != 0)
      visit(loss, block.row(visitor.place, buffer_), visitor, block.origin(visitor.place), first);
  }
}

template <Loss L>
void TaskGroup::visit(const L& loss, const Row& row, Visitor& visitor, RowCache::Origin origin, bool first) {
  std::array<double, kMostSideBySide> products;
  weights_.products(row, products.data());
  std::array<float, kMostSideBySide> changes{};
  bool moved = false;
  double norm2 = -1;
  const auto norm2_of_row = [&] {
    if (norm2 < 0) norm2 = tasks_.front()->squared_length(row);
    return norm2;
  };
  for (Bits left = visitor.active & in_work_; left != 0; left = static_cast<Bits>(left & (left - 1U))) {
    const auto c = static_cast<size_t>(std::countr_zero(left));
    DualDescent& task = *tasks_[c];
    Turn& turn = turns_[c];
    const double cost = task.costs_.cost_of_learned(row);
    if (cost == 0) continue;
    const double sign = task.costs_.sign(row);
    const DualDescent::Visit result =
        task.step(loss, row, origin, {.cost = cost, .sign = sign, .margin = sign * products[c], .counted = first},
                  turn.left, norm2_of_row);
    if (result.shrink) {
      visitor.active &= static_cast<Bits>(~(1U << c));
      --turn.active;
      continue;
    }
    turn.found.add(result.projected);
    if (result.moved) {
      changes[c] = result.change;
      moved = true;
    }
  }
  if (moved) weights_.add(row, changes.data());
}

void TaskGroup::end_round(const DualDescent::Rounds& rounds) {
  for (size_t c = 0; c < tasks_.size(); ++c) {
    const auto bit = static_cast<Bits>(1U << c);
    if ((in_work_ & bit) == 0) continue;
    Turn& turn = turns_[c];
    if (!rounds.converge || !turn.found.is_solved()) {
      turn.left = turn.found.as_limits();
    } else if (turn.active == turn.visitors) {
      in_work_ &= static_cast<Bits>(~bit);
    } else {  // once more, with everything
      turn.active = turn.visitors;
      turn.left = DualDescent::Range::all();
      for (Visitor& visitor : visitors_) visitor.active |= visitor.tasks & bit;
    }
  }
}

// Rows are visited in random order: they are on their way from memory before their turn comes.
void TaskGroup::prefetch(const Block& block, size_t at) const {
  const auto chunk_of = [&](size_t i) { return block.chunks[Block::chunk_of(visitors_[i].place)]; };
  if (at + 4 < visitors_.size()) chunk_of(at + 4)->prefetch_place(Block::row_of(visitors_[at + 4].place));
  if (at + 2 < visitors_.size()) chunk_of(at + 2)->prefetch(Block::row_of(visitors_[at + 2].place));
}

}  // namespace linblock
