// From text or a store to a saved model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "learn/model.h"
#include "learn/model_columns.h"
#include "learn/prepare.h"
#include "learn/threshold.h"

namespace linblock {

struct TestResult {
  uint64_t rows = 0;
  uint64_t correct = 0;
  double baseline = 0;  // the accuracy of always answering the most frequent label
  double accuracy() const { return rows == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(rows); }
};

struct TrainReport : Source {
  size_t groups = 1;     // of tasks that were trained together, one after another
  Summary summary;       // of all groups
  Model model;           // without its weights, where it has several columns
  ModelColumns columns;  // those weights
  std::optional<TestResult> test;
  std::optional<ChosenThreshold> threshold;
};

// Refuses what does not go together with truncated losses.
void check_truncation(const TrainOptions& options, bool keep_state);

// Nothing is trained with `dry_run`: the plan is made and shown. `start`: what is begun with, one a class; none: zeros.
TrainReport train(const TrainOptions& options, const Context& context, const TrainObserver& observer, bool dry_run,
                  std::vector<Solution> start = {});

// What MODEL.json says.
std::string describe_model(const TrainOptions& options, const TrainReport& report);
// The model and MODEL.json. Returns what save_model does.
uint64_t save_trained(const std::string& path, const TrainOptions& options, TrainReport& report, const Team& team);

}  // namespace linblock
