// Cross-validation: a model for each fold, all of them trained in the same reading of the data, and what they make of
// the rows that each has not learned from.
#pragma once

#include <vector>

#include "learn/held_out.h"
#include "learn/prepare.h"

namespace linblock {

struct CrossValidation : Source {
  size_t groups = 1;
  Summary summary;  // of all folds and classes
  Metric metric = Metric::accuracy;
  std::vector<FoldResult> folds;
  Spread value;         // of the metric, over the folds
  double baseline = 0;  // of the metric: baseline_of
  Evaluation pooled;    // every row once, as it was predicted when held out; AUC is the mean of the folds'
  Spread accuracy() const { return accuracy_of(folds); }
};

// One to learn from and one to test on, at least.
inline constexpr uint32_t kLeastFolds = 2;
inline constexpr uint32_t kMostFolds = UINT16_MAX;

struct FoldOptions {
  uint32_t folds = 5;
  Metric metric = Metric::accuracy;

  static constexpr auto options() {
    return std::tuple{option("folds", &FoldOptions::folds, "V", "Number of parts, each held out once",
                             {.from = kLeastFolds, .to = kMostFolds}),
                      option("metric", &FoldOptions::metric, "NAME",
                             "Compare models by accuracy, balanced-accuracy, f1, auc or log-loss")};
  }
};

// A row's fold is a function of its id and the seed.
CrossValidation cross_validate(const TrainOptions& options, const FoldOptions& folds, const Context& context,
                               const TrainObserver& observer);

// The store, for these folds: throws before any work for a number or a metric that cannot be.
Store open_store(const TrainOptions& options, const FoldOptions& folds, size_t threads, const TrainObserver& observer,
                 Source& source);

// A task for each fold and class, at one cost; a fold's classes stand together.
std::vector<Task> fold_tasks(const Classes& classes, double cost, uint32_t folds, uint64_t seed);

// The mean over those folds that have one.
std::optional<double> mean_auc(const std::vector<FoldResult>& folds);

}  // namespace linblock
