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
  std::vector<FoldResult> folds;
  Evaluation pooled;  // every row once, as it was predicted when held out; AUC is the mean of the folds'
  Spread accuracy() const { return accuracy_of(folds); }
};

// A row's fold is a function of its id and the seed.
CrossValidation cross_validate(const TrainOptions& options, uint32_t folds, const Context& context,
                               const TrainObserver& observer);

// One to learn from and one to test on, at least.
inline constexpr uint32_t kLeastFolds = 2;
inline constexpr uint32_t kMostFolds = UINT16_MAX;

struct FoldOptions {
  uint32_t folds = 5;

  static constexpr auto options() {
    return std::tuple{option("folds", &FoldOptions::folds, "V", "Number of parts, each held out once",
                             {.from = kLeastFolds, .to = kMostFolds})};
  }
};
// The store, for so many folds: throws before any work for a number that cannot be.
Store open_store(const TrainOptions& options, uint32_t folds, size_t threads, const TrainObserver& observer,
                 Source& source);

// A task for each fold and class, at one cost; a fold's classes stand together.
std::vector<Task> fold_tasks(const Classes& classes, double cost, uint32_t folds, uint64_t seed);

// The mean over those folds that have one.
std::optional<double> mean_auc(const std::vector<FoldResult>& folds);

}  // namespace linblock
