// The plan of a method that goes over columns: what the memory is used for.
#pragma once

#include "solve/core/solver.h"

namespace linblock {

// Throws ErrorKind::input where the store has no columns, and ErrorKind::memory, with the numbers and remedies, where
// the memory is too small.
Plan make_column_plan(const Problem& problem, const SolveOptions& options, const Context& context);
std::string describe_column_plan(const Plan& plan);

}  // namespace linblock
