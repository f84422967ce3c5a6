// What is minimised: a store, one or more binary tasks, a loss, a bias.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "objective/loss.h"
#include "store/store.h"

namespace linblock {

// ONE binary classifier to fit: a label against all others.
struct Task {
  int32_t positive = 1;
  double cost = 1;
};

struct Problem {
  const Store* store = nullptr;
  std::vector<Task> tasks = {};
  AnyLoss loss = SquaredHinge{};
  double bias = -1;                              // the value of a constant feature; below 0: none
  std::map<int32_t, double> class_weights = {};  // by label; 1 where a label is not listed

  bool has_bias() const { return bias >= 0; }
  // Feature numbers, and one more for the bias.
  size_t weights() const { return store->info().feature_numbers() + (has_bias() ? 1 : 0); }
};

// What a task makes of a row: y, and the cost of its loss.
class RowCost {
 public:
  RowCost(const Problem& problem, const Task& task)
      : positive_(task.positive), cost_(task.cost), weights_(&problem.class_weights) {}

  double sign(const Row& row) const { return row.label == positive_ ? 1 : -1; }
  double cost(const Row& row) const {
    const double weight = cost_ * static_cast<double>(row.weight);
    if (weights_->empty()) return weight;
    const auto found = weights_->find(row.label);
    return found == weights_->end() ? weight : weight * found->second;
  }

 private:
  int32_t positive_;
  double cost_;
  const std::map<int32_t, double>* weights_;
};

}  // namespace linblock
