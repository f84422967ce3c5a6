// What models are compared by: in cross-validation, in the choice of a cost, and in that of a decision threshold.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "learn/prepare.h"

namespace linblock {

constexpr Metric last_of(Metric) { return Metric::log_loss; }
std::string_view name_of(Metric metric);
// As a sentence has it: "balanced accuracy", "F1".
std::string_view words_of(Metric metric);
constexpr bool smaller_is_better(Metric metric) { return metric == Metric::log_loss; }
// Larger is better, whatever the metric.
constexpr double goodness(Metric metric, double value) { return smaller_is_better(metric) ? -value : value; }

// In log-loss, so that one sure mistake does not make it infinite.
inline constexpr double kLeastProbability = 1e-15;

// Throws ErrorKind::usage if models with this loss have no such metric, before anything is read.
void check_metric(Metric metric, const AnyLoss& loss);
// Throws ErrorKind::usage if these classes have none.
void check_metric(Metric metric, const Classes& classes);

struct ClassQuality {
  uint64_t rows = 0;       // of this class
  uint64_t predicted = 0;  // as this class
  uint64_t correct = 0;
  double precision() const {
    return predicted == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(predicted);
  }
  double recall() const { return rows == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(rows); }
  double f1() const {
    return rows + predicted == 0 ? 0 : 2 * static_cast<double>(correct) / static_cast<double>(rows + predicted);
  }
};

// Labels and predictions, counted.
struct ClassCounts {
  uint64_t rows = 0;
  uint64_t correct = 0;
  std::map<int32_t, ClassQuality> classes = {};

  void add(int32_t label, int32_t predicted);
  double accuracy() const { return rows == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(rows); }
  // The mean of all classes that occur, as a row's label or as a prediction.
  double macro_f1() const;
  // The mean recall of the classes that rows have.
  double balanced_accuracy() const;
  // Always answering the most frequent label, and how often that is right.
  int32_t most_frequent() const;
  double baseline() const;

  // One of the metrics that follow from counts; nothing if there are no rows that it could be of. `positive`: the class
  // that F1 is of; none: the mean of all classes.
  std::optional<double> value(Metric metric, std::optional<int32_t> positive) const;
};

// The class that F1 is of: the one that --positive names, or the larger of two labels. None: there are more.
std::optional<int32_t> positive_label(const Classes& classes);

// What always answering the most frequent label has, in accuracy, balanced accuracy and F1; a random order, in AUC; the
// frequencies of the labels as probabilities, in log-loss. `rows`: by label of the model.
double baseline_of(Metric metric, const std::map<int32_t, uint64_t>& rows, std::optional<int32_t> positive);

// The chance that a positive row has a higher score than a negative one, ties counting half; nothing where there are
// only rows of one kind. Sorts the scores.
std::optional<double> area_under_curve(std::vector<std::pair<float, bool>>& scores);

}  // namespace linblock
