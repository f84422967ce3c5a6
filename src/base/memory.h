// What this process holds, and what it may hold.
#pragma once

#include <cstdint>

namespace linblock {

uint64_t resident_bytes();
uint64_t peak_resident_bytes();
// The machine's memory, or the memory cgroup's limit where that is less.
uint64_t permitted_memory_bytes();
// Makes malloc return large blocks to the system at once, so that `--memory` is what the system sees.
void keep_heap_small();

}  // namespace linblock
