// Which method is used where the user does not say.
#pragma once

#include <string>

#include "solve/core/solver.h"

namespace linblock {

struct Choice {
  AnyMethod method = Dual{};
  std::string reason =
      {};  // "squared-hinge, 494,021 rows x 119 features: newton, because rows are many for each feature"
};

// "squared-hinge, 494,021 rows x 119 features"
std::string describe_data(const Problem& problem);

// From the data's sums, memory, loss, cost and tolerance alone: the same of these, the same choice. docs/solvers.md has
// the measurements behind it.
Choice choose_method(const Problem& problem, const Context& context, double tolerance);

// Said before the time is spent: that hundreds of passes lie ahead, and what helps. Empty where that is not foreseen.
std::string foresee_passes(const Problem& problem, const Plan& plan);

}  // namespace linblock
