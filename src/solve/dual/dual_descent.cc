// The step of dual coordinate descent.
//
// Update:   for row i of the block, in random order: alpha_i to the maximum of the dual along its coordinate,
//           w += change * y_i x_i
// Paper:    Hsieh, Chang, Lin, Keerthi, Sundararajan, "A dual coordinate descent method for large-scale
//           linear SVM" (2008), with its shrinking.
#include "solve/dual/dual_descent.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/dot.h"
#include "solve/core/pass.h"

namespace linblock {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kConvergeTolerance = 0.1;  // of a sub-problem: LIBLINEAR's default
constexpr int kMostKeptRounds = 100;
constexpr double kStride = 1.5;  // with few features; on documents anything beyond 1 costs passes

}  // namespace

DualDescent::DualDescent(const Problem& problem, const Task& task, uint64_t seed, Solution& solution,
                         const std::atomic<bool>* stop)
    : problem_(problem),
      held_out_(task.held_out),
      costs_(problem, task),
      seed_(seed),
      solution_(solution),
      stop_(stop) {
  solution_.weights.resize(problem.weights(), 0);
}

void DualDescent::use_working_set(uint64_t bytes, const std::vector<Chunk>* resident) {
  working_set_ = WorkingSet(*problem_.store, bytes, resident);
}

void DualDescent::expect_few_features() {
  mean_.assign(problem_.weights(), 0);
  // A dual that may not touch its bounds keeps its steps as they are.
  const bool inside = std::visit([]<class L>(const L&) { return L::kDualsInside; }, problem_.loss);
  if (!inside) over_relaxation_ = kStride;
}

void DualDescent::begin_pass(int pass) {
  if (pass == pass_) return;  // taken up again before its first block
  met_all_ = pass_ > 0;
  pass_ = pass;
  losses_ = resting_.begin_pass(pass, shrinks_);
  mean_of_ = 0;
  working_set_.begin_pass();
}

double DualDescent::squared_weights() const {
  double sum = 0;
  for (const float weight : solution_.weights) sum += double{weight} * double{weight};
  return sum;
}

bool DualDescent::must_leave(const Stopwatch& working) const {
  return stop_ != nullptr && *stop_ && working.seconds() > kStopSeconds;
}

bool DualDescent::solve_block(const Block& block, size_t number, const Rounds& rounds) {
  Block with_kept = block;
  with_kept.cache = &working_set_.rows();
  solution_.duals.fetch(block.numbers);
  const bool finished =
      std::visit([&](const auto& loss) { return solve_block_with(loss, with_kept, number, rounds); }, problem_.loss);
  if (!finished) return false;
  solution_.duals.put_back(block.numbers, solution_.duals.base_version() + static_cast<uint32_t>(pass_));
  const auto share = 1 / static_cast<float>(++mean_of_);
  for (size_t i = 0; i < mean_.size(); ++i) mean_[i] += share * (solution_.weights[i] - mean_[i]);
  return true;
}

template <Loss L>
bool DualDescent::solve_block_with(const L& loss, const Block& block, size_t number, const Rounds& rounds) {
  collect(block, rounds.kept_join);
  done_ = {};  // what came before would round this block's sums otherwise than after a checkpoint
  Random random(seed_, mix64(static_cast<uint64_t>(pass_), number));
  const Stopwatch working;
  size_t active = visitors_.size();
  double top = kInfinity;  // what the last round left of the largest and smallest projected gradient
  double bottom = -kInfinity;
  for (int round = 0; round < rounds.most; ++round) {
    if (round > 0 && must_leave(working)) return false;
    double highest = -kInfinity;
    double lowest = kInfinity;
    for (size_t i = active; i > 1; --i) std::swap(visitors_[i - 1], visitors_[random.below(i)]);
    for (size_t i = 0; i < active; ++i) {
      prefetch(block, i, active);
      const Visit visit = update(loss, block, visitors_[i], round == 0, top, bottom);
      if (visit.shrink) {
        std::swap(visitors_[i], visitors_[--active]);
        --i;
        continue;
      }
      highest = std::max(highest, visit.projected);
      lowest = std::min(lowest, visit.projected);
    }
    if (rounds.converge && highest - lowest <= kConvergeTolerance) {
      if (active == visitors_.size()) break;
      active = visitors_.size();  // once more, with everything
      top = kInfinity;
      bottom = -kInfinity;
      continue;
    }
    top = highest > 0 ? highest : kInfinity;
    bottom = lowest < 0 ? lowest : -kInfinity;
  }
  if (!working_set_.wanted()) return true;
  choose_rows(loss, block);
  if (rounds.kept_join) return true;
  working_set_.worked_on_fresh(done_);
  return work_on_kept(loss, block, random, working);
}

// Rows are visited in random order: they are on their way from memory before their turn comes.
void DualDescent::prefetch(const Block& block, size_t at, size_t end) const {
  const auto is_near = [&](size_t i) { return i >= end || block.is_cached(visitors_[i].place); };
  const auto chunk_of = [&](size_t i) { return block.chunks[Block::chunk_of(visitors_[i].place)]; };
  if (!is_near(at + 4)) chunk_of(at + 4)->prefetch_place(Block::row_of(visitors_[at + 4].place));
  if (!is_near(at + 2)) chunk_of(at + 2)->prefetch(Block::row_of(visitors_[at + 2].place));
}

// Which rows of the block are to be looked at: not those that rest, or are held out.
void DualDescent::collect(const Block& block, bool kept_join) {
  visitors_.clear();
  size_t most = kept_join ? working_set_.rows().size() : 0;
  for (const Chunk* chunk : block.chunks) most += chunk->rows();
  visitors_.reserve(most);  // and not twice as much
  for (uint32_t chunk = 0; chunk < block.chunks.size(); ++chunk) {
    const std::span<uint8_t> rest = solution_.duals.rest(block.numbers[chunk]);
    for (uint32_t row = 0; row < rest.size(); ++row) {
      if (held_out_.holds(block.chunks[chunk]->id(row))) continue;
      if ((rest[row] & ~WorkingSet::kMark) != 0)
        --rest[row];
      else
        visitors_.push_back({Block::place(chunk, row)});
    }
  }
  for (size_t kept = 0; kept < working_set_.rows().size() && kept_join; ++kept)
    visitors_.push_back({block.cached_place(kept)});
}

template <Loss L>
DualDescent::Visit DualDescent::update(const L& loss, const Block& block, Visitor& visitor, bool first, double top,
                                       double bottom) {
  const Row row = block.row(visitor.place, buffer_);
  const double cost = costs_.cost_of_learned(row);
  if (cost == 0) return {};
  done_.work += static_cast<double>(row.index.size() + kRowWork);
  const RowCache::Origin origin = block.origin(visitor.place);
  const double sign = costs_.sign(row);
  double& alpha = solution_.duals.page(origin.chunk)[origin.row];
  uint8_t& rest = solution_.duals.rest(origin.chunk)[origin.row];
  const double margin = margin_of(row, sign, problem_.bias, solution_.weights);
  visitor.margin = static_cast<float>(margin);
  const bool counted = first && !block.is_cached(visitor.place);
  if (counted) losses_ += cost * loss.value(margin);
  if (counted && !met_all_ && alpha != 0) dual_values_ += loss.dual_value(alpha, cost);
  const double from = alpha == 0 ? loss.first_alpha(cost) : alpha;
  const double gradient = loss.dual_gradient(from, margin, cost);
  Visit visit;
  if (alpha == 0 && gradient > 0) {
    if (gradient > top) visit.shrink = true;
    if (counted && resting_.may_rest(gradient)) resting_.shrink(rest, cost * loss.value(margin));
  } else if (alpha == loss.largest_alpha(cost) && gradient < 0) {
    if (gradient < bottom) visit.shrink = true;
    if (counted && resting_.may_rest(-gradient)) resting_.shrink(rest, cost * loss.value(margin));
  } else {
    visit.projected = gradient;
    if (counted) resting_.add_violation(std::abs(gradient));
  }
  if (visit.shrink || visit.projected == 0) return visit;
  double norm2 = squared_norm(row.value);
  if (problem_.has_bias()) norm2 += problem_.bias * problem_.bias;
  // A row without features has no say in w: its alpha goes straight to where its own term is largest.
  double next = loss.dual_step(from, margin, std::max(norm2, 1e-300), cost);
  if (over_relaxation_ != 1)
    next = std::clamp(alpha + over_relaxation_ * (next - alpha), 0.0, loss.largest_alpha(cost));
  if (next == alpha) return visit;
  const double value_change =
      (next == 0 ? 0 : loss.dual_value(next, cost)) - (alpha == 0 ? 0 : loss.dual_value(alpha, cost));
  dual_values_ += value_change;
  done_.gain += value_change - (next - alpha) * (margin + 0.5 * (next - alpha) * norm2);
  const auto change = static_cast<float>(sign * (next - alpha));
  alpha = next;
  add_scaled(row.index, row.value, change, solution_.weights.data());
  if (problem_.has_bias()) solution_.weights.back() += change * static_cast<float>(problem_.bias);
  return visit;
}

template <Loss L>
bool DualDescent::work_on_kept(const L& loss, const Block& block, Random& random, const Stopwatch& working) {
  for (int round = 0; round < kMostKeptRounds; ++round) {
    if (must_leave(working)) return false;
    if (!working_set_.round_is_due()) return true;
    const Progress before = done_;
    kept_round(loss, block, random);
    working_set_.worked_on_kept({done_.gain - before.gain, done_.work - before.work});
  }
  working_set_.stop_rounds();
  return true;
}

template <Loss L>
void DualDescent::kept_round(const L& loss, const Block& block, Random& random) {
  visitors_.clear();
  for (size_t i = 0; i < working_set_.rows().size(); ++i)
    if (working_set_.active(i)) visitors_.push_back({block.cached_place(i)});
  for (size_t i = visitors_.size(); i > 1; --i) std::swap(visitors_[i - 1], visitors_[random.below(i)]);
  const double top = working_set_.top > 0 ? working_set_.top : kInfinity;
  const double bottom = working_set_.bottom < 0 ? working_set_.bottom : -kInfinity;
  working_set_.top = -kInfinity;
  working_set_.bottom = kInfinity;
  for (size_t i = 0; i < visitors_.size(); ++i) {
    prefetch(block, i, visitors_.size());
    Visitor& visitor = visitors_[i];
    const Visit visit = update(loss, block, visitor, false, top, bottom);
    if (visit.shrink) working_set_.set_at_bound(block.cached_number(visitor.place));
    working_set_.top = std::max(working_set_.top, visit.projected);
    working_set_.bottom = std::min(working_set_.bottom, visit.projected);
  }
}

// A row is worth keeping when it is near the margin, or when its own part of the duality gap is large.
template <Loss L>
float DualDescent::priority_of(const L& loss, const Block& block, const Visitor& visitor, double cost) {
  const RowCache::Origin origin = block.origin(visitor.place);
  const double alpha = solution_.duals.page(origin.chunk)[origin.row];
  const auto margin = static_cast<double>(visitor.margin);
  const double own_gap = cost * loss.value(margin) + alpha * margin - (alpha == 0 ? 0 : loss.dual_value(alpha, cost));
  const bool free = alpha > 0 && alpha < loss.largest_alpha(cost);
  const double near = free ? 1 : std::exp(-4 * std::abs(margin - 1));
  const double priority = near + own_gap;
  return priority > 0 ? static_cast<float>(std::min(priority, 1e30)) : 0;  // whatever huge values make of it
}

template <Loss L>
void DualDescent::choose_rows(const L& loss, const Block& block) {
  for (const Visitor& visitor : visitors_) {
    if (!block.is_cached(visitor.place)) continue;
    const size_t number = block.cached_number(visitor.place);
    const Row row = working_set_.rows().row(number, buffer_);
    working_set_.set_priority(number, priority_of(loss, block, visitor, costs_.cost_of_learned(row)));
  }
  for (const Visitor& visitor : visitors_) {
    if (block.is_cached(visitor.place)) continue;
    const RowCache::Origin origin = block.origin(visitor.place);
    if (solution_.duals.rest(origin.chunk)[origin.row] != 0) continue;  // resting, or kept already
    const EncodedRow row = block.chunks[Block::chunk_of(visitor.place)]->encoded(origin.row, buffer_);
    const double cost = costs_.cost_of_learned(Row{.label = row.label, .weight = row.weight});
    if (cost != 0) working_set_.offer(origin, row, priority_of(loss, block, visitor, cost), solution_.duals);
  }
}

void DualDescent::save(FieldWriter& to) const {
  solution_.duals.sync();
  visit_fields(*this, to);
  to("base_version", solution_.duals.base_version());
}

void DualDescent::restore(FieldReader& from, const BlockOrder& order, size_t done) {
  visit_fields(*this, from);
  solution_.duals.set_base_version(from.take<uint32_t>("base_version"));
  if (done > order.ends.size()) from.refuse("stands behind the last block of its pass");
  if (!solution_.duals.in_file()) return;
  // What this pass has put back already, and what the pass before it has.
  const size_t chunks_done = done == 0 ? 0 : order.ends[done - 1];
  for (size_t i = 0; i < order.chunks.size(); ++i)
    solution_.duals.set_version(
        order.chunks[i],
        solution_.duals.base_version() + static_cast<uint32_t>(i < chunks_done || pass_ == 0 ? pass_ : pass_ - 1));
}

}  // namespace linblock
