// Which method is used where the user does not say.
#pragma once

#include <optional>
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

// Cost times the mean squared length of a row: how far a step along one row would move its margin. Where it is large,
// methods that step along one row, feature or gradient need many passes. Of the largest cost; nothing where the store
// does not know its rows' lengths.
std::optional<double> difficulty(const Problem& problem);

// Said before the time is spent: that hundreds of passes lie ahead, and what helps. Empty where that is not foreseen.
std::string foresee_passes(const Problem& problem, const Plan& plan);

}  // namespace linblock
