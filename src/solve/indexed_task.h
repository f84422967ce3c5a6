// One task of indexed block descent (indexed_block.cc): its weights, its active rows, and what it knows of each page.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "objective/row_set.h"
#include "solve/active_descent.h"
#include "solve/page_notes.h"
#include "solve/page_search.h"
#include "solve/solver.h"

namespace linblock {

class IndexedTask {
 public:
  struct Settings {
    size_t query = 1000;
    double tolerance = 0.01;
    ActiveDescent::Settings descent = {};
  };
  // In memory.
  static constexpr uint64_t kBytesPerWeight = 9 * sizeof(double);
  static uint64_t bytes_for_notes(uint64_t rows, uint64_t pages, size_t weights) {
    return RowSet::bytes(rows) + 2 * pages * sizeof(uint64_t) + PageNotes::bytes(pages, weights);
  }

  // `search`: another order in which pages are looked at; as a rule the forest's.
  IndexedTask(const Problem& problem, const Task& task, const MetricForest& forest, PageCache& cache,
              const Settings& settings, std::unique_ptr<PageSearch> search = nullptr);

  // The first active rows, of a chunk of the row store; and when they are all there.
  void add_to_start(const Chunk& chunk, size_t row, double alpha);
  void start();

  // A query and the block that it makes, and what is due after it.
  void step();
  bool done() const { return done_; }
  // No more steps: what there is becomes the answer, and is certified.
  void conclude();
  // The index was found to be no better than reading page after page: what was measured, once.
  std::optional<std::string> take_note() { return std::exchange(note_, std::nullopt); }

  const std::vector<double>& weights() const { return answered_ ? best_ : active_.weights(); }
  // Of the last convex problem, at the weights, once done; before that as far as is known.
  Certificate certificate() const { return certificate_; }
  struct Result {
    TruncatedResult truncated = {};
    uint64_t support_vectors = 0;
  };
  Result result() const;
  // Whether an outer step was taken since it was last asked.
  bool take_outer_step();
  const ActiveRows& active() const { return active_.rows(); }
  const std::vector<double>& anchor() const { return anchor_; }
  bool is_checking() const { return checking_; }
  uint64_t rows_looked_at() const { return traversed_; }
  // The objective at each outer step that was checked against all rows.
  const std::vector<double>& objectives() const { return objectives_; }

  void save(SnapshotWriter& to, const std::string& name) const;
  void restore(const SnapshotReader& from, const std::string& name);

 private:
  struct Found {
    size_t rows = 0;
    uint64_t traversed = 0;
    double losses = 0;  // of rows that were found and not taken
    bool all = false;   // no page is left
  };
  // Some rows may be outliers.
  bool truncated() const { return anchored_ && problem_.truncate.has_value(); }
  double most_loss() const;  // that a row counts with
  double margin(const Row& row, std::span<const double> weights) const { return active_.margin(row, weights); }
  double norm_of(const Row& row) const { return std::sqrt(squared_norm(row, problem_.bias)); }

  bool can_be_left(uint32_t page, const MetricForest::Child& child, double score);
  // Looks at pages for up to `most` rows outside the active ones that violate where the notes are; they become active.
  // 0: at all pages that are due, and none does.
  Found query(size_t most, bool thorough, PageSearch& search, size_t most_pages = std::numeric_limits<size_t>::max());
  size_t look_at(uint32_t page, size_t most, Found& found);
  // At due pages among those that were looked at last, which are likely still in the cache; which ones, increasing.
  std::vector<uint32_t> look_again(size_t most, Found& found);
  Found next_rows();
  void judge_index(const Found& found, bool by_forest);
  void work_on_block(const Found& found);
  // Of active rows that came back from files.
  void count_reading();

  void set_anchor(const std::vector<double>& weights);
  bool classify_active();
  void forget_idle_rows();
  // Since idle ones were last forgotten.
  bool has_many_new_rows() const { return active().size() >= rows_at_last_forgetting_ + rows_at_last_forgetting_ / 4; }
  bool is_crowded() const { return active_.rows().bytes() > settings_.descent.bytes / 2; }
  void step_by_sample();
  void end_start();
  void step_with_check();
  void try_outer_step(double primal, double dual);
  void finish();

  const Problem& problem_;
  const RowCost costs_;
  const HeldOut held_out_;
  const MetricForest& forest_;
  PageCache& cache_;
  const Settings settings_;
  const double outlier_margin_;
  const uint64_t rows_;
  uint64_t positive_bit_ = 0;
  std::unique_ptr<PageSearch> search_;
  ScanSearch scan_;
  std::optional<std::string> note_;

  ActiveDescent active_;
  std::vector<uint64_t> page_begin_;
  RowSet members_;                   // active rows, by place in the pages
  std::vector<uint64_t> strangers_;  // ids of active rows that were not met in a page yet, increasing
  PageNotes notes_;
  // When each page was last looked at, counted in looks; 0: never.
  std::vector<uint64_t> last_look_;
  uint64_t looks_ = 0;
  uint64_t page_bytes_ = 0;  // in memory, of the largest that was looked at
  size_t start_rows_ = 0;    // the first active ones, which may be met in a page or not
  size_t rows_at_last_forgetting_ = 0;

  std::vector<double> anchor_;  // where outliers are outliers
  std::vector<double> best_;    // of the last outer step that was taken, as they will be saved
  uint64_t turn_ = 0;
  uint64_t outer_steps_ = 0;
  double inner_tolerance_;
  std::optional<double> objective_;
  double out_cost_ = 0;  // of all outliers at the last outer step that was taken
  std::vector<double> objectives_;
  Certificate certificate_ = {};
  uint64_t traversed_ = 0;
  // Of the first queries: rows found and looked at, by the index and at random.
  std::array<double, 2> trial_found_ = {};
  std::array<double, 2> trial_traversed_ = {};
  RowBuffer buffer_;
  bool bit_is_shared_ = false;  // by the label and others
  bool by_scan_ = false;        // the index is no help
  bool anchored_ = false;       // until then no row is an outlier
  bool checking_ = false;       // rows outside are all looked at, not only a sample
  bool outer_step_taken_ = false;
  bool done_ = false;
  bool answered_ = false;  // done, or concluded
};

}  // namespace linblock
