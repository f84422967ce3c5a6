// What the memory is used for by indexed block descent.
#pragma once

#include "solve/core/solver.h"

namespace linblock {

Plan make_indexed_plan(const Problem& problem, const SolveOptions& options, const Context& context);
std::string describe_indexed_plan(const Plan& plan);
// For the active rows of one task, at most.
uint64_t active_bytes(const Plan& plan);

}  // namespace linblock
