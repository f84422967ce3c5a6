#include "solve/indexed/indexed_task.h"

#include <algorithm>

#include "base/error.h"
#include "objective/double_weights.h"
#include "solve/indexed/sparse_loss.h"

namespace linblock {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kIdle = 0.1;  // beyond the margin: such rows need not be at hand
constexpr double kSampleTolerance = 0.01;
constexpr double kRoughly = 0.1;
constexpr int kFewRounds = 5;
constexpr uint64_t kLargeStart = 50'000;  // rows, or one in ...
constexpr uint64_t kStartShare = 20;      // ... so many, where that is more
constexpr double kStartTolerance = 0.1;
constexpr double kFewFinds = 0.002;        // of the rows looked at; n / rows, where that is less
constexpr double kLeastFall = 0.1;         // of the tolerance: a smaller fall of the objective ends the outer steps
constexpr double kMostTightening = 0.005;  // of the tolerance

std::vector<double> rounded(const std::vector<double>& weights) {
  std::vector<double> result(weights.size());
  std::transform(weights.begin(), weights.end(), result.begin(),
                 [](double x) { return double{static_cast<float>(x)}; });
  return result;
}

// Of the objective at these weights. Its dual, at or below 0, is what rounding may have done to it: to be added to a
// bound.
Certificate objective_at(std::span<const double> weights, LossSum losses, const LossSum& inactive) {
  losses.add(inactive);
  return certificate_of(squared_norm_of(weights), losses, {}, {});
}

Certificate bounded_by(double dual, const Certificate& objective) {
  return {.primal = objective.primal, .dual = dual + objective.dual};
}

}  // namespace

IndexedTask::IndexedTask(const Problem& problem, const Task& task, const MetricForest& forest, PageCache& cache,
                         const Settings& settings, std::unique_ptr<PageSearch> search)
    : problem_(problem),
      costs_(problem, task),
      cache_(cache),
      settings_(settings),
      rows_(problem.store->info().rows),
      active_(problem, costs_, forest.pages(), settings.descent),
      finder_(problem, task, costs_, forest, cache, active_, settings.descent.seed, std::move(search)),
      best_(problem.weights()),
      inner_tolerance_(settings.tolerance) {}

double IndexedTask::most_loss() const { return finder_.is_anchored() ? 1 + *problem_.truncate : kInfinity; }

// The start.

void IndexedTask::add_to_start(const Chunk& chunk, size_t row, double alpha) {
  finder_.take_stranger(chunk, row);
  active_.rows().alpha(active().size() - 1) = alpha;
}

void IndexedTask::start() {
  finder_.end_strangers();
  start_rows_ = active().size();
  active_.refresh_weights();
  count_reading();
}

// The steps.

void IndexedTask::work_on_block(const RowSearch::SearchResult& result) {
  const uint64_t looked_at_only = result.traversed - std::min<uint64_t>(result.traversed, result.rows);
  active_.solve_newest(result.rows, looked_at_only, inner_tolerance_);
}

// Rows without a say, clearly beyond the margin or outliers, go back to their pages.
void IndexedTask::forget_idle_rows() {
  const ActiveRows& rows = active();
  active_.solve_to(kRoughly, kFewRounds);
  std::vector<uint8_t> keep(rows.size(), 1);
  size_t idle = 0;
  active_.for_each([&](size_t i, const Row& row) {
    if (i < start_rows_ || rows.alpha(i) != 0) return;
    if (!rows.is_out(i) && active_.margin(row, active_.weights()) <= flat_from(problem_.loss) + kIdle) return;
    keep[i] = 0;
    ++idle;
  });
  rows_at_last_forgetting_ = rows.size();
  if (idle < rows.size() / 4) return;
  rows_at_last_forgetting_ -= idle;
  finder_.give_back(keep);
}

// Outliers leave the problem: their alpha y x leaves w. True: some row is on another side than before.
bool IndexedTask::classify_active() {
  bool changed = false;
  ActiveRows& rows = active_.rows();
  active_.for_each([&](size_t i, const Row& row) {
    const bool out = finder_.is_outlier(row);
    changed = changed || out != rows.is_out(i);
    rows.set_out(i, out);
    if (out) rows.alpha(i) = 0;
  });
  if (changed) active_.refresh_weights();
  return changed;
}

void IndexedTask::step() {
  finder_.begin_turn();
  certificate_ = kUnknown;
  if (checking_)
    step_with_check();
  else
    step_by_sample();
  // Where every row that is looked at is a find, the block is of new rows alone, and w soon so bad that all violate.
  if (!done_ && has_many_new_rows() && (is_crowded() || !checking_)) forget_idle_rows();
  count_reading();
}

void IndexedTask::count_reading() { cache_.add_costs({.bytes = active_.rows().take_bytes_read()}); }

void IndexedTask::step_by_sample() {
  const RowSearch::SearchResult result = finder_.sample(settings_.query);
  work_on_block(result);
  // A convex start has cost enough when its rows are too many, though idle ones were just forgotten.
  const bool many = is_crowded() || active().size() > std::max(kLargeStart, rows_ / kStartShare);
  const bool enough = is_starting() && many && !has_many_new_rows();
  if (!enough && (result.rows >= settings_.query || finder_.is_on_trial())) return;
  const double share = static_cast<double>(result.rows) / std::max(1.0, static_cast<double>(result.traversed));
  const double few = std::min(kFewFinds, static_cast<double>(settings_.query) / static_cast<double>(rows_));
  if (!enough && result.rows > 0 && share >= few) return;
  active_.solve_to(std::max(kSampleTolerance, inner_tolerance_));
  if (enough)
    end_start();
  else
    checking_ = true;
}

// The convex problem that a truncated one starts from has been solved far enough.
void IndexedTask::end_start() {
  checking_ = false;
  rows_at_last_forgetting_ = 0;
  finder_.move_anchor(active_.weights());
  classify_active();
}

// All rows that may violate are looked at, at the very weights that would be saved: what is left outside the active
// rows is known then, and so is the gap.
void IndexedTask::step_with_check() {
  const bool starting = is_starting();
  const double tolerance = starting ? std::max(kStartTolerance, inner_tolerance_) : inner_tolerance_;
  const double dual = active_.solve_to(0.5 * tolerance).dual;
  finder_.move_to(rounded(active_.weights()));
  const RowSearch::SearchResult result = finder_.check(std::max(settings_.query, active().size() / 2));
  if (!result.all) return work_on_block(result);
  const std::vector<double>& at = finder_.at();
  certificate_ = bounded_by(dual, objective_at(at, active_.sums_at(at, most_loss()).losses, result.losses));
  if (certificate_.gap() > tolerance) return work_on_block(result);
  if (starting) return end_start();
  if (finder_.is_anchored()) return try_outer_step(dual);
  best_ = at;
  objective_ = certificate_.primal;
  finish();
}

void IndexedTask::try_outer_step(double dual) {
  ActiveRows& rows = active_.rows();
  const std::vector<double>& at = finder_.at();
  const std::vector<double> last_anchor = finder_.anchor();
  std::vector<std::pair<double, bool>> last(rows.size());
  for (size_t i = 0; i < last.size(); ++i) last[i] = {rows.alpha(i), rows.is_out(i)};
  const uint64_t last_outliers = finder_.outliers();
  finder_.move_anchor(at);
  const bool changed = classify_active();
  const RowSearch::SearchResult result = finder_.check(0);
  const double out_cost = finder_.out_cost();
  const ActiveDescent::ActiveSums sums = active_.sums_at(at, most_loss());
  const double objective = 0.5 * squared(at) + sums.all_losses + result.losses.value() + most_loss() * out_cost;
  if (objective_ && objective >= *objective_) {
    finder_.move_anchor(last_anchor);
    for (size_t i = 0; i < last.size(); ++i) {
      rows.alpha(i) = last[i].first;
      rows.set_out(i, last[i].second);
    }
    active_.refresh_weights();
    inner_tolerance_ *= 0.1;
    // No step is better: what was there stays. It is the anchor, where both problems have the same value, and the dual
    // bounds it as it bounds the step that was not taken.
    if (inner_tolerance_ < kMostTightening * settings_.tolerance) {
      certificate_ = bounded_by(dual, anchor_);
      finish();
    }
    return;
  }
  const double fall = objective_ ? *objective_ - objective : kInfinity;
  objective_ = objective;
  objectives_.push_back(objective);
  outer_step_taken_ = true;
  anchor_ = objective_at(at, sums.losses, result.losses);
  best_ = at;
  ++outer_steps_;
  rows_at_last_forgetting_ = 0;
  const bool same = !changed && result.losses.value() == 0 && finder_.outliers() == last_outliers;
  if (same || fall <= kLeastFall * settings_.tolerance * objective) finish();
}

// Outliers are those of the best weights themselves then, which no outer step has looked at.
double IndexedTask::objective_at_best() {
  finder_.move_anchor(best_);
  classify_active();
  const RowSearch::SearchResult result = finder_.check(0);
  const ActiveDescent::ActiveSums sums = active_.sums_at(best_, most_loss());
  return 0.5 * squared(best_) + sums.all_losses + result.losses.value() + most_loss() * finder_.out_cost();
}

void IndexedTask::finish() { done_ = answered_ = true; }

void IndexedTask::conclude() {
  answered_ = true;
  if (!objective_) {
    active_.solve_to(kRoughly, kFewRounds);
    if (is_starting()) {
      end_start();
      active_.solve_to(kRoughly, kFewRounds);
    }
  }
  active_.refresh_weights();
  const ActiveDescent::ActiveSums dual_sums = active_.sums_at(active_.weights(), most_loss());
  const double dual =
      certificate_of({}, {}, dual_sums.duals, squared_norm_of(std::span<const double>(active_.weights()))).dual;
  if (objective_) {
    // The last outer step that was taken, which is the anchor: its convex problem is the one in work.
    certificate_ = bounded_by(dual, anchor_);
  } else {
    finder_.move_to(rounded(active_.weights()));
    best_ = finder_.at();
    const RowSearch::SearchResult result = finder_.check(0);
    const ActiveDescent::ActiveSums sums = active_.sums_at(best_, most_loss());
    certificate_ = bounded_by(dual, objective_at(best_, sums.losses, result.losses));
    objective_ = finder_.is_anchored() ? objective_at_best() : certificate_.primal;
  }
  count_reading();
}

bool IndexedTask::take_outer_step() { return std::exchange(outer_step_taken_, false); }

IndexedTask::Result IndexedTask::result() const {
  Result result{.truncated = {.objective = objective_.value_or(0), .outer_steps = outer_steps_}};
  result.truncated.outliers = finder_.outliers();
  for (size_t i = 0; i < active().size(); ++i) {
    if (active().is_out(i)) ++result.truncated.outliers;
    if (active().alpha(i) > 0) ++result.support_vectors;
  }
  return result;
}

void IndexedTask::restore(FieldReader& from) {
  visit_fields(*this, from);
  answered_ = done_;
  if (certificate_.contradicts_itself()) from.refuse("contradicts itself");
}

}  // namespace linblock
