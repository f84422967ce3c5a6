// How good predictions were, for people and for programs.
#pragma once

#include "base/json.h"
#include "learn/evaluate.h"

namespace linblock::cli {

Json evaluation_json(const Evaluation& result);
void print_evaluation(const Evaluation& result);

}  // namespace linblock::cli
