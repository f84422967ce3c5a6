// What the memory is used for by indexed block descent.
#pragma once

#include "solve/core/solver.h"

namespace linblock {

Plan plan_indexed(const Problem& problem, const Context& context);
// For the active rows of one task, at most.
uint64_t active_bytes(const Plan& plan);

}  // namespace linblock
