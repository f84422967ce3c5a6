#include "solve/indexed_task.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "objective/double_weights.h"
#include "solve/sparse_loss.h"

namespace linblock {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kIdle = 0.1;  // beyond the margin: such rows need not be at hand
constexpr double kSampleTolerance = 0.01;
constexpr double kSettledEnough = 0.1;
constexpr int kShortSettling = 5;
constexpr uint64_t kLargeStart = 50'000;  // rows, or one in ...
constexpr uint64_t kStartShare = 20;      // ... so many, where that is more
constexpr double kStartTolerance = 0.1;
constexpr double kFewFinds = 0.002;        // of the rows looked at; n / rows, where that is less
constexpr double kLeastFall = 0.1;         // of the tolerance: a smaller fall of the objective ends the outer steps
constexpr double kMostTightening = 0.005;  // of the tolerance
// How the index is judged.
constexpr uint64_t kTrialTurns = 4;   // every other one looks at pages drawn at random ...
constexpr size_t kTrialPages = 8;     // ... so many
constexpr double kBetter = 1.1;       // as many finds a row: the least that an index must be good for
constexpr size_t kPagesToJudge = 32;  // with fewer, there is nothing to choose from

std::vector<double> rounded(const std::vector<double>& weights) {
  std::vector<double> result(weights.size());
  std::transform(weights.begin(), weights.end(), result.begin(),
                 [](double x) { return double{static_cast<float>(x)}; });
  return result;
}

// All of it that is not an array.
struct Saved {
  uint64_t start_rows = 0;
  uint64_t rows_at_last_forgetting = 0;
  uint64_t page_bytes = 0;
  uint64_t looks = 0;
  uint64_t turn = 0;
  uint64_t scanned = 0;
  uint64_t traversed = 0;
  uint64_t outer_steps = 0;
  double objective = 0;
  double inner_tolerance = 0;
  double out_cost = 0;
  Certificate certificate = {};
  std::array<double, 2> trial_found = {};
  std::array<double, 2> trial_traversed = {};
  uint64_t has_objective = 0;
  uint64_t anchored = 0;
  uint64_t checking = 0;
  uint64_t by_scan = 0;
  uint64_t done = 0;
};

}  // namespace

IndexedTask::IndexedTask(const Problem& problem, const Task& task, const MetricForest& forest, PageCache& cache,
                         const Settings& settings, std::unique_ptr<PageSearch> search)
    : problem_(problem),
      costs_(problem, task),
      held_out_(task.held_out),
      forest_(forest),
      cache_(cache),
      settings_(settings),
      outlier_margin_(problem.truncate ? outlier_margin(problem.loss, *problem.truncate) : -kInfinity),
      rows_(problem.store->info().rows),
      positive_bit_(label_bit(task.positive)),
      search_(std::move(search)),
      scan_(forest.pages().chunks().size()),
      active_(problem, costs_, forest.pages(), settings.descent),
      page_begin_(row_begins(forest.pages())),
      members_(page_begin_.back()),
      notes_(forest.pages().chunks().size(), problem.weights()),
      last_look_(notes_.pages()),
      anchor_(problem.weights()),
      best_(problem.weights()),
      inner_tolerance_(settings.tolerance) {
  visit_sparse(problem.loss, [](const auto&) { return 0; });
  for (const auto& [label, rows] : problem.store->info().labels)
    if (label != task.positive && label_bit(label) == positive_bit_) bit_is_shared_ = true;
  if (!search_) {
    search_ = std::make_unique<ForestSearch>(forest, cache, mix64(settings.descent.seed, 0x696e646578));
  } else {
    turn_ = kTrialTurns;  // whatever it is, it is not judged
  }
}

double IndexedTask::most_loss() const { return truncated() ? 1 + *problem_.truncate : kInfinity; }

// The start.

void IndexedTask::add_to_start(const Chunk& chunk, size_t row, double alpha) {
  ActiveRows& rows = active_.rows();
  rows.add({}, chunk.encoded(row, buffer_));
  rows.alpha(rows.size() - 1) = alpha;
  strangers_.push_back(chunk.id(row));
}

void IndexedTask::start() {
  std::sort(strangers_.begin(), strangers_.end());
  start_rows_ = active().size();
  active_.refresh_weights();
  count_reading();
}

// The query.

bool IndexedTask::can_be_left(uint32_t page, const MetricForest::Child& child, double score) {
  const std::vector<double>& at = notes_.at();
  double squares = squared(at);
  if (problem_.has_bias()) squares -= at.back() * at.back();
  const double spread = std::sqrt(squares) * double{child.radius};
  double slack = kInfinity;
  if ((child.label_bits & positive_bit_) != 0) slack = std::min(slack, score - spread - 1);
  if ((child.label_bits & ~positive_bit_) != 0 || bit_is_shared_) slack = std::min(slack, -score - spread - 1);
  slack -= kMarginRounding * (1 + std::abs(score));
  if (slack <= 0) return false;
  const double bias2 = problem_.has_bias() ? problem_.bias * problem_.bias : 0;
  const double longest = std::sqrt(double{child.largest_norm} * double{child.largest_norm} + bias2);
  notes_.put(page, {.quiet_within = longest > 0 ? slack / longest * (1 - kMarginRounding) : kInfinity,
                    .out_until = kInfinity,
                    .far = slack >= kFar ? uint16_t{1} : uint16_t{0}});
  return true;
}

size_t IndexedTask::look_at(uint32_t number, size_t most, Found& found) {
  const std::shared_ptr<const Chunk> chunk = cache_.page(number);
  page_bytes_ = std::max<uint64_t>(page_bytes_, chunk->memory_bytes());
  last_look_[number] = ++looks_;
  const std::vector<double>& at = notes_.at();
  const bool same = at == anchor_;
  const double w_norm = std::sqrt(squared(at));
  const uint64_t begin = page_begin_[number];
  PageNote note{.quiet_within = kInfinity, .out_until = kInfinity, .far = 1};
  size_t taken = 0;
  bool left_over = false;
  for (size_t i = 0; i < chunk->rows(); ++i) {
    if (members_.has(begin + i)) continue;
    const uint64_t id = chunk->id(i);
    if (held_out_.holds(id)) continue;
    if (!strangers_.empty() && std::binary_search(strangers_.begin(), strangers_.end(), id)) {
      members_.set(begin + i);
      continue;
    }
    const Row row = chunk->row(i, buffer_);
    const double cost = costs_.cost_of_learned(row);
    if (cost == 0) continue;
    ++found.traversed;
    const double norm = norm_of(row);
    const double rounding = kMarginRounding * (1 + w_norm * norm);
    double margin_here = 0;
    if (truncated()) {
      const double at_anchor = margin(row, anchor_);
      if (at_anchor < outlier_margin_) {
        const double slack = outlier_margin_ - at_anchor - rounding;
        note.out_until = std::min(note.out_until, norm > 0 ? notes_.anchor_moved() + slack / norm : kInfinity);
        note.out_cost += cost;
        ++note.out_rows;
        continue;
      }
      margin_here = same ? at_anchor : margin(row, at);
    } else {
      margin_here = margin(row, at);
    }
    if (margin_here < 1) {
      if (taken < most) {
        active_.rows().add({number, static_cast<uint32_t>(i)}, chunk->encoded(i, buffer_));
        members_.set(begin + i);
        ++taken;
      } else {
        left_over = true;
        found.losses += cost * visit_sparse(problem_.loss, [&](const auto& loss) { return loss.value(margin_here); });
      }
      continue;
    }
    if (margin_here < 1 + kFar) note.far = 0;
    note.quiet_within = std::min(note.quiet_within, norm > 0 ? (margin_here - 1 - rounding) / norm : kInfinity);
  }
  if (left_over) note.quiet_within = -1;
  if (left_over || taken > 0) note.far = 0;
  notes_.put(number, note);
  found.rows += taken;
  return taken;
}

std::vector<uint32_t> IndexedTask::look_again(size_t most, Found& found) {
  const uint64_t held = std::min<uint64_t>(looks_, cache_.capacity() / std::max<uint64_t>(1, page_bytes_));
  std::vector<uint32_t> pages;
  for (uint32_t page = 0; page < last_look_.size(); ++page)
    if (last_look_[page] > looks_ - held) pages.push_back(page);
  std::sort(pages.begin(), pages.end(), [&](uint32_t a, uint32_t b) { return last_look_[a] > last_look_[b]; });
  std::erase_if(pages, [&](uint32_t page) {
    if (!notes_.is_due(page, true) || (most > 0 && found.rows >= most)) return true;
    look_at(page, most - std::min(most, found.rows), found);
    return false;
  });
  std::sort(pages.begin(), pages.end());
  return pages;
}

IndexedTask::Found IndexedTask::query(size_t most, bool thorough, PageSearch& search, size_t most_pages) {
  Found found;
  const std::vector<uint32_t> seen = thorough ? look_again(most, found) : std::vector<uint32_t>();
  search.begin({.weights = notes_.at(),
                .bias = problem_.bias,
                .turn = turn_,
                .thorough = thorough,
                .is_due =
                    [&](uint32_t page) {
                      return notes_.is_due(page, thorough) && !std::binary_search(seen.begin(), seen.end(), page);
                    },
                .can_be_left = [&](uint32_t page, const MetricForest::Child& child,
                                   double score) { return can_be_left(page, child, score); }});
  for (size_t pages = 0; pages < most_pages && (most == 0 || found.rows < most); ++pages) {
    const std::optional<uint32_t> page = search.next();
    if (!page) {
      found.all = true;
      break;
    }
    search.saw(look_at(*page, most - std::min(most, found.rows), found));
  }
  traversed_ += found.traversed;
  return found;
}

IndexedTask::Found IndexedTask::next_rows() {
  notes_.move_to(active_.weights());
  const bool judged = turn_ > kTrialTurns || notes_.pages() < kPagesToJudge;
  if (!judged && turn_ % 2 == 0) {
    RandomSearch random(notes_.pages(), mix64(settings_.descent.seed, turn_));
    const Found found = query(settings_.query, false, random, kTrialPages);
    judge_index(found, false);
    return found;
  }
  const Found found = query(settings_.query, false, by_scan_ ? scan_ : *search_);
  if (!judged) judge_index(found, true);
  return found;
}

void IndexedTask::judge_index(const Found& found, bool by_forest) {
  trial_found_[by_forest ? 1 : 0] += static_cast<double>(found.rows);
  trial_traversed_[by_forest ? 1 : 0] += static_cast<double>(found.traversed);
  if (turn_ < kTrialTurns || trial_traversed_[0] == 0 || trial_traversed_[1] == 0) return;
  const double at_random = trial_found_[0] / trial_traversed_[0];
  const double by_index = trial_found_[1] / trial_traversed_[1];
  if (by_index > kBetter * at_random) return;
  by_scan_ = true;
  note_ = fmt::format(
      "the index does not help with this data: {:.1f}% of the rows that it leads to matter, and {:.1f}% of rows taken "
      "at random; pages are read one after another instead, and the answer is the same",
      100 * by_index, 100 * at_random);
}

void IndexedTask::work_on_block(const Found& found) {
  const uint64_t looked_at_only = found.traversed - std::min<uint64_t>(found.traversed, found.rows);
  active_.solve_newest(found.rows, looked_at_only, inner_tolerance_);
}

// The outer steps.

void IndexedTask::set_anchor(const std::vector<double>& weights) {
  notes_.move_anchor(distance(weights, anchor_));
  anchor_ = weights;
  classify_active();
}

// Rows without a say, clearly beyond the margin or outliers, go back to their pages: what a page knows of its rows is
// made true for them too.
void IndexedTask::forget_idle_rows() {
  ActiveRows& rows = active_.rows();
  active_.settle(kSettledEnough, kShortSettling);
  const std::vector<double>& w = active_.weights();
  std::vector<uint8_t> keep(rows.size(), 1);
  size_t idle = 0;
  active_.for_each([&](size_t i, const Row& row) {
    if (i < start_rows_ || rows.alpha(i) != 0) return;
    if (!rows.is_out(i) && margin(row, w) <= 1 + kIdle) return;
    keep[i] = 0;
    ++idle;
  });
  rows_at_last_forgetting_ = rows.size();
  if (idle < rows.size() / 4) return;
  rows_at_last_forgetting_ -= idle;
  const double w_norm = std::sqrt(squared(w));
  const double anchor_norm = std::sqrt(squared(anchor_));
  notes_.begin_returns(w);
  active_.for_each([&](size_t i, const Row& row) {
    if (keep[i] != 0) return;
    const RowCache::Origin origin = rows.origin(i);
    members_.clear(page_begin_[origin.chunk] + origin.row);
    const double norm = norm_of(row);
    if (rows.is_out(i))
      notes_.give_back_outlier(origin.chunk,
                               outlier_margin_ - margin(row, anchor_) - kMarginRounding * (1 + anchor_norm * norm),
                               norm, costs_.cost_of_learned(row));
    else
      notes_.give_back(origin.chunk, margin(row, w) - 1 - kMarginRounding * (1 + w_norm * norm), norm);
  });
  active_.keep(keep);
}

// Outliers leave the problem: their alpha y x leaves w. True: some row is on another side than before.
bool IndexedTask::classify_active() {
  if (!truncated()) return false;
  bool changed = false;
  ActiveRows& rows = active_.rows();
  active_.for_each([&](size_t i, const Row& row) {
    const bool out = margin(row, anchor_) < outlier_margin_;
    changed = changed || out != rows.is_out(i);
    rows.set_out(i, out);
    if (out) rows.alpha(i) = 0;
  });
  if (changed) active_.refresh_weights();
  return changed;
}

void IndexedTask::step() {
  ++turn_;
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
  const uint64_t turn = turn_;
  const Found found = next_rows();
  work_on_block(found);
  // A convex start has cost enough when its rows are too many, though idle ones were just forgotten.
  const bool many = is_crowded() || active().size() > std::max(kLargeStart, rows_ / kStartShare);
  const bool enough = !anchored_ && problem_.truncate && many && !has_many_new_rows();
  if (!enough && (found.rows >= settings_.query || (turn <= kTrialTurns && notes_.pages() >= kPagesToJudge))) return;
  const double share = static_cast<double>(found.rows) / std::max(1.0, static_cast<double>(found.traversed));
  const double few = std::min(kFewFinds, static_cast<double>(settings_.query) / static_cast<double>(rows_));
  if (!enough && found.rows > 0 && share >= few) return;
  certificate_ = active_.settle(std::max(kSampleTolerance, inner_tolerance_));
  if (enough)
    end_start();
  else
    checking_ = true;
}

// The convex problem that a truncated one starts from has been solved far enough.
void IndexedTask::end_start() {
  anchored_ = true;
  checking_ = false;
  rows_at_last_forgetting_ = 0;
  set_anchor(active_.weights());
}

// All rows that may violate are looked at, at the very weights that would be saved: what is left outside the active
// rows is known then, and so is the gap.
void IndexedTask::step_with_check() {
  const bool starting = !anchored_ && problem_.truncate;
  const double tolerance = starting ? std::max(kStartTolerance, inner_tolerance_) : inner_tolerance_;
  certificate_ = active_.settle(0.5 * tolerance);
  const double dual = certificate_.dual;
  notes_.move_to(rounded(active_.weights()));
  const Found found = query(std::max(settings_.query, active().size() / 2), true, by_scan_ ? scan_ : *search_);
  if (!found.all) return work_on_block(found);
  const std::vector<double>& at = notes_.at();
  certificate_ = {0.5 * squared(at) + active_.sums_at(at, most_loss()).losses + found.losses, dual};
  if (certificate_.gap() > tolerance) return work_on_block(found);
  if (starting) return end_start();
  if (truncated()) return try_outer_step(certificate_.primal, dual);
  best_ = at;
  objective_ = certificate_.primal;
  finish();
}

void IndexedTask::try_outer_step(double primal, double dual) {
  ActiveRows& rows = active_.rows();
  const std::vector<double>& at = notes_.at();
  const std::vector<double> last_anchor = anchor_;
  std::vector<std::pair<double, bool>> last(rows.size());
  for (size_t i = 0; i < last.size(); ++i) last[i] = {rows.alpha(i), rows.is_out(i)};
  const uint64_t last_outliers = notes_.outliers();
  notes_.move_anchor(distance(at, anchor_));
  anchor_ = at;
  const bool changed = classify_active();
  const Found found = query(0, true, by_scan_ ? scan_ : *search_);
  const double out_cost = notes_.out_cost();
  const ActiveDescent::Sums sums = active_.sums_at(at, most_loss());
  const double objective = 0.5 * squared(at) + sums.all_losses + found.losses + most_loss() * out_cost;
  if (objective_ && objective >= *objective_) {
    notes_.move_anchor(distance(last_anchor, anchor_));
    anchor_ = last_anchor;
    for (size_t i = 0; i < last.size(); ++i) {
      rows.alpha(i) = last[i].first;
      rows.set_out(i, last[i].second);
    }
    active_.refresh_weights();
    inner_tolerance_ *= 0.1;
    // No step is better: what was there stays. It is the anchor, where both problems have the same value, and the dual
    // bounds it as it bounds the step that was not taken.
    if (inner_tolerance_ < kMostTightening * settings_.tolerance) {
      certificate_ = {*objective_ - most_loss() * out_cost_, dual};
      finish();
    }
    return;
  }
  const double fall = objective_ ? *objective_ - objective : kInfinity;
  objective_ = objective;
  objectives_.push_back(objective);
  outer_step_taken_ = true;
  out_cost_ = out_cost + sums.out_cost;
  best_ = at;
  certificate_ = {primal, dual};
  ++outer_steps_;
  rows_at_last_forgetting_ = 0;
  const bool same = !changed && found.losses == 0 && notes_.outliers() == last_outliers;
  if (same || fall <= kLeastFall * settings_.tolerance * objective) finish();
}

void IndexedTask::finish() { done_ = answered_ = true; }

void IndexedTask::conclude() {
  answered_ = true;
  if (!objective_) {
    active_.settle(kSettledEnough, kShortSettling);
    if (problem_.truncate && !anchored_) {
      end_start();
      active_.settle(kSettledEnough, kShortSettling);
    }
  }
  active_.refresh_weights();
  const double dual = active_.sums_at(active_.weights(), most_loss()).dual_values - 0.5 * squared(active_.weights());
  const double of_outlier = 1 + problem_.truncate.value_or(0);
  if (objective_) {
    // The last outer step that was taken, which is the anchor: its convex problem is the one in work.
    certificate_ = {*objective_ - of_outlier * out_cost_, dual};
  } else {
    notes_.move_to(rounded(active_.weights()));
    best_ = notes_.at();
    const Found found = query(0, true, by_scan_ ? scan_ : *search_);
    const ActiveDescent::Sums sums = active_.sums_at(best_, most_loss());
    certificate_ = {0.5 * squared(best_) + sums.losses + found.losses, dual};
    objective_ = certificate_.primal + of_outlier * (sums.out_cost + notes_.out_cost());
  }
  count_reading();
}

bool IndexedTask::take_outer_step() { return std::exchange(outer_step_taken_, false); }

IndexedTask::Result IndexedTask::result() const {
  Result result{.truncated = {.objective = objective_.value_or(0), .outer_steps = outer_steps_}};
  result.truncated.outliers = notes_.outliers();
  for (size_t i = 0; i < active().size(); ++i) {
    if (active().is_out(i)) ++result.truncated.outliers;
    if (active().alpha(i) > 0) ++result.support_vectors;
  }
  return result;
}

void IndexedTask::save(SnapshotWriter& to, const std::string& name) const {
  active_.save(to, name);
  notes_.save(to, name);
  members_.save(to, name + "members");
  to.put(name + "strangers", std::span<const uint64_t>(strangers_));
  to.put(name + "last looks", std::span<const uint64_t>(last_look_));
  to.put(name + "anchor", std::span<const double>(anchor_));
  to.put(name + "best", std::span<const double>(best_));
  to.put(name + "objectives", std::span<const double>(objectives_));
  const Saved saved{.start_rows = start_rows_,
                    .rows_at_last_forgetting = rows_at_last_forgetting_,
                    .page_bytes = page_bytes_,
                    .looks = looks_,
                    .turn = turn_,
                    .scanned = scan_.position(),
                    .traversed = traversed_,
                    .outer_steps = outer_steps_,
                    .objective = objective_.value_or(0),
                    .inner_tolerance = inner_tolerance_,
                    .out_cost = out_cost_,
                    .certificate = certificate_,
                    .trial_found = trial_found_,
                    .trial_traversed = trial_traversed_,
                    .has_objective = objective_ ? 1U : 0U,
                    .anchored = anchored_ ? 1U : 0U,
                    .checking = checking_ ? 1U : 0U,
                    .by_scan = by_scan_ ? 1U : 0U,
                    .done = done_ ? 1U : 0U};
  to.put(name + "state", std::span<const Saved>(&saved, 1));
}

void IndexedTask::restore(const SnapshotReader& from, const std::string& name) {
  active_.restore(from, name);
  notes_.restore(from, name);
  members_.restore(from, name + "members");
  strangers_.resize(from.count<uint64_t>(name + "strangers"));
  from.take(name + "strangers", std::span<uint64_t>(strangers_));
  from.take(name + "last looks", std::span<uint64_t>(last_look_));
  from.take(name + "anchor", std::span<double>(anchor_));
  from.take(name + "best", std::span<double>(best_));
  objectives_.resize(from.count<double>(name + "objectives"));
  from.take(name + "objectives", std::span<double>(objectives_));
  Saved saved;
  from.take(name + "state", std::span<Saved>(&saved, 1));
  start_rows_ = saved.start_rows;
  rows_at_last_forgetting_ = saved.rows_at_last_forgetting;
  page_bytes_ = saved.page_bytes;
  looks_ = saved.looks;
  turn_ = saved.turn;
  scan_.set_position(saved.scanned);
  traversed_ = saved.traversed;
  outer_steps_ = saved.outer_steps;
  objective_ = saved.has_objective != 0 ? std::optional(saved.objective) : std::nullopt;
  inner_tolerance_ = saved.inner_tolerance;
  out_cost_ = saved.out_cost;
  certificate_ = saved.certificate;
  trial_found_ = saved.trial_found;
  trial_traversed_ = saved.trial_traversed;
  anchored_ = saved.anchored != 0;
  checking_ = saved.checking != 0;
  by_scan_ = saved.by_scan != 0;
  done_ = answered_ = saved.done != 0;
}

}  // namespace linblock
