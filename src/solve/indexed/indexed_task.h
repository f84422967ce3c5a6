// One task of indexed block descent (indexed_block.cc): its weights, its active rows, and its outer steps.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "solve/core/solver.h"
#include "solve/indexed/active_descent.h"
#include "solve/indexed/row_search.h"

namespace linblock {

class IndexedTask {
 public:
  struct Settings {
    size_t query = 1000;
    double tolerance = 0.01;
    ActiveDescent::DescentSettings descent = {};
  };
  // In memory, beside what its finder needs.
  static constexpr uint64_t kBytesPerWeight = 9 * sizeof(double);

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
  std::optional<std::string> take_note() { return finder_.take_note(); }

  const std::vector<double>& weights() const { return answered_ ? best_ : active_.weights(); }
  // Of the last convex problem, at the weights, once done; before that of the last step, if it looked at all rows.
  static constexpr Certificate kUnknown = {std::numeric_limits<double>::infinity(), 0};
  Certificate certificate() const { return certificate_; }
  struct Result {
    TruncatedResult truncated = {};
    uint64_t support_vectors = 0;
  };
  Result result() const;
  // Whether an outer step was taken since it was last asked.
  bool take_outer_step();
  const ActiveRows& active() const { return active_.rows(); }
  const std::vector<double>& anchor() const { return finder_.anchor(); }
  bool is_checking() const { return checking_; }
  uint64_t rows_looked_at() const { return finder_.rows_looked_at(); }
  // The objective at each outer step that was checked against all rows.
  const std::vector<double>& objectives() const { return objectives_; }

  void save(FieldWriter& to) const { visit_fields(*this, to); }
  void restore(FieldReader& from);

 private:
  static void visit_fields(auto& self, auto&& field) {
    field("active", self.active_);
    field("finder", self.finder_);
    field("start_rows", self.start_rows_);
    field("rows_at_last_forgetting", self.rows_at_last_forgetting_);
    field("best", std::span(self.best_));
    field("outer_steps", self.outer_steps_);
    field("inner_tolerance", self.inner_tolerance_);
    field("objective", self.objective_);
    field("anchor", self.anchor_);
    field("objectives", self.objectives_);
    field("certificate", self.certificate_);
    field("checking", self.checking_);
    field("done", self.done_);
  }
  // The convex problem that a truncated one starts from is in work.
  bool is_starting() const { return problem_.truncate && !finder_.is_anchored(); }
  double most_loss() const;  // that a row counts with
  void work_on_block(const RowSearch::SearchResult& result);
  // Of active rows that came back from files.
  void count_reading();

  bool classify_active();
  void forget_idle_rows();
  // Since idle ones were last forgotten.
  bool has_many_new_rows() const { return active().size() >= rows_at_last_forgetting_ + rows_at_last_forgetting_ / 4; }
  bool is_crowded() const { return active_.rows().bytes() > settings_.descent.bytes / 2; }
  void step_by_sample();
  void end_start();
  void step_with_check();
  void try_outer_step(double dual);
  double objective_at_best();
  void finish();

  const Problem& problem_;
  const RowCost costs_;
  PageCache& cache_;
  const Settings settings_;
  const uint64_t rows_;

  ActiveDescent active_;
  RowSearch finder_;
  size_t start_rows_ = 0;  // the first active ones, which may be met in a page or not
  size_t rows_at_last_forgetting_ = 0;

  std::vector<double> best_;  // of the last outer step that was taken, as they will be saved
  uint64_t outer_steps_ = 0;
  double inner_tolerance_;
  std::optional<double> objective_;
  Certificate anchor_;  // the convex objective at the last outer step that was taken, as objective_at() gives it
  std::vector<double> objectives_;
  Certificate certificate_ = kUnknown;
  bool checking_ = false;  // rows outside are all looked at, not only a sample
  bool outer_step_taken_ = false;
  bool done_ = false;
  bool answered_ = false;  // done, or concluded
};

}  // namespace linblock
