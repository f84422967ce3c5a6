// How many threads are worth it.
#pragma once

#include <cstddef>

#include "base/cgroup.h"

namespace linblock {

// How many threads this process may really use: processors that it may run on, or the processor time that its cgroup
// has, rounded up, where that is less.
size_t available_threads(const CgroupFiles& files = {});

}  // namespace linblock
