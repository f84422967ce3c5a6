#include "solve/indexed/row_search.h"

#include <fmt/format.h>

#include <algorithm>

#include "objective/double_weights.h"
#include "solve/indexed/sparse_loss.h"

namespace linblock {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kTrialPages = 8;  // drawn at random in a turn
constexpr double kBetter = 1.1;    // as many finds a row: the least that an index must be good for

}  // namespace

RowSearch::RowSearch(const Problem& problem, const Task& task, const RowCost& costs, const MetricForest& forest,
                     PageCache& cache, ActiveDescent& active, uint64_t seed, std::unique_ptr<PageSearch> search)
    : problem_(problem),
      costs_(costs),
      held_out_(task.held_out),
      cache_(cache),
      active_(active),
      seed_(seed),
      flat_from_(flat_from(problem.loss)),
      outlier_margin_(problem.truncate ? outlier_margin(problem.loss, *problem.truncate) : -kInfinity),
      positive_bit_(label_bit(task.positive)),
      search_(std::move(search)),
      scan_(forest.pages().chunks().size()),
      page_begin_(row_begins(forest.pages())),
      members_(page_begin_.back()),
      page_bounds_(forest.pages().chunks().size(), problem.weights()),
      anchor_(problem.weights()),
      last_look_(page_bounds_.pages()) {
  for (const auto& [label, rows] : problem.store->info().labels)
    if (label != task.positive && label_bit(label) == positive_bit_) bit_is_shared_ = true;
  if (!search_) {
    search_ = std::make_unique<ForestSearch>(forest, cache, mix64(seed, 0x696e646578));
  } else {
    turn_ = kTrialTurns;  // whatever it is, it is not judged
  }
}

void RowSearch::take_stranger(const Chunk& chunk, size_t row) {
  active_.rows().add({}, chunk.encoded(row, buffer_));
  unplaced_.push_back(chunk.id(row));
}

void RowSearch::end_strangers() { std::sort(unplaced_.begin(), unplaced_.end()); }

void RowSearch::move_anchor(const std::vector<double>& weights) {
  page_bounds_.move_anchor(distance(weights, anchor_));
  anchor_ = weights;
  anchored_ = true;
}

bool RowSearch::can_be_left(uint32_t page, const MetricForest::Child& child, double score) {
  const std::vector<double>& at = page_bounds_.at();
  double squares = squared(at);
  if (problem_.has_bias()) squares -= at.back() * at.back();
  const double spread = std::sqrt(squares) * double{child.radius};
  double slack = kInfinity;
  if ((child.label_bits & positive_bit_) != 0) slack = std::min(slack, score - spread - flat_from_);
  if ((child.label_bits & ~positive_bit_) != 0 || bit_is_shared_) slack = std::min(slack, -score - spread - flat_from_);
  slack -= kMarginRounding * (1 + std::abs(score));
  if (slack <= 0) return false;
  const double bias2 = problem_.has_bias() ? problem_.bias * problem_.bias : 0;
  const double longest = std::sqrt(double{child.largest_norm} * double{child.largest_norm} + bias2);
  page_bounds_.put(page, {.safe_radius = longest > 0 ? slack / longest * (1 - kMarginRounding) : kInfinity,
                          .out_until = kInfinity,
                          .far = slack >= kFar ? uint16_t{1} : uint16_t{0}});
  return true;
}

size_t RowSearch::scan_page(uint32_t number, size_t most, SearchResult& result) {
  const std::shared_ptr<const Chunk> chunk = cache_.page(number);
  page_bytes_ = std::max<uint64_t>(page_bytes_, chunk->memory_bytes());
  last_look_[number] = ++anchors_;
  const std::vector<double>& at = page_bounds_.at();
  const bool same = at == anchor_;
  const double w_norm = std::sqrt(squared(at));
  const uint64_t begin = page_begin_[number];
  PageBound bound{.safe_radius = kInfinity, .out_until = kInfinity, .far = 1};
  size_t taken = 0;
  bool left_over = false;
  for (size_t i = 0; i < chunk->rows(); ++i) {
    if (members_.has(begin + i)) continue;
    const uint64_t id = chunk->id(i);
    if (held_out_.holds(id)) continue;
    if (!unplaced_.empty() && std::binary_search(unplaced_.begin(), unplaced_.end(), id)) {
      members_.set(begin + i);
      continue;
    }
    const Row row = chunk->row(i, buffer_);
    const double cost = costs_.cost_of_learned(row);
    if (cost == 0) continue;
    ++result.traversed;
    const double norm = norm_of(row);
    const double rounding = kMarginRounding * (1 + w_norm * norm);
    double margin_here = 0;
    if (anchored_) {
      const double at_anchor = active_.margin(row, anchor_);
      if (at_anchor < outlier_margin_) {
        const double slack = outlier_margin_ - at_anchor - rounding;
        bound.out_until = std::min(bound.out_until, norm > 0 ? page_bounds_.anchor_moved() + slack / norm : kInfinity);
        bound.out_cost += cost;
        ++bound.out_rows;
        continue;
      }
      margin_here = same ? at_anchor : active_.margin(row, at);
    } else {
      margin_here = active_.margin(row, at);
    }
    if (margin_here < flat_from_) {
      if (taken < most) {
        active_.rows().add({number, static_cast<uint32_t>(i)}, chunk->encoded(i, buffer_));
        members_.set(begin + i);
        ++taken;
      } else {
        left_over = true;
        visit_sparse(problem_.loss, [&](const auto& loss) {
          result.losses.add(loss, cost, margin_here, w_norm * norm, row.index.size());
          return 0;
        });
      }
      continue;
    }
    if (margin_here < flat_from_ + kFar) bound.far = 0;
    bound.safe_radius =
        std::min(bound.safe_radius, norm > 0 ? (margin_here - flat_from_ - rounding) / norm : kInfinity);
  }
  if (left_over) bound.safe_radius = -1;
  if (left_over || taken > 0) bound.far = 0;
  page_bounds_.put(number, bound);
  result.rows += taken;
  return taken;
}

std::vector<uint32_t> RowSearch::rescan(size_t most, SearchResult& result) {
  const uint64_t held = std::min<uint64_t>(anchors_, cache_.capacity() / std::max<uint64_t>(1, page_bytes_));
  std::vector<uint32_t> pages;
  for (uint32_t page = 0; page < last_look_.size(); ++page)
    if (last_look_[page] > anchors_ - held) pages.push_back(page);
  std::sort(pages.begin(), pages.end(), [&](uint32_t a, uint32_t b) { return last_look_[a] > last_look_[b]; });
  std::erase_if(pages, [&](uint32_t page) {
    if (!page_bounds_.is_due(page, true) || (most > 0 && result.rows >= most)) return true;
    scan_page(page, most - std::min(most, result.rows), result);
    return false;
  });
  std::sort(pages.begin(), pages.end());
  return pages;
}

RowSearch::SearchResult RowSearch::query(size_t most, bool thorough, PageSearch& search, size_t most_pages) {
  SearchResult result;
  const std::vector<uint32_t> seen = thorough ? rescan(most, result) : std::vector<uint32_t>();
  search.begin({.weights = page_bounds_.at(),
                .bias = problem_.bias,
                .turn = turn_,
                .thorough = thorough,
                .is_due =
                    [&](uint32_t page) {
                      return page_bounds_.is_due(page, thorough) && !std::binary_search(seen.begin(), seen.end(), page);
                    },
                .can_be_left = [&](uint32_t page, const MetricForest::Child& child,
                                   double score) { return can_be_left(page, child, score); }});
  for (size_t pages = 0; pages < most_pages && (most == 0 || result.rows < most); ++pages) {
    // Ends with an exception where the run can be resumed. Elsewhere it goes on: a check of some rows is none.
    active_.give_up();
    const std::optional<uint32_t> page = search.next();
    if (!page) {
      result.all = true;
      break;
    }
    search.saw(scan_page(*page, most - std::min(most, result.rows), result));
  }
  traversed_ += result.traversed;
  return result;
}

RowSearch::SearchResult RowSearch::sample(size_t most) {
  page_bounds_.move_to(active_.weights());
  const bool on_trial = is_on_trial();
  if (on_trial && turn_ % 2 == 0) {
    RandomSearch random(page_bounds_.pages(), mix64(seed_, turn_));
    const SearchResult result = query(most, false, random, kTrialPages);
    judge_index(result, false);
    return result;
  }
  const SearchResult result = query(most, false, by_scan_ ? scan_ : *search_);
  if (on_trial) judge_index(result, true);
  return result;
}

void RowSearch::judge_index(const SearchResult& result, bool by_forest) {
  trial_found_[by_forest ? 1 : 0] += static_cast<double>(result.rows);
  trial_traversed_[by_forest ? 1 : 0] += static_cast<double>(result.traversed);
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

// What a page knows of its rows is made true for those that come back too.
void RowSearch::give_back(const std::vector<uint8_t>& keep) {
  const ActiveRows& rows = active_.rows();
  const std::vector<double>& w = active_.weights();
  const double w_norm = std::sqrt(squared(w));
  const double anchor_norm = std::sqrt(squared(anchor_));
  page_bounds_.begin_returns(w);
  active_.for_each([&](size_t i, const Row& row) {
    if (keep[i] != 0) return;
    const RowCache::Origin origin = rows.origin(i);
    members_.clear(page_begin_[origin.chunk] + origin.row);
    const double norm = norm_of(row);
    if (rows.is_out(i))
      page_bounds_.give_back_outlier(
          origin.chunk, outlier_margin_ - active_.margin(row, anchor_) - kMarginRounding * (1 + anchor_norm * norm),
          norm, costs_.cost_of_learned(row));
    else
      page_bounds_.give_back(origin.chunk, active_.margin(row, w) - flat_from_ - kMarginRounding * (1 + w_norm * norm),
                             norm);
  });
  active_.keep(keep);
}

void RowSearch::save(FieldWriter& to) const {
  visit_fields(*this, to);
  to("scanned", scan_.position());
}

void RowSearch::restore(FieldReader& from) {
  visit_fields(*this, from);
  const auto scanned = from.take<size_t>("scanned");
  if (scanned >= std::max<size_t>(1, page_bounds_.pages())) from.refuse_value("scanned");
  scan_.set_position(scanned);
}

}  // namespace linblock
