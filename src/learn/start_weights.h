// Weights of a model as the start of another: all that a method which minimises over w needs to go on from.
#pragma once

#include <string>
#include <vector>

#include "solve/solve.h"

namespace linblock {

struct StartWeights {
  std::vector<Solution> solutions = {};  // one a task
  size_t known = 0;                      // tasks whose label the model knows; the others begin with zeros
};

// Any weights will do: the model may be of other data, another loss or cost, or from another program. It is read row by
// row, since it may not fit the memory as a whole.
StartWeights start_weights(const std::string& model, const Problem& problem);

}  // namespace linblock
