// How good predictions were, for people and for programs.
#pragma once

#include "base/json.h"
#include "cli/show/terminal.h"
#include "learn/evaluate.h"

namespace linblock::cli {

Json evaluation_json(const Evaluation& result);
void print_evaluation(const Evaluation& result);

// Warns if answering one label always is as often right.
void warn_if_useless(double accuracy, double baseline, const Terminal& terminal);

}  // namespace linblock::cli
