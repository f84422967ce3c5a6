// Which method is used where the user does not say.
#pragma once

#include <string>

#include "solve/core/solver.h"

namespace linblock {

struct Choice {
  AnyMethod method = Dual{};
  std::string reason = {};  // "squared-hinge, 494,021 rows x 119 features: newton, because features are few"
};

// "squared-hinge, 494,021 rows x 119 features"
std::string describe_data(const Problem& problem);

// From rows, features, nonzeros, memory and loss alone: the same data and memory, the same choice. docs/solvers.md has
// the measurements behind it.
Choice choose_method(const Problem& problem, const Context& context);

}  // namespace linblock
