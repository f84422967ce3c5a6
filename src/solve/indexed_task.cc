#include "solve/indexed_task.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/dot.h"
#include "base/error.h"

namespace linblock {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kMostLooks = 64;
constexpr size_t kBytesForLooks = size_t{1} << 20;
constexpr double kIdle = 0.1;       // beyond the margin: such rows need not be at hand
constexpr double kFar = 1;          // beyond the margin: such rows are not looked at again before the check
constexpr double kRounding = 1e-9;  // of margins, in double, and to spare
constexpr double kNewtonExact = 0.01;
constexpr int kBlockRounds = 10;   // over a block, as BLOCK-L-10
constexpr int kMostSettling = 50;  // times as many, over all active rows
constexpr double kSampleTolerance = 0.01;
constexpr double kFewFinds = 0.002;        // of the rows looked at; n / rows, where that is less
constexpr double kLeastFall = 0.1;         // of the tolerance: a smaller fall of the objective ends the outer steps
constexpr double kMostTightening = 0.005;  // of the tolerance
// How the index is judged.
constexpr uint64_t kTrialTurns = 4;   // every other one looks at pages drawn at random ...
constexpr size_t kTrialPages = 8;     // ... so many
constexpr double kBetter = 1.1;       // as many finds a row: the least that an index must be good for
constexpr size_t kPagesToJudge = 32;  // with fewer, there is nothing to choose from

double squared(std::span<const double> a) {
  double sum = 0;
  for (const double x : a) sum += x * x;
  return sum;
}

double distance(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t j = 0; j < a.size(); ++j) sum += (a[j] - b[j]) * (a[j] - b[j]);
  return std::sqrt(sum);
}

std::vector<double> rounded(const std::vector<double>& weights) {
  std::vector<double> result(weights.size());
  std::transform(weights.begin(), weights.end(), result.begin(),
                 [](double x) { return double{static_cast<float>(x)}; });
  return result;
}

// Hinge and squared hinge: rows beyond the margin have no part in the answer. Logistic loss knows no such rows.
template <class Visitor>
auto visit_sparse(const AnyLoss& any, const Visitor& visitor) {
  using Result = std::invoke_result_t<const Visitor&, const Hinge&>;
  return std::visit(
      [&](const auto& loss) -> Result {
        if constexpr (std::is_same_v<std::decay_t<decltype(loss)>, Logistic>)
          fail(ErrorKind::usage, "with logistic loss every row matters: use --solver dual, or --loss squared-hinge");
        else
          return visitor(loss);
      },
      any);
}

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
      active_(forest.pages(), settings.active_bytes, settings.files),
      newton_(problem, costs_, active_),
      page_begin_(row_begins(forest.pages())),
      members_(page_begin_.back()),
      pages_(forest.pages().chunks().size()),
      w_(problem.weights()),
      at_(w_),
      anchor_(w_),
      best_(w_),
      inner_tolerance_(settings.tolerance) {
  visit_sparse(problem.loss, [](const auto&) { return 0; });
  for (const auto& [label, rows] : problem.store->info().labels)
    if (label != task.positive && label_bit(label) == positive_bit_) bit_is_shared_ = true;
  if (!search_) {
    search_ = std::make_unique<ForestSearch>(forest, cache, mix64(settings.seed, 0x696e646578));
  } else {
    turn_ = kTrialTurns;  // whatever it is, it is not judged
  }
}

double IndexedTask::margin(const Row& row, std::span<const double> weights) const {
  double sum = problem_.has_bias() ? problem_.bias * weights.back() : 0;
  for (size_t k = 0; k < row.index.size(); ++k) sum += weights[row.index[k]] * double{row.value[k]};
  return costs_.sign(row) * sum;
}

double IndexedTask::norm_of(const Row& row) const {
  return std::sqrt(squared_norm(row.value) + (problem_.has_bias() ? problem_.bias * problem_.bias : 0));
}

// The start.

void IndexedTask::add_to_start(const Chunk& chunk, size_t row, double alpha) {
  active_.add({}, chunk.encoded(row, buffer_));
  active_.alpha(active_.size() - 1) = alpha;
  strangers_.push_back(chunk.id(row));
}

void IndexedTask::start() {
  std::sort(strangers_.begin(), strangers_.end());
  start_rows_ = active_.size();
  refresh_weights();
}

// The query.

bool IndexedTask::is_due(uint32_t page, bool thorough) const {
  const PageState& state = pages_[page];
  if (!thorough && state.far != 0 && state.out_rows == 0) return false;
  return state.quiet_within < 0 || state.out_until < anchor_moved_ || state.quiet_within < distances_[state.looked_at];
}

bool IndexedTask::can_be_left(uint32_t page, const MetricForest::Child& child, double score) {
  double squares = squared(at_);
  if (problem_.has_bias()) squares -= at_.back() * at_.back();
  const double spread = std::sqrt(squares) * double{child.radius};
  double slack = kInfinity;
  if ((child.label_bits & positive_bit_) != 0) slack = std::min(slack, score - spread - 1);
  if ((child.label_bits & ~positive_bit_) != 0 || bit_is_shared_) slack = std::min(slack, -score - spread - 1);
  slack -= kRounding * (1 + std::abs(score));
  if (slack <= 0) return false;
  const double bias2 = problem_.has_bias() ? problem_.bias * problem_.bias : 0;
  const double longest = std::sqrt(double{child.largest_norm} * double{child.largest_norm} + bias2);
  pages_[page] = {.quiet_within = longest > 0 ? slack / longest * (1 - kRounding) : kInfinity,
                  .out_until = kInfinity,
                  .looked_at = this_look(),
                  .far = slack >= kFar ? uint16_t{1} : uint16_t{0}};
  return true;
}

size_t IndexedTask::look_at(uint32_t number, size_t most, Found& found) {
  const std::shared_ptr<const Chunk> chunk = cache_.page(number);
  const bool same = at_ == anchor_;
  const double w_norm = std::sqrt(squared(at_));
  const uint64_t begin = page_begin_[number];
  PageState state{.quiet_within = kInfinity, .out_until = kInfinity, .looked_at = this_look(), .far = 1};
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
    const double rounding = kRounding * (1 + w_norm * norm);
    double margin_here = 0;
    if (truncated()) {
      const double at_anchor = margin(row, anchor_);
      if (at_anchor < outlier_margin_) {
        const double slack = outlier_margin_ - at_anchor - rounding;
        state.out_until = std::min(state.out_until, norm > 0 ? anchor_moved_ + slack / norm : kInfinity);
        state.out_cost += cost;
        ++state.out_rows;
        continue;
      }
      margin_here = same ? at_anchor : margin(row, at_);
    } else {
      margin_here = margin(row, at_);
    }
    if (margin_here < 1) {
      if (taken < most) {
        active_.add({number, static_cast<uint32_t>(i)}, chunk->encoded(i, buffer_));
        members_.set(begin + i);
        ++taken;
      } else {
        left_over = true;
        found.losses += cost * visit_sparse(problem_.loss, [&](const auto& loss) { return loss.value(margin_here); });
      }
      continue;
    }
    if (margin_here < 1 + kFar) state.far = 0;
    state.quiet_within = std::min(state.quiet_within, norm > 0 ? (margin_here - 1 - rounding) / norm : kInfinity);
  }
  if (left_over) state.quiet_within = -1;
  if (left_over || taken > 0) state.far = 0;
  pages_[number] = state;
  found.rows += taken;
  return taken;
}

IndexedTask::Found IndexedTask::query(size_t most, bool thorough, PageSearch& search, size_t most_pages) {
  Found found;
  search.begin({.weights = at_,
                .bias = problem_.bias,
                .turn = turn_,
                .thorough = thorough,
                .is_due = [&](uint32_t page) { return is_due(page, thorough); },
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
  move_to(w_);
  const bool judged = turn_ > kTrialTurns || pages_.size() < kPagesToJudge;
  if (!judged && turn_ % 2 == 0) {
    RandomSearch random(pages_.size(), mix64(settings_.seed, turn_));
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

void IndexedTask::move_to(const std::vector<double>& weights) {
  at_ = weights;
  for (size_t i = 0; i < looks_.size(); ++i) distances_[i] = distance(looks_[i], at_) * (1 + kRounding);
}

size_t IndexedTask::most_looks(size_t weights) {
  return std::clamp<size_t>(kBytesForLooks / sizeof(double) / std::max<size_t>(1, weights), 2, kMostLooks);
}

uint16_t IndexedTask::this_look() {
  if (!looks_.empty() && distances_.back() == 0) return static_cast<uint16_t>(looks_.size() - 1);
  if (looks_.size() == most_looks(at_.size())) {
    // The two oldest become one: what was true around the first is true in a smaller part of it around the second.
    const double apart = distance(looks_[0], looks_[1]) * (1 + kRounding);
    for (PageState& page : pages_) {
      if (page.looked_at == 0)
        page.quiet_within -= apart;
      else
        --page.looked_at;
    }
    looks_.erase(looks_.begin());
    distances_.erase(distances_.begin());
  }
  looks_.push_back(at_);
  distances_.push_back(0);
  return static_cast<uint16_t>(looks_.size() - 1);
}

// The block.

template <class Work>
void IndexedTask::for_each_active(const Work& work) {
  for (size_t first = 0; first < active_.size();) {
    const size_t count = active_.bring(first, active_.size() - first);
    for (size_t i = first; i < first + count; ++i) work(i, active_.row(i, buffer_));
    first += count;
  }
  cache_.add_costs({.bytes = active_.take_bytes_read()});
}

void IndexedTask::work_on_block(const Found& found) {
  const size_t old = active_.size() - found.rows;
  if (turn_of_active_ >= old) turn_of_active_ = 0;
  const uint64_t others = std::min<uint64_t>(found.traversed - std::min<uint64_t>(found.traversed, found.rows), old);
  std::vector<uint32_t> block;
  const size_t fresh = active_.bring(old, found.rows);
  for (size_t i = old; i < old + fresh; ++i) block.push_back(static_cast<uint32_t>(i));
  // In turn, and from the beginning again; what the memory does not hold together waits for its turn.
  const size_t first = turn_of_active_;
  const size_t count = fresh < found.rows ? 0 : active_.bring(first, std::min<size_t>(others, old - first), found.rows);
  cache_.add_costs({.bytes = active_.take_bytes_read()});
  for (size_t i = first; i < first + count; ++i)
    if (!active_.is_out(i)) block.push_back(static_cast<uint32_t>(i));
  turn_of_active_ = first + count;
  if (count == old - first && first > 0 && !active_.in_files()) {
    const size_t rest = std::min<size_t>(others - count, first);
    for (size_t i = 0; i < rest; ++i)
      if (!active_.is_out(i)) block.push_back(static_cast<uint32_t>(i));
    turn_of_active_ = rest;
  }
  solve_block(block, kBlockRounds, inner_tolerance_);
}

template <DualLoss L>
double IndexedTask::visit(const L& loss, size_t number) {
  const Row row = active_.row(number, buffer_);
  const double cost = costs_.cost_of_learned(row);
  const double sign = costs_.sign(row);
  double& alpha = active_.alpha(number);
  const double margin_now = margin(row, w_);
  const double gradient = loss.dual_gradient(alpha, margin_now, cost);
  if (alpha == 0 && gradient > 0) return gradient;
  if (alpha == loss.largest_alpha(cost) && gradient < 0) return gradient;
  double norm2 = squared_norm(row.value);
  if (problem_.has_bias()) norm2 += problem_.bias * problem_.bias;
  const double next = loss.dual_step(alpha, margin_now, std::max(norm2, 1e-300), cost);
  const double change = (next - alpha) * sign;
  alpha = next;
  if (change == 0) return gradient;
  add_scaled(row.index, row.value, change, w_.data());
  if (problem_.has_bias()) w_.back() += change * problem_.bias;
  return gradient;
}

// Dual coordinate descent with LIBLINEAR's shrinking, or Newton steps.
void IndexedTask::solve_block(std::vector<uint32_t>& block, int rounds, double tolerance) {
  if (block.empty()) return;
  if (settings_.newton) return newton_.solve(block, w_, kNewtonExact * std::min(1.0, tolerance));
  Random random(settings_.seed, mix64(turn_, block.size()));
  visit_sparse(problem_.loss, [&](const auto& loss) {
    size_t left = block.size();
    double top = kInfinity;
    double bottom = -kInfinity;
    for (int round = 0; round < rounds; ++round) {
      double highest = -kInfinity;
      double lowest = kInfinity;
      for (size_t i = left; i > 1; --i) std::swap(block[i - 1], block[random.below(i)]);
      for (size_t i = 0; i < left; ++i) {
        const size_t number = block[i];
        const double before = active_.alpha(number);
        const double gradient = visit(loss, number);
        const bool at_zero = before == 0 && gradient > 0;
        const bool at_top = !at_zero && gradient < 0 && active_.alpha(number) == before && before > 0;
        if ((at_zero && gradient > top) || (at_top && gradient < bottom)) {
          std::swap(block[i], block[--left]);
          --i;
          continue;
        }
        if (at_zero || at_top) {
          highest = std::max(highest, 0.0);
          lowest = std::min(lowest, 0.0);
          continue;
        }
        highest = std::max(highest, gradient);
        lowest = std::min(lowest, gradient);
      }
      if (highest - lowest <= 0.1 * tolerance) {
        if (left == block.size()) break;
        left = block.size();  // once more, with everything
        top = kInfinity;
        bottom = -kInfinity;
        continue;
      }
      top = highest > 0 ? highest : kInfinity;
      bottom = lowest < 0 ? lowest : -kInfinity;
    }
    return 0;
  });
}

// alpha y x
void IndexedTask::add_row(const Row& row, double alpha, std::vector<double>& to) const {
  const double scale = alpha * costs_.sign(row);
  add_scaled(row.index, row.value, scale, to.data());
  if (problem_.has_bias()) to.back() += scale * problem_.bias;
}

void IndexedTask::refresh_weights() {
  std::fill(w_.begin(), w_.end(), 0.0);
  for_each_active([&](size_t i, const Row& row) {
    if (active_.alpha(i) != 0) add_row(row, active_.alpha(i), w_);
  });
}

IndexedTask::Sums IndexedTask::sums_at(const std::vector<double>& weights, std::vector<double>* v) {
  Sums sums;
  visit_sparse(problem_.loss, [&](const auto& loss) {
    for_each_active([&](size_t i, const Row& row) {
      const double cost = costs_.cost_of_learned(row);
      const double alpha = active_.alpha(i);
      const double value = loss.value(margin(row, weights));
      (active_.is_out(i) ? sums.out_cost : sums.losses) += active_.is_out(i) ? cost : cost * value;
      sums.truncated += cost * (truncated() ? std::min(value, 1 + *problem_.truncate) : value);
      if (alpha == 0) return;
      sums.dual_values += loss.dual_value(alpha, cost);
      if (v != nullptr) add_row(row, alpha, *v);
    });
    return 0;
  });
  return sums;
}

void IndexedTask::settle(double tolerance) {
  for (int time = 0;; ++time) {
    // The sums are of w as it is, which differs from what it should be by the rounding of double: one pass for both.
    std::vector<double> v(w_.size());
    const Sums sums = sums_at(w_, &v);
    w_ = std::move(v);
    const double w2 = squared(w_);
    certificate_ = {0.5 * w2 + sums.losses, sums.dual_values - 0.5 * w2};
    if (certificate_.gap() <= tolerance || time == kMostSettling) return;
    for (size_t first = 0; first < active_.size();) {
      const size_t count = active_.bring(first, active_.size() - first);
      std::vector<uint32_t> block;
      for (size_t i = first; i < first + count; ++i)
        if (!active_.is_out(i)) block.push_back(static_cast<uint32_t>(i));
      solve_block(block, kBlockRounds, tolerance);
      first += count;
    }
    cache_.add_costs({.bytes = active_.take_bytes_read()});
    ++turn_;  // other random numbers
  }
}

// The outer steps.

void IndexedTask::set_anchor(const std::vector<double>& weights) {
  anchor_moved_ += distance(weights, anchor_) * (1 + kRounding);
  anchor_ = weights;
  classify_active();
  if (is_crowded()) forget_idle_rows();
}

// Rows without a say, clearly beyond the margin or outliers, go back to their pages: what a page knows of its rows is
// made true for them too.
void IndexedTask::forget_idle_rows() {
  std::vector<uint8_t> keep(active_.size(), 1);
  size_t idle = 0;
  const auto may_go = [&](size_t i, const Row& row) {
    if (i < start_rows_ || active_.alpha(i) != 0) return false;
    return active_.is_out(i) || margin(row, w_) > 1 + kIdle;
  };
  for_each_active([&](size_t i, const Row& row) {
    if (!may_go(i, row)) return;
    keep[i] = 0;
    ++idle;
  });
  if (idle < active_.size() / 4) return;
  std::vector<double> ways(looks_.size());  // from where pages were looked at to here
  for (size_t i = 0; i < looks_.size(); ++i) ways[i] = distance(looks_[i], w_) * (1 + kRounding);
  for_each_active([&](size_t i, const Row& row) {
    if (keep[i] != 0) return;
    const RowCache::Origin origin = active_.origin(i);
    PageState& page = pages_[origin.chunk];
    members_.clear(page_begin_[origin.chunk] + origin.row);
    const double norm = std::max(norm_of(row), 1e-300);
    if (active_.is_out(i)) {
      const double slack =
          outlier_margin_ - margin(row, anchor_) - kRounding * (1 + std::sqrt(squared(anchor_)) * norm);
      page.out_until = std::min(page.out_until, anchor_moved_ + slack / norm);
      page.out_cost += costs_.cost_of_learned(row);
      ++page.out_rows;
    } else {
      const double slack = margin(row, w_) - 1 - kRounding * (1 + std::sqrt(squared(w_)) * norm);
      page.quiet_within = std::min(page.quiet_within, slack / norm - ways[page.looked_at]);
      if (slack < kFar) page.far = 0;
    }
  });
  active_.keep(keep);
  turn_of_active_ = 0;
}

// Outliers leave the problem: their alpha y x leaves w. True: some row is on another side than before.
bool IndexedTask::classify_active() {
  if (!truncated()) return false;
  bool changed = false;
  for_each_active([&](size_t i, const Row& row) {
    const bool out = margin(row, anchor_) < outlier_margin_;
    changed = changed || out != active_.is_out(i);
    active_.set_out(i, out);
    if (out) active_.alpha(i) = 0;
  });
  if (changed) refresh_weights();
  return changed;
}

void IndexedTask::step() {
  ++turn_;
  if (checking_)
    step_with_check();
  else
    step_by_sample();
}

void IndexedTask::step_by_sample() {
  const uint64_t turn = turn_;
  const Found found = next_rows();
  work_on_block(found);
  // A convex start that would need rows from files has cost enough.
  const bool enough = !anchored_ && problem_.truncate && is_crowded();
  if (!enough && (found.rows >= settings_.query || (turn <= kTrialTurns && pages_.size() >= kPagesToJudge))) return;
  const double share = static_cast<double>(found.rows) / std::max(1.0, static_cast<double>(found.traversed));
  const double few = std::min(kFewFinds, static_cast<double>(settings_.query) / static_cast<double>(rows_));
  if (!enough && found.rows > 0 && share >= few) return;
  settle(std::max(kSampleTolerance, inner_tolerance_));
  if (!problem_.truncate) {
    checking_ = true;
    return;
  }
  if (!anchored_) {
    anchored_ = true;
    set_anchor(w_);
    return;
  }
  checking_ = true;
}

// All rows that may violate are looked at, at the very weights that would be saved: what is left outside the active
// rows is known then, and so is the gap.
void IndexedTask::step_with_check() {
  settle(0.5 * inner_tolerance_);
  const double dual = certificate_.dual;
  move_to(rounded(w_));
  const Found found = query(std::max(settings_.query, active_.size() / 2), true, by_scan_ ? scan_ : *search_);
  if (!found.all) return work_on_block(found);
  certificate_ = {0.5 * squared(at_) + sums_at(at_).losses + found.losses, dual};
  if (certificate_.gap() > inner_tolerance_) return work_on_block(found);
  if (truncated()) return try_outer_step(certificate_.primal, dual);
  best_ = at_;
  objective_ = certificate_.primal;
  finish();
}

void IndexedTask::try_outer_step(double primal, double dual) {
  const std::vector<double> last_anchor = anchor_;
  std::vector<std::pair<double, bool>> last(active_.size());
  for (size_t i = 0; i < last.size(); ++i) last[i] = {active_.alpha(i), active_.is_out(i)};
  const auto outliers = [&] {
    uint64_t sum = 0;
    for (const PageState& page : pages_) sum += page.out_rows;
    return sum;
  };
  const uint64_t last_outliers = outliers();
  anchor_moved_ += distance(at_, anchor_) * (1 + kRounding);
  anchor_ = at_;
  const bool changed = classify_active();
  const Found found = query(0, true, by_scan_ ? scan_ : *search_);
  double out_cost = 0;
  for (const PageState& page : pages_) out_cost += page.out_cost;
  const Sums sums = sums_at(at_);
  const double most_loss = 1 + *problem_.truncate;
  const double objective = 0.5 * squared(at_) + sums.truncated + found.losses + most_loss * out_cost;
  if (objective_ && objective >= *objective_) {
    anchor_moved_ += distance(last_anchor, anchor_) * (1 + kRounding);
    anchor_ = last_anchor;
    for (size_t i = 0; i < last.size(); ++i) {
      active_.alpha(i) = last[i].first;
      active_.set_out(i, last[i].second);
    }
    refresh_weights();
    inner_tolerance_ *= 0.1;
    // No step is better: what was there stays. It is the anchor, where both problems have the same value, and the dual
    // bounds it as it bounds the step that was not taken.
    if (inner_tolerance_ < kMostTightening * settings_.tolerance) {
      certificate_ = {*objective_ - most_loss * out_cost_, dual};
      finish();
    }
    return;
  }
  const double fall = objective_ ? *objective_ - objective : kInfinity;
  objective_ = objective;
  objectives_.push_back(objective);
  outer_step_taken_ = true;
  out_cost_ = out_cost + sums.out_cost;
  best_ = at_;
  certificate_ = {primal, dual};
  ++outer_steps_;
  const bool same = !changed && found.losses == 0 && outliers() == last_outliers;
  if (same || fall <= kLeastFall * settings_.tolerance * objective) finish();
}

void IndexedTask::finish() { done_ = true; }

void IndexedTask::conclude() {
  refresh_weights();
  const double v2 = squared(w_);
  const double dual = sums_at(w_).dual_values - 0.5 * v2;
  if (objective_) {
    // The last outer step that was taken, which is the anchor: its convex problem is the one in work.
    certificate_ = {*objective_ - (1 + problem_.truncate.value_or(0)) * out_cost_, dual};
    w_ = best_;
    return;
  }
  move_to(rounded(w_));
  const Found found = query(0, true, by_scan_ ? scan_ : *search_);
  const Sums sums = sums_at(at_);
  certificate_ = {0.5 * squared(at_) + sums.losses + found.losses, dual};
  double out_cost = sums.out_cost;
  for (const PageState& page : pages_) out_cost += page.out_cost;
  objective_ = certificate_.primal + (1 + problem_.truncate.value_or(0)) * out_cost;
  best_ = at_;
  w_ = best_;
}

std::optional<TruncatedResult> IndexedTask::take_outer_step() {
  if (!std::exchange(outer_step_taken_, false)) return std::nullopt;
  return result().truncated;
}

IndexedTask::Result IndexedTask::result() const {
  Result result{.truncated = {.objective = objective_.value_or(0), .outer_steps = static_cast<uint64_t>(outer_steps_)}};
  for (const PageState& page : pages_) result.truncated.outliers += page.out_rows;
  for (size_t i = 0; i < active_.size(); ++i) {
    if (active_.is_out(i)) ++result.truncated.outliers;
    if (active_.alpha(i) > 0) ++result.support_vectors;
  }
  return result;
}

void IndexedTask::save(SnapshotWriter& to, const std::string& name) const {
  active_.save(to, name);
  members_.save(to, name + "members");
  to.put(name + "strangers", std::span<const uint64_t>(strangers_));
  to.put(name + "pages", std::span<const PageState>(pages_));
  for (size_t i = 0; i < looks_.size(); ++i)
    to.put(fmt::format("{}look {}", name, i), std::span<const double>(looks_[i]));
  to.put(name + "distances", std::span<const double>(distances_));
  to.put(name + "w", std::span<const double>(w_));
  to.put(name + "at", std::span<const double>(at_));
  to.put(name + "anchor", std::span<const double>(anchor_));
  to.put(name + "best", std::span<const double>(best_));
  to.put(name + "objectives", std::span<const double>(objectives_));
  to.put(name + "numbers", std::span<const double>(std::array{anchored_ ? 1.0 : 0.0,
                                                              anchor_moved_,
                                                              static_cast<double>(turn_),
                                                              static_cast<double>(turn_of_active_),
                                                              checking_ ? 1.0 : 0.0,
                                                              done_ ? 1.0 : 0.0,
                                                              by_scan_ ? 1.0 : 0.0,
                                                              static_cast<double>(scan_.position()),
                                                              static_cast<double>(outer_steps_),
                                                              inner_tolerance_,
                                                              objective_.value_or(0),
                                                              objective_ ? 1.0 : 0.0,
                                                              out_cost_,
                                                              certificate_.primal,
                                                              certificate_.dual,
                                                              static_cast<double>(traversed_),
                                                              trial_found_[0],
                                                              trial_found_[1],
                                                              trial_traversed_[0],
                                                              trial_traversed_[1],
                                                              static_cast<double>(start_rows_)}));
}

void IndexedTask::restore(const SnapshotReader& from, const std::string& name) {
  active_.restore(from, name);
  members_.restore(from, name + "members");
  strangers_.resize(from.count<uint64_t>(name + "strangers"));
  from.take(name + "strangers", std::span<uint64_t>(strangers_));
  from.take(name + "pages", std::span<PageState>(pages_));
  distances_.resize(from.count<double>(name + "distances"));
  from.take(name + "distances", std::span<double>(distances_));
  looks_.assign(distances_.size(), std::vector<double>(w_.size()));
  for (size_t i = 0; i < looks_.size(); ++i) from.take(fmt::format("{}look {}", name, i), std::span<double>(looks_[i]));
  from.take(name + "w", std::span<double>(w_));
  from.take(name + "at", std::span<double>(at_));
  from.take(name + "anchor", std::span<double>(anchor_));
  from.take(name + "best", std::span<double>(best_));
  objectives_.resize(from.count<double>(name + "objectives"));
  from.take(name + "objectives", std::span<double>(objectives_));
  std::array<double, 21> numbers{};
  from.take(name + "numbers", std::span<double>(numbers));
  anchored_ = numbers[0] != 0;
  anchor_moved_ = numbers[1];
  turn_ = static_cast<uint64_t>(numbers[2]);
  turn_of_active_ = static_cast<size_t>(numbers[3]);
  checking_ = numbers[4] != 0;
  done_ = numbers[5] != 0;
  by_scan_ = numbers[6] != 0;
  scan_.set_position(static_cast<size_t>(numbers[7]));
  outer_steps_ = static_cast<int>(numbers[8]);
  inner_tolerance_ = numbers[9];
  objective_ = numbers[11] != 0 ? std::optional(numbers[10]) : std::nullopt;
  out_cost_ = numbers[12];
  certificate_ = {numbers[13], numbers[14]};
  traversed_ = static_cast<uint64_t>(numbers[15]);
  trial_found_ = {numbers[16], numbers[17]};
  trial_traversed_ = {numbers[18], numbers[19]};
  start_rows_ = static_cast<size_t>(numbers[20]);
}

}  // namespace linblock
