// How good predictions were, for people and for programs.
#pragma once

#include "base/json.h"
#include "cli/show/terminal.h"
#include "learn/evaluate.h"

namespace linblock::cli {

Json evaluation_json(const Evaluation& result);
void print_evaluation(const Evaluation& result);

// "94.87%", "0.71234"; `deviation`: "1.25", "0.00312".
std::string metric_text(Metric metric, double value);
std::string deviation_text(Metric metric, double deviation);

// Warns if an answer that looks at no feature is as good.
void warn_if_useless(Metric metric, double value, double baseline, const Terminal& terminal);
inline void warn_if_useless(double accuracy, double baseline, const Terminal& terminal) {
  warn_if_useless(Metric::accuracy, accuracy, baseline, terminal);
}

}  // namespace linblock::cli
