// The decision threshold of two classes: a row is of the first class if its decision value is above it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "learn/metric.h"

namespace linblock {

// One that was chosen on held-out rows.
struct ChosenThreshold {
  Metric metric = Metric::accuracy;
  double threshold = 0;
  double value = 0;    // of the metric, on those rows
  double at_zero = 0;  // likewise, with the threshold 0
  uint64_t rows = 0;
};

// What choose_threshold takes for each row, beside its arguments.
inline constexpr uint64_t kBytesPerThresholdRow = sizeof(double) + 2 * sizeof(std::pair<double, bool>);

// The best of all thresholds by a metric that follows from counts. Between two decisions that follow each other all
// thresholds give the same labels: 0 stands for them if it is there, else their middle, and beyond all decisions twice
// the outermost one. Of equally good ones the one nearest 0. `first`: rows of the class that a decision above the
// threshold speaks for; `first_is_positive`: F1 is of that class. Decisions that are not finite are left out. Throws
// ErrorKind::input if there are not rows of both classes.
ChosenThreshold choose_threshold(Metric metric, std::span<const double> decisions, std::span<const uint8_t> first,
                                 bool first_is_positive);

}  // namespace linblock
