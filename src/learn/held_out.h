// What classifiers make of rows that they have not learned from: the held-out rows of a cross-validation.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "learn/evaluate.h"
#include "learn/metric.h"
#include "learn/prepare.h"

namespace linblock {

struct FoldResult {
  uint64_t rows = 0;
  uint64_t correct = 0;
  std::optional<double> auc = {};             // two classes, both of them in the fold
  std::optional<double> value = {};           // of the metric, where the fold has rows that it can be of
  std::vector<int32_t> learned_without = {};  // of the model, all of whose rows are held out
  double accuracy() const { return rows == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(rows); }
};

class HeldOutRows {
 public:
  HeldOutRows(const Store& store, const Classes& classes, uint32_t folds, uint64_t seed,
              Metric metric = Metric::accuracy);

  // What all rows of a store take.
  static uint64_t bytes_for(const Store& store, Metric metric = Metric::accuracy, size_t labels = 2) {
    return store.info().physical_rows() * (sizeof(Held) + (has_shares(metric, labels) ? sizeof(Shares) : 0));
  }
  // What folds() takes meanwhile, for this metric.
  static uint64_t bytes_to_compare(const Store& store, Metric metric) {
    return metric == Metric::auc ? store.info().physical_rows() * sizeof(std::pair<float, bool>) : 0;
  }

  // The rows of a block that are held out from these tasks, of one cost, in the order of their labels. Tasks of one
  // model may come in several calls.
  void score(const Block& block, const Problem& problem, std::span<const Task> tasks,
             std::span<const Solution> solutions, const Team& team);

  std::vector<FoldResult> folds() const;
  // Of all folds together.
  Evaluation pooled() const;
  // How far the decisions are from those of another, relative to their size.
  double distance(const HeldOutRows& other) const;

  void save(FieldWriter& to) const;
  void restore(FieldReader& from);

 private:
  static constexpr uint32_t kNowhere = UINT32_MAX;
  struct Held {
    uint32_t fold = kNowhere;
    int32_t label = 0;
    int32_t predicted = 0;
    float decision = 0;  // the largest of those that were made so far

    static void visit_fields(auto& self, auto&& field) {
      field("fold", self.fold);
      field("label", self.label);
      field("predicted", self.predicted);
      field("decision", self.decision);
    }
  };

  // Log-loss, more than two classes: the logarithm of what the row's own class has, and of what all of them have.
  struct Shares {
    float own = -std::numeric_limits<float>::infinity();
    float all = -std::numeric_limits<float>::infinity();

    static void visit_fields(auto& self, auto&& field) {
      field("own", self.own);
      field("all", self.all);
    }
    void add(double logarithm, bool is_own);
  };
  static bool has_shares(Metric metric, size_t labels) { return metric == Metric::log_loss && labels > 2; }

  void look_at_row(const Row& row, const Problem& problem, std::span<const Task> tasks,
                   std::span<const Solution> solutions, size_t number);
  double log_loss(size_t number) const;

  const Classes* classes_;
  uint32_t folds_;
  uint64_t seed_;
  std::vector<size_t> begin_;  // where a chunk's rows begin
  Metric metric_;
  std::vector<Held> rows_;
  std::vector<Shares> shares_;  // of the same rows, where they are wanted
};

// Mean and standard deviation over the folds; by chance a fold of few rows may have no value, and is left out.
struct Spread {
  double mean = 0;
  double deviation = 0;
};
Spread spread_of(const std::vector<double>& values);
// Of the metric. Throws ErrorKind::input if no fold has a value.
Spread spread_of(const std::vector<FoldResult>& folds, Metric metric);
Spread accuracy_of(const std::vector<FoldResult>& folds);

}  // namespace linblock
