// The step of Crammer and Singer's method: the duals of one row to their best, while all other rows stay as they are
// (class_step, with the paper); problem and update are stated in crammer_singer.cc.
#include "solve/multiclass/class_descent.h"

#include <algorithm>
#include <cmath>

#include "base/dot.h"
#include "base/random.h"
#include "objective/class_certificate.h"
#include "solve/core/pass.h"

namespace linblock {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kNewClasses = 3;    // that a visit may bring in; the plan has room for as many a row
constexpr double kNearlyFull = 0.8;  // of the memory for duals: from then on one at a time, and for full rows instead
constexpr double kAtBound = 1 - 1e-12;
constexpr size_t kRowsPerLook = 256;  // at the clock

}  // namespace

ClassDescent::ClassDescent(const Problem& problem, const Task& task, uint64_t seed, Solution& solution,
                           uint64_t duals_bytes, const std::atomic<bool>* stop)
    : problem_(problem),
      held_out_(task.held_out),
      costs_(problem, task),
      numbers_(problem.store->info()),
      classes_(problem.classes()),
      seed_(seed),
      solution_(solution),
      duals_bytes_(duals_bytes),
      planned_(std::max<size_t>(
          1, (duals_bytes / std::max<uint64_t>(1, problem.store->info().physical_rows()) - SparseDuals::kBytesPerRow) /
                 SparseDuals::kBytesPerPair)),
      stop_(stop),
      sums_(classes_),
      scores_(classes_) {
  solution_.weights.resize(problem.weights() * classes_, 0);
  solution_.class_duals.wake_all();  // the first pass adds up what every row has
}

void ClassDescent::begin_pass(int pass) {
  if (pass == pass_) return;  // taken up again before its first block
  met_all_ = pass_ > 0;
  pass_ = pass;
  losses_ = shrinking_.begin_pass(pass, true);
}

bool ClassDescent::solve_block(const Block& block, size_t number, size_t rounds) {
  collect(block);
  solution_.class_duals.fetch(block.numbers);
  const auto held = static_cast<double>(solution_.class_duals.bytes());
  const bool nearly_full = held > kNearlyFull * static_cast<double>(duals_bytes_);
  new_classes_ = nearly_full ? 1 : kNewClasses;
  most_classes_ = nearly_full ? planned_ : classes_;
  Random random(seed_, mix64(static_cast<uint64_t>(pass_), number));
  const Stopwatch working;
  bool finished = true;
  for (size_t round = 0; round < rounds && finished; ++round) {
    for (size_t i = places_.size(); i > 1; --i) std::swap(places_[i - 1], places_[random.below(i)]);
    for (size_t i = 0; i < places_.size() && finished; ++i) {
      prefetch(block, i);
      visit(block, places_[i], round == 0);
      // With many classes even one round may take longer than somebody waits who told it to stop.
      if (i % kRowsPerLook == 0 && stop_ != nullptr && *stop_) finished = working.seconds() <= kStopSeconds;
    }
  }
  solution_.class_duals.put_back(block.numbers);
  return finished;
}

double ClassDescent::squared_weights() const {
  double sum = 0;
  for (const float weight : solution_.weights) sum += double{weight} * double{weight};
  return sum;
}

// Which rows of the block are to be looked at: not those that rest, or are held out.
void ClassDescent::collect(const Block& block) {
  places_.clear();
  for (uint32_t chunk = 0; chunk < block.chunks.size(); ++chunk) {
    const std::span<uint8_t> passes_out = solution_.class_duals.passes_out(block.numbers[chunk]);
    for (uint32_t row = 0; row < passes_out.size(); ++row) {
      if (held_out_.holds(block.chunks[chunk]->id(row))) continue;
      if (passes_out[row] != 0)
        --passes_out[row];
      else
        places_.push_back(Block::place(chunk, row));
    }
  }
}

// Rows are visited in random order: they are on their way from memory before their turn comes.
void ClassDescent::prefetch(const Block& block, size_t at) const {
  const auto chunk_of = [&](size_t i) { return block.chunks[Block::chunk_of(places_[i])]; };
  if (at + 4 < places_.size()) chunk_of(at + 4)->prefetch_place(Block::row_of(places_[at + 4]));
  if (at + 2 < places_.size()) chunk_of(at + 2)->prefetch(Block::row_of(places_[at + 2]));
}

// w_m.x of every class; in double where a float would overflow.
void ClassDescent::find_scores(const Row& row) {
  dot_each(row.index, row.value, solution_.weights.data(), classes_, sums_.data());
  double all = 0;
  for (size_t m = 0; m < classes_; ++m) all += scores_[m] = double{sums_[m]};
  if (!std::isfinite(all)) [[unlikely]]
    return exact_scores(row, problem_.bias, solution_.weights, scores_);
  if (!problem_.has_bias()) return;
  const std::span<const float> last = std::span<const float>(solution_.weights).last(classes_);
  for (size_t m = 0; m < classes_; ++m) scores_[m] += problem_.bias * double{last[m]};
}

void ClassDescent::visit(const Block& block, uint32_t place, bool first) {
  const Row row = block.row(place, buffer_);
  const double cost = costs_.cost_of_learned(row);
  if (cost == 0) return;
  const RowCache::Origin origin = block.origin(place);
  const size_t true_class = numbers_[row.label];
  const std::span<const ClassDual> old = solution_.class_duals.row(origin.chunk, origin.row);
  find_scores(row);
  const double score = std::exchange(scores_[true_class], -kInfinity);
  // What is left in scores_ are the classes that have no dual yet.
  candidates_.clear();
  double sum = 0;
  double lowest = kInfinity;
  double highest = 0;
  for (const ClassDual& class_dual : old) {
    const double class_score = std::exchange(scores_[class_dual.number], -kInfinity);
    sum += class_dual.dual;
    lowest = std::min(lowest, class_score - score + 1);
    highest = std::max(highest, class_score - score + 1);
    candidates_.push_back({.number = class_dual.number, .b = class_score + 1, .before = class_dual.dual});
  }
  const double rival = *std::max_element(scores_.begin(), scores_.end()) - score + 1;
  const double slack = std::max(highest, rival);
  if (sum < cost * kAtBound) lowest = std::min(lowest, 0.0);
  if (first) {
    losses_ += cost * slack;
    if (!met_all_) dual_values_ += sum;
    // How much more the best class asks for than the worst that has something.
    if (slack > lowest) {
      shrinking_.add_violation(slack - lowest);
    } else if (old.size() <= 1) {
      // All or nothing for one class, and the next is so far away.
      const double distance = old.empty() ? -rival : highest - std::max(rival, 0.0);
      if (shrinking_.may_shrink(distance))
        shrinking_.shrink(solution_.class_duals.passes_out(origin.chunk)[origin.row], cost * slack);
    }
  }
  // Or it has more than it may, after a warm start from a larger cost.
  if (slack > lowest || sum * kAtBound > cost) step(row, true_class, score, sum, cost, origin);
}

// From the candidates that have duals, and those of scores_ that are to have some.
void ClassDescent::step(const Row& row, size_t true_class, double score, double sum, double cost,
                        RowCache::Origin origin) {
  double norm2 = squared_norm(row.value);
  if (problem_.has_bias()) norm2 += problem_.bias * problem_.bias;
  for (ClassCandidate& candidate : candidates_) candidate.b += norm2 * candidate.before;
  const double true_b = score - norm2 * sum;
  // More classes can only raise beta: who is below it now gets nothing then.
  const double beta = best_class_duals(candidates_, true_b, norm2, cost);
  const size_t old = candidates_.size();
  for (uint32_t m = 0; m < classes_; ++m)
    if (scores_[m] + 1 > beta) candidates_.push_back({.number = m, .b = scores_[m] + 1});
  if (candidates_.size() > old + new_classes_) {
    const auto begin = candidates_.begin() + static_cast<ptrdiff_t>(old);
    const auto end = begin + static_cast<ptrdiff_t>(new_classes_);
    std::nth_element(begin, end, candidates_.end(), [](const ClassCandidate& left, const ClassCandidate& right) {
      return left.b != right.b ? left.b > right.b : left.number < right.number;
    });
    candidates_.erase(end, candidates_.end());
  }
  if (candidates_.size() > old) best_class_duals(candidates_, true_b, norm2, cost);
  make_room(true_b, norm2, cost);
  change_weights(row, true_class);
  pairs_.clear();
  for (const ClassCandidate& candidate : candidates_)
    if (candidate.dual > 0) pairs_.push_back({.number = candidate.number, .dual = candidate.dual});
  solution_.class_duals.set_row(origin.chunk, origin.row, pairs_);
}

// Where the memory is short, the classes that a row has least of go, and the others are the best without them.
void ClassDescent::make_room(double true_b, double norm2, double cost) {
  dropped_.clear();
  while (candidates_.size() > most_classes_ && candidates_[most_classes_].dual > 0) {
    dropped_.push_back(candidates_.back());
    dropped_.back().dual = 0;
    candidates_.pop_back();
    best_class_duals(candidates_, true_b, norm2, cost);
  }
  candidates_.insert(candidates_.end(), dropped_.begin(), dropped_.end());
}

void ClassDescent::change_weights(const Row& row, size_t true_class) {
  double sum = 0;
  size_t count = 0;
  changes_.resize(candidates_.size() + 1);
  for (const ClassCandidate& candidate : candidates_) {
    if (candidate.dual == candidate.before) continue;
    sum += candidate.dual - candidate.before;
    changes_[count++] = {candidate.number, static_cast<float>(candidate.before - candidate.dual)};
  }
  if (count == 0) return;
  dual_values_ += sum;
  changes_[count++] = {true_class, static_cast<float>(sum)};
  const auto add = [&](size_t feature, float value) {
    float* const weights = solution_.weights.data() + feature * classes_;
    for (size_t i = 0; i < count; ++i) weights[changes_[i].first] += changes_[i].second * value;
  };
  for (size_t k = 0; k < row.index.size(); ++k) add(row.index[k], row.value[k]);
  if (problem_.has_bias()) add(problem_.weights() - 1, static_cast<float>(problem_.bias));
}

}  // namespace linblock
