// How many rows of some test data are told apart rightly by weights that are still being trained: by the store's
// feature numbers, so that no second copy of the weights is needed, and a group of tasks at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "learn/prepare.h"
#include "learn/train.h"

namespace linblock {

class TestRows {
 public:
  TestRows(const TrainOptions& options, const Store& store, const Classes& classes, const Context& context);

  // What reading the rows takes meanwhile.
  uint64_t reserved_bytes() const;

  bool wanted() const { return !options_.test.empty(); }
  // Of weights for all tasks.
  TestResult test(const std::vector<std::span<const float>>& weights) const;
  // Of the tasks from number `first` on. After the last of them the result is complete.
  void add(const std::vector<std::span<const float>>& weights, size_t first);
  TestResult result() const;

  static void visit_fields(auto& self, auto&& field) { field("rows", self.best_); }

 private:
  void for_each(const std::vector<std::span<const float>>& weights,
                const std::function<void(int32_t label, std::span<const double> decisions)>& visit) const;

  const TrainOptions& options_;
  const Store& store_;
  const Classes& classes_;
  uint64_t reading_bytes_;
  const std::atomic<bool>* stop_;
  // Of each row, where tasks come in groups: the label, and the largest decision so far and whose it is.
  struct Best {
    int32_t label = 0;
    int32_t predicted = 0;
    double decision = 0;

    static void visit_fields(auto& self, auto&& field) {
      field("label", self.label);
      field("predicted", self.predicted);
      field("decision", self.decision);
    }
  };
  std::vector<Best> best_;
};

}  // namespace linblock
