// Losses that count as 1 + s at most, around any solver of convex problems.
#pragma once

#include "solve/core/pass.h"

namespace linblock {

// The setup's method solves the convex problems, on these rows.
std::unique_ptr<Solver> make_truncated(const Setup& setup, Rows& rows);

// Refuses methods that do not solve a convex problem to a given gap, and numbers that are no s.
void check_truncated(const AnyMethod& method, double s);

// What is held beside the convex problem: outliers known and found, the best weights so far, and those to go on from.
uint64_t truncated_bytes(const Problem& problem);

}  // namespace linblock
