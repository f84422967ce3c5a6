// Losses that count as 1 + s at most, around any solver of convex problems.
#pragma once

#include "solve/core/solver.h"

namespace linblock {

Summary solve_truncated(const Problem& problem, const SolveOptions& options, std::vector<Solution>& solutions,
                        const Context& context);

// Refuses methods that do not solve a convex problem to a given gap, and numbers that are no s.
void check_truncated(const AnyMethod& method, double s);

// What is held beside the convex problem: outliers known and found, the best weights so far, and those to go on from.
uint64_t truncated_bytes(const Problem& problem);

}  // namespace linblock
