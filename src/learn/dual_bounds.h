// Lower bounds of the optimum that training has certified. A later run on the very same problem begins with them: dual
// variables prove a bound for any weights, whatever method finds those.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "solve/core/solver.h"

namespace linblock {

struct DualBounds {
  std::string problem = {};                 // what they are bounds of; empty: there are none
  std::map<int32_t, double> by_label = {};  // one a task, by the label that it tells from the others; rounded down

  bool empty() const { return by_label.empty(); }
  // Of a task; minus infinity where it is not known, or of another problem.
  double of(const Problem& problem_now, const Task& task) const;
};

// Everything that decides the optimum of a problem's tasks but their labels, one a line. Equal texts, equal optima. The
// tasks share a cost and the rows that are held out.
std::string describe_optimum(const Problem& problem);

// Of tasks that ended so; empty where nothing of use is known: pegasos has no dual, truncated losses are another
// problem than the one that is certified, and so is one task for all classes.
DualBounds bounds_of(const Problem& problem, const Summary& summary, bool all_at_once);

}  // namespace linblock
