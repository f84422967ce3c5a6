// The plan of a method that goes over columns: what its memory is used for.
#pragma once

#include "solve/core/solver.h"

namespace linblock {

// Of one method, beside what all of them need.
struct ColumnNeeds {
  uint64_t bytes_per_weight = 0;
};

// Throws ErrorKind::input where the store has no columns, and ErrorKind::memory, with the numbers and remedies, where
// the memory is too small.
Plan plan_columns(const ColumnNeeds& column_needs, const Problem& problem, const SolveOptions& options,
                  const Context& context);

}  // namespace linblock
