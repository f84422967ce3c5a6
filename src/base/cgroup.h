// What the system allows the group of processes that this one is in (cgroups, version 1 or 2).
#pragma once

#include <cstdint>
#include <string>

namespace linblock {

// Where the system says so; another place is for tests.
struct CgroupFiles {
  std::string groups = "/proc/self/cgroup";  // which groups this process is in
  std::string root = "/sys/fs/cgroup";
};

// A limit may be set for any group above as well: the least counts.
// Bytes; UINT64_MAX if there is no limit.
uint64_t cgroup_memory_bytes(const CgroupFiles& files = {});
// Seconds of processor time per second; infinite if there is no limit.
double cgroup_processors(const CgroupFiles& files = {});

}  // namespace linblock
