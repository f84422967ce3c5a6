// What this process holds, and what it may hold.
#pragma once

#include <cstdint>

namespace linblock {

// What a plan of the memory has for code, libraries, stacks, and what malloc cannot give back.
#if defined(LINBLOCK_STATIC)
inline constexpr uint64_t kProgramBytes = uint64_t{13} << 19;
#else
inline constexpr uint64_t kProgramBytes = uint64_t{9} << 20;
#endif

uint64_t resident_bytes();
uint64_t peak_resident_bytes();
// The machine's memory, or what its cgroup or its resource limits (ulimit) allow this process where that is less.
uint64_t permitted_memory_bytes();
// Makes malloc return large blocks to the system at once, so that `--memory` is what the system sees.
void keep_heap_small();
// What was freed between things that stay goes back too: for the end of a stage of work.
void return_free_memory();
// Unmaps the program's code; what runs next comes back from the page cache. For a program between two stages of work,
// since code that will not run again counts against the memory limit too.
void release_code_pages();

}  // namespace linblock
