// How good predictions were, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>

#include "learn/evaluate.h"

namespace linblock::cli {

nlohmann::ordered_json evaluation_json(const Evaluation& result);
void print_evaluation(const Evaluation& result);

}  // namespace linblock::cli
