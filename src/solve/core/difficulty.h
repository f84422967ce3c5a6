// How many passes a problem will take by methods that step along one row, feature or gradient, as far as the sums that
// `pack` keeps tell.
#pragma once

#include <optional>

#include "objective/problem.h"

namespace linblock {

// Cost times the mean squared length of a row: how far a step along one row would move its margin. Of the largest cost;
// nothing where the store does not know its rows' lengths.
std::optional<double> difficulty(const Problem& problem);

// Of difficulty(); docs/solvers.md has the measurements. Above it, whatever the scales, sparsity and noise of the data,
// such methods took hundreds of passes or did not arrive. With fewer rows than features it depends on how unlike the
// features' scales are, which nothing tells beforehand, and only far longer rows are a sign.
double hard_from(const Problem& problem);
bool is_hard(const Problem& problem);

}  // namespace linblock
