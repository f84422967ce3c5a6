// What is minimized: a store, one or more tasks, a loss, a bias.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/random.h"
#include "objective/losses/losses.h"
#include "objective/row_set.h"
#include "store/core/store.h"

namespace linblock {

// Which rows a task does not learn from: those whose hash falls into parts `first` to `last` of so many, a function of
// the row's id alone, so that a fold is the same wherever a row is met; and those of a set that a solver keeps.
struct HeldOut {
  uint64_t seed = 0;
  uint32_t parts = 0;  // 0: no row is held out
  uint32_t first = 0;
  uint32_t last = 0;  // not one of them
  // Outliers, while a convex problem without them is solved. They are not a fold: nobody is tested on them.
  const RowSet* outliers = nullptr;

  bool holds(uint64_t row_id) const {
    if (outliers != nullptr && outliers->has(row_id)) return true;
    if (parts == 0) return false;
    const uint32_t part = part_of(seed, row_id, parts);
    return part >= first && part < last;
  }
  // Of all rows, about, and whatever the set holds.
  double learned_share() const { return parts == 0 ? 1 : 1 - static_cast<double>(last - first) / parts; }
  static uint32_t part_of(uint64_t seed, uint64_t row_id, uint32_t parts) {
    // Salted, so that folds have nothing to do with the buckets that rows were packed into.
    return static_cast<uint32_t>(scale_to(mix64(seed ^ 0x666f6c6473ULL, row_id), parts));
  }
};

// ONE classifier to fit: a label against all others; or, by the method of Crammer and Singer, all labels at once, and
// then `positive` has no meaning.
struct Task {
  int32_t positive = 1;
  double cost = 1;
  HeldOut held_out = {};
};

struct Problem {
  const Store* store = nullptr;
  std::vector<Task> tasks = {};
  AnyLoss loss = SquaredHinge{};
  double bias = -1;                              // the value of a constant feature; below 0: none
  bool free_bias = false;                        // the weight of that feature is not penalized
  std::map<int32_t, double> class_weights = {};  // by label; 1 where a label is not listed
  std::optional<double> truncate = {};           // s: no row's loss counts as more than 1 + s

  bool has_bias() const { return bias >= 0; }
  // Feature numbers, and one more for the bias.
  size_t weights() const { return store->info().feature_numbers() + (has_bias() ? 1 : 0); }
  // Of a task that tells all of them apart at once: the store's labels, in increasing order.
  size_t classes() const { return store->info().labels.size(); }
};

// Numbers of the classes.
class ClassNumbers {
 public:
  explicit ClassNumbers(const StoreInfo& info) {
    for (const auto& [label, rows] : info.labels) labels_.push_back(label);
  }
  // Of a label that the store has.
  size_t operator[](int32_t label) const {
    return static_cast<size_t>(std::lower_bound(labels_.begin(), labels_.end(), label) - labels_.begin());
  }

 private:
  std::vector<int32_t> labels_;
};

// What a task makes of a row: y, and the cost of its loss.
class RowCost {
 public:
  RowCost(const Problem& problem, const Task& task)
      : positive_(task.positive), cost_(task.cost), held_out_(task.held_out), weights_(&problem.class_weights) {}

  double sign(const Row& row) const { return row.label == positive_ ? 1 : -1; }
  // 0: the row is as good as absent.
  double cost(const Row& row) const { return held_out_.holds(row.id) ? 0 : cost_of_learned(row); }
  // Of a row that is known not to be held out.
  double cost_of_learned(const Row& row) const {
    const double weight = cost_ * static_cast<double>(row.weight);
    if (weights_->empty()) return weight;
    const auto multiplier = weights_->find(row.label);
    return multiplier == weights_->end() ? weight : weight * multiplier->second;
  }

 private:
  int32_t positive_;
  double cost_;
  HeldOut held_out_;
  const std::map<int32_t, double>* weights_;
};

}  // namespace linblock
