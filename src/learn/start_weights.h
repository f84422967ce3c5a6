// Weights of a model as the start of another: all that a method which minimizes over w needs to go on from.
#pragma once

#include <string>
#include <vector>

#include "solve/solve.h"

namespace linblock {

struct StartWeights {
  std::vector<Solution> solutions = {};  // one a task
  size_t known = 0;                      // labels that the model knows; the weights of the others begin with zeros
  size_t bounded = 0;                    // tasks whose dual value counts here too: the problem is the same
};

// Any weights will do: the model may be of other data, another loss or cost, or from another program. Its dual values
// count where the problem is the same in everything. It is read row by row, since it may not fit in memory as a whole.
// `all_at_once`: a task has the weights of all classes, interleaved.
StartWeights start_weights(const std::string& model, const Problem& problem, bool all_at_once = false);

}  // namespace linblock
