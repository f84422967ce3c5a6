// Where a task of indexed block descent has its active rows from: pages of the index are looked at for rows that
// violate and are no outliers. They are taken to the active rows, and given back when they are idle.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "objective/row_set.h"
#include "solve/indexed/active_descent.h"
#include "solve/indexed/page_bounds.h"
#include "solve/indexed/page_search.h"

namespace linblock {

class RowSearch {
 public:
  struct SearchResult {
    size_t rows = 0;
    uint64_t traversed = 0;
    LossSum losses = {};  // of rows that were found and not taken
    bool all = false;     // no page is left
  };
  // In memory.
  static uint64_t bytes(uint64_t rows, uint64_t pages, size_t weights) {
    return RowSet::bytes(rows) + 2 * pages * sizeof(uint64_t) + PageBounds::bytes(pages, weights);
  }

  // `search`: another order in which pages are looked at; none: the forest's, which is on trial in the first turns.
  RowSearch(const Problem& problem, const Task& task, const RowCost& costs, const MetricForest& forest,
            PageCache& cache, ActiveDescent& active, uint64_t seed, std::unique_ptr<PageSearch> search);

  // Takes a row of the row store, whose place in the pages is not known; and when they are all there.
  void take_stranger(const Chunk& chunk, size_t row);
  void end_strangers();

  // Where outliers are outliers. Before it first moves no row is one.
  const std::vector<double>& anchor() const { return anchor_; }
  void move_anchor(const std::vector<double>& weights);
  bool is_anchored() const { return anchored_; }
  bool is_outlier(const Row& row) const { return anchored_ && active_.margin(row, anchor_) < outlier_margin_; }

  // Where margins are looked at.
  const std::vector<double>& at() const { return page_bounds_.at(); }
  void move_to(const std::vector<double>& weights) { page_bounds_.move_to(weights); }

  // Random choices are others in each turn.
  void begin_turn() { ++turn_; }
  bool is_on_trial() const { return turn_ <= kTrialTurns && page_bounds_.pages() >= kPagesToJudge; }
  // Takes up to `most` rows, from pages that promise some, at the active rows' weights.
  SearchResult sample(size_t most);
  // Takes up to `most` rows, from all pages that can have some. 0: looks at all of them, and takes none.
  SearchResult check(size_t most) { return query(most, true, by_scan_ ? scan_ : *search_); }
  // Active rows with a 0 in `keep` go back to their pages.
  void give_back(const std::vector<uint8_t>& keep);

  // Of rows outside the active ones, as of the last looks at their pages.
  uint64_t outliers() const { return page_bounds_.outliers(); }
  double out_cost() const { return page_bounds_.out_cost(); }
  uint64_t rows_looked_at() const { return traversed_; }
  // The index was found to be no better than reading page after page: what was measured, once.
  std::optional<std::string> take_note() { return std::exchange(note_, std::nullopt); }

  void save(FieldWriter& to) const;
  void restore(FieldReader& from);

 private:
  // How the index is judged.
  static constexpr uint64_t kTrialTurns = 4;   // every other one looks at pages drawn at random
  static constexpr size_t kPagesToJudge = 32;  // with fewer, there is nothing to choose from

  static void visit_fields(auto& self, auto&& field) {
    field("page_bounds", self.page_bounds_);
    field("members", self.members_);
    field("strangers", self.unplaced_);
    field("last_looks", std::span(self.last_look_));
    field("anchor", std::span(self.anchor_));
    field("page_bytes", self.page_bytes_);
    field("looks", self.anchors_);
    field("turn", self.turn_);
    field("traversed", self.traversed_);
    field("trial_found", self.trial_found_);
    field("trial_traversed", self.trial_traversed_);
    field("by_scan", self.by_scan_);
    field("anchored", self.anchored_);
  }

  double norm_of(const Row& row) const { return std::sqrt(squared_norm(row, problem_.bias)); }
  bool can_be_left(uint32_t page, const MetricForest::Child& child, double score);
  // Looks at pages for up to `most` rows outside the active ones that violate where the notes are; they become active.
  SearchResult query(size_t most, bool thorough, PageSearch& search,
                     size_t most_pages = std::numeric_limits<size_t>::max());
  size_t scan_page(uint32_t page, size_t most, SearchResult& result);
  // At due pages among those that were looked at last, which are likely still in the cache; which ones, increasing.
  std::vector<uint32_t> rescan(size_t most, SearchResult& result);
  void judge_index(const SearchResult& result, bool by_forest);

  const Problem& problem_;
  const RowCost& costs_;
  const HeldOut held_out_;
  PageCache& cache_;
  ActiveDescent& active_;
  const uint64_t seed_;
  const double flat_from_;  // rows with a margin from here on have no part in the answer
  const double outlier_margin_;
  uint64_t positive_bit_ = 0;
  std::unique_ptr<PageSearch> search_;
  ScanSearch scan_;
  std::optional<std::string> note_;

  std::vector<uint64_t> page_begin_;
  RowSet members_;                  // active rows, by place in the pages
  std::vector<uint64_t> unplaced_;  // ids of active rows that were not met in a page yet, increasing
  PageBounds page_bounds_;
  std::vector<double> anchor_;
  // When each page was last looked at, counted in looks; 0: never.
  std::vector<uint64_t> last_look_;
  uint64_t anchors_ = 0;
  uint64_t page_bytes_ = 0;  // in memory, of the largest that was looked at
  uint64_t turn_ = 0;
  uint64_t traversed_ = 0;
  // Of the first queries: rows found and looked at, at random and by the index.
  std::array<double, 2> trial_found_ = {};
  std::array<double, 2> trial_traversed_ = {};
  RowBuffer buffer_;
  bool bit_is_shared_ = false;  // by the label and others
  bool by_scan_ = false;        // the index is no help
  bool anchored_ = false;
};

}  // namespace linblock
