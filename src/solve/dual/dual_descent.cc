// The step of dual coordinate descent.
//
// Update:   for row i of the block, in random order: alpha_i to the maximum of the dual along its coordinate,
//           w += change * y_i x_i. In batches (batches.h), some hundred rows have their margins at the same w.
// Paper:    Hsieh, Chang, Lin, Keerthi, Sundararajan, "A dual coordinate descent method for large-scale
//           linear SVM" (2008), with its shrinking.
#include "solve/dual/dual_descent.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/dot.h"
#include "solve/core/pass.h"
#include "solve/dual/batch_choice.h"
#include "solve/dual/dual_step.h"

namespace linblock {

namespace {

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

void DualDescent::use_working_set(uint64_t bytes, uint64_t rows, const std::vector<Chunk>* resident) {
  working_set_ = WorkingSet(*problem_.store, bytes, rows, resident);
}

void DualDescent::use_batches(const Team& team, std::optional<uint64_t> rows, bool rows_stay) {
  batch_team_ = team;
  batch_rows_ = rows;
  remembers_rows_ = rows_stay;
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
  losses_ = shrinking_.begin_pass(pass, shrinks_);
  mean_of_ = 0;
  working_set_.begin_pass();
  drift_.begin(squared_weights());
}

double DualDescent::squared_length(const Row& row) const {
  const double norm2 = squared_norm(row.value);
  return problem_.has_bias() ? norm2 + problem_.bias * problem_.bias : norm2;
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
  begin_block(block);
  const bool finished =
      std::visit([&](const auto& loss) { return solve_block_with(loss, with_kept, number, rounds); }, problem_.loss);
  if (finished) end_block(block);
  return finished;
}

void DualDescent::begin_block(const Block& block) {
  solution_.duals.fetch(block.numbers);
  done_ = {};  // what came before would round this block's sums otherwise than after a checkpoint
}

void DualDescent::end_block(const Block& block) {
  drift_.fold();
  solution_.duals.put_back(block.numbers, solution_.duals.base_version() + static_cast<uint32_t>(pass_));
  const auto share = 1 / static_cast<float>(++mean_of_);
  for (size_t i = 0; i < mean_.size(); ++i) mean_[i] += share * (solution_.weights[i] - mean_[i]);
}

template <Loss L>
bool DualDescent::solve_block_with(const L& loss, const Block& block, size_t number, const Rounds& rounds) {
  collect(block, rounds.kept_join);
  Random random = random_of(number);
  const Stopwatch working;
  size_t active = visitors_.size();
  Range left = Range::all();  // by the last round
  for (int number_of_round = 0; number_of_round < rounds.most; ++number_of_round) {
    if (number_of_round > 0 && must_leave(working)) return false;
    for (size_t i = active; i > 1; --i) std::swap(visitors_[i - 1], visitors_[random.below(i)]);
    if (batch_team_ && !batch_state_.chosen) choose_batches(block);
    Range range = left;
    const std::optional<size_t> remaining =
        round(loss, block, active, number_of_round == 0, range, batch_state_.fresh, working);
    if (!remaining) return false;
    active = *remaining;
    if (rounds.converge && range.is_solved()) {
      if (active == visitors_.size()) break;
      active = visitors_.size();  // once more, with everything
      left = Range::all();
      continue;
    }
    left = range.as_limits();
  }
  if (!working_set_.wanted()) return true;
  choose_rows(loss, block);
  if (rounds.kept_join) return true;
  working_set_.worked_on_fresh(done_);
  return work_on_kept(loss, block, random, working);
}

template <Loss L>
std::optional<size_t> DualDescent::round(const L& loss, const Block& block, size_t count, bool first, Range& range,
                                         BatchSize& size, const Stopwatch& working) {
  Range projected = Range::none();
  if (size.rows() > 1) {
    shrunk_.assign(count, 0);
    List<L> list(*this, loss, block, {visitors_.data(), count}, first, range, size, working);
    if (!batches_->run(list)) return std::nullopt;
    projected = list.projected();
    size_t remaining = 0;
    for (size_t i = 0; i < count; ++i)
      if (shrunk_[i] == 0) std::swap(visitors_[remaining++], visitors_[i]);
    count = remaining;
  } else {
    for (size_t i = 0; i < count; ++i) {
      prefetch(block, i, count);
      const Visit result = update(loss, block, visitors_[i], first, range);
      if (result.shrink) {
        std::swap(visitors_[i], visitors_[--count]);
        --i;
        continue;
      }
      projected.add(result.projected);
    }
  }
  range = projected;
  return count;
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
    const std::span<uint8_t> passes_out = solution_.duals.passes_out(block.numbers[chunk]);
    for (uint32_t row = 0; row < passes_out.size(); ++row) {
      if (held_out_.holds(block.chunks[chunk]->id(row))) continue;
      if ((passes_out[row] & ~WorkingSet::kMark) != 0)
        --passes_out[row];
      else
        visitors_.push_back({Block::place(chunk, row)});
    }
  }
  for (size_t kept = 0; kept < working_set_.rows().size() && kept_join; ++kept)
    visitors_.push_back({block.cached_place(kept)});
}

template <Loss L>
DualDescent::Visit DualDescent::update(const L& loss, const Block& block, Visitor& visitor, bool first,
                                       const Range& range) {
  const Row row = block.row(visitor.place, buffer_);
  const double cost = costs_.cost_of_learned(row);
  if (cost == 0) return {};
  const double sign = costs_.sign(row);
  const double margin = margin_of(row, sign, problem_.bias, solution_.weights);
  visitor.margin = static_cast<float>(margin);
  const Visit result =
      step(loss, row, block.origin(visitor.place),
           {.cost = cost, .sign = sign, .margin = margin, .counted = first && !block.is_cached(visitor.place)}, range,
           [&] { return squared_length(row); });
  if (!result.moved) return result;
  add_scaled(row.index, row.value, result.change, solution_.weights.data());
  if (problem_.has_bias()) solution_.weights.back() += result.change * static_cast<float>(problem_.bias);
  return result;
}

// The rows of a round, as Batches asks for them.
template <Loss L>
class DualDescent::List {
 public:
  List(DualDescent& descent, const L& loss, const Block& block, std::span<Visitor> visitors, bool first,
       const Range& range, BatchSize& batch_size, const Stopwatch& working)
      : descent_(descent),
        loss_(loss),
        block_(block),
        visitors_(visitors),
        first_(first),
        range_(range),
        batch_size_(batch_size),
        working_(working) {}

  size_t size() const { return visitors_.size(); }
  size_t nonzeros(size_t i) const {
    const uint32_t place = visitors_[i].place;
    if (block_.is_cached(place)) return block_.cache->nonzeros(block_.cached_number(place));
    return block_.chunks[Block::chunk_of(place)]->nonzeros(Block::row_of(place));
  }
  Row row(size_t i, RowBuffer& buffer) const {
    if (i + 8 < visitors_.size()) {
      const uint32_t soon = visitors_[i + 4].place;
      const uint32_t later = visitors_[i + 8].place;
      if (block_.is_cached(later)) block_.cache->prefetch_entry(block_.cached_number(later));
      if (block_.is_cached(soon))
        block_.cache->prefetch(block_.cached_number(soon));
      else
        block_.chunks[Block::chunk_of(soon)]->prefetch_place(Block::row_of(soon));
    }
    return block_.row(visitors_[i].place, buffer);
  }
  RowCache::Origin origin(size_t i) const { return block_.origin(visitors_[i].place); }
  size_t row_number(const Batches::Item& item) const {
    return descent_.solution_.duals.row_number(item.origin.chunk, item.origin.row);
  }
  void prefetch(const Batches::Item& item) const {
    __builtin_prefetch(&descent_.solution_.duals.page(item.origin.chunk)[item.origin.row]);
    __builtin_prefetch(&descent_.solution_.duals.passes_out(item.origin.chunk)[item.origin.row]);
  }
  uint64_t batch_rows() const { return batch_size_.rows(); }

  void step(size_t i, Batches::Item& item) {
    item.cost = descent_.costs_.cost_of_learned(item.row);
    if (item.cost == 0) return;
    descent_.done_.work += static_cast<double>(item.row.index.size() + kRowWork);
    item.sign = descent_.costs_.sign(item.row);
    item.margin *= item.sign;
    Visitor& visitor = visitors_[i];
    visitor.margin = static_cast<float>(item.margin);
    const double alpha = descent_.solution_.duals.page(item.origin.chunk)[item.origin.row];
    const Visit result =
        descent_.visit(loss_, alpha, item.margin, item.cost, first_ && !block_.is_cached(visitor.place), range_,
                       descent_.solution_.duals.passes_out(item.origin.chunk)[item.origin.row]);
    if (result.shrink) {
      descent_.shrunk_[i] = 1;
      return;
    }
    projected_.add(result.projected);
    if (result.projected == 0) return;
    item.next = descent_.next_alpha(loss_, alpha, item.margin, batch_size_.damping() * item.norm2, item.cost);
    item.change = item.next - alpha;
  }
  double finish(const Batches::Item& item, double margin) {
    double& alpha = descent_.solution_.duals.page(item.origin.chunk)[item.origin.row];
    const double gain = descent_.account(loss_, alpha, item.next, margin, item.norm2, item.cost, item.row.index.size());
    alpha = item.next;
    return gain;
  }
  double value_change(const Batches::Item& item, double share) const {
    const double before = std::max(0.0, item.next - item.change);
    const double after = shortened(item, share);
    return (after == 0 ? 0 : loss_.dual_value(after, item.cost)) -
           (before == 0 ? 0 : loss_.dual_value(before, item.cost));
  }
  double shortened(const Batches::Item& item, double share) const {
    return std::clamp(item.next - (1 - share) * item.change, 0.0, loss_.largest_alpha(item.cost));
  }
  double norm_bound() const { return descent_.drift_.norm_bound(); }
  void end_batch(const Batches::Outcome& outcome, size_t rows) {
    // A short batch, such as the last of a list, says little.
    if (outcome.moved && 2 * rows >= batch_size_.rows()) batch_size_.add(outcome.interference);
  }
  bool must_leave() const { return descent_.must_leave(working_); }
  const Range& projected() const { return projected_; }

 private:
  DualDescent& descent_;
  const L& loss_;
  const Block& block_;
  const std::span<Visitor> visitors_;
  const bool first_;
  const Range range_;
  BatchSize& batch_size_;
  const Stopwatch& working_;
  Range projected_ = Range::none();
};

void DualDescent::choose_batches(const Block& block) {
  BatchChoice choice;
  {
    BatchSample sample;  // its memory is free before the batches have theirs
    for (const Visitor& visitor : visitors_)
      if (!sample.add(block.row(visitor.place, buffer_))) break;
    choice = sample.choose();
  }
  if (batch_rows_) choice.rows = *batch_rows_;
  const BatchSize size(choice.rows, batch_rows_.has_value());
  batch_state_ = {.chosen = true, .head = choice.head, .fresh = size, .kept = size};
  make_batches();
}

void DualDescent::make_batches() {
  batches_.reset();
  if (batch_state_.fresh.rows() > 1 || batch_state_.kept.rows() > 1)
    batches_ = std::make_unique<Batches>(problem_, solution_.weights, *batch_team_, batch_state_.head,
                                         remembers_rows_ ? solution_.duals.rows() : 0);
}

template <Loss L>
bool DualDescent::work_on_kept(const L& loss, const Block& block, Random& random, const Stopwatch& working) {
  for (int round = 0; round < kMostKeptRounds; ++round) {
    if (must_leave(working)) return false;
    if (!working_set_.round_is_due()) return true;
    const Progress before = done_;
    if (!kept_round(loss, block, random, working)) return false;
    working_set_.worked_on_kept({done_.gain - before.gain, done_.work - before.work});
  }
  working_set_.stop_rounds();
  return true;
}

template <Loss L>
bool DualDescent::kept_round(const L& loss, const Block& block, Random& random, const Stopwatch& working) {
  visitors_.clear();
  for (size_t i = 0; i < working_set_.rows().size(); ++i)
    if (working_set_.active(i)) visitors_.push_back({block.cached_place(i)});
  for (size_t i = visitors_.size(); i > 1; --i) std::swap(visitors_[i - 1], visitors_[random.below(i)]);
  Range range = Range{.top = working_set_.top, .bottom = working_set_.bottom}.as_limits();
  const std::optional<size_t> active = round(loss, block, visitors_.size(), false, range, batch_state_.kept, working);
  if (!active) return false;
  for (size_t i = *active; i < visitors_.size(); ++i)
    working_set_.set_at_bound(block.cached_number(visitors_[i].place));
  working_set_.top = range.top;
  working_set_.bottom = range.bottom;
  return true;
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
    if (solution_.duals.passes_out(origin.chunk)[origin.row] != 0) continue;  // resting, or kept already
    const Chunk& chunk = *block.chunks[Block::chunk_of(visitor.place)];
    const double cost =
        costs_.cost_of_learned(Row{.label = chunk.label(origin.row), .weight = chunk.weight(origin.row)});
    if (cost == 0) continue;
    const float priority = priority_of(loss, block, visitor, cost);
    if (working_set_.may_keep(priority))
      working_set_.offer(origin, chunk.encoded(origin.row, buffer_), priority, solution_.duals);
  }
}

void DualDescent::save(FieldWriter& to) const {
  solution_.duals.sync();
  visit_fields(*this, to);
  to("base_version", solution_.duals.base_version());
}

void DualDescent::restore(FieldReader& from, const BlockOrder& order, size_t done) {
  visit_fields(*this, from);
  if (!batch_state_.fresh.is_possible() || !batch_state_.kept.is_possible()) from.refuse_value("batches");
  if (batch_state_.chosen) make_batches();
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
