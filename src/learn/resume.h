// A run that resumes under another memory limit than it began with. The bits of a result depend on the plan, and the
// plan on the memory: so the run is planned with the memory that it began with, if that fits, and ends with the same
// bits. The number of threads changes no bits.
#pragma once

#include <functional>
#include <string>

#include "learn/prepare.h"

namespace linblock {

// Everything that the bits of a plan depend on, as text.
std::string text_of(const Plan& plan);

struct Resumed {
  Context context;
  uint64_t planned_bytes = 0;  // with so much memory the run began: part of its identity
};

// `layout`: what the run would plan with a context, as text, without doing anything. A run that began with less memory
// is planned with as much as then. One that began with more keeps its limit if the plans are the same. Otherwise
// Stages refuses. Without a layout only the former resume.
Resumed resume_with(const Context& context, bool fresh, const TrainObserver& observer,
                    const std::function<std::string(const Context&)>& layout = {});

}  // namespace linblock
