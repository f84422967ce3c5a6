#include "base/cgroup.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <limits>
#include <string_view>

namespace linblock {

namespace {

enum class Version { first, second };

// "cpu" in "cpu,cpuacct".
bool has_word(std::string_view list, std::string_view word) {
  while (true) {
    const size_t comma = list.find(',');
    if (list.substr(0, comma) == word) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

// The directories of this process's group and of all groups above it, for a controller such as "memory". Kernel files
// are not data: no hook.
void for_each_group(const CgroupFiles& files, std::string_view controller,
                    const std::function<void(const std::string& directory, Version)>& look) {
  std::ifstream groups(files.groups);
  // Version 1 lists "N:cpu,cpuacct:/path", version 2 "0::/path".
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const Version version = controllers.empty() ? Version::second : Version::first;
    if (version == Version::first && !has_word(controllers, controller)) continue;
    const std::string root = version == Version::second ? files.root : files.root + "/" + std::string(controller);
    std::string path = line.substr(second + 1);
    while (true) {
      look(root + path, version);
      const size_t slash = path.find_last_of('/');
      if (slash == std::string::npos || path == "/") break;
      path.erase(slash);
    }
  }
}

}  // namespace

uint64_t cgroup_memory_bytes(const CgroupFiles& files) {
  uint64_t least = UINT64_MAX;
  for_each_group(files, "memory", [&](const std::string& directory, Version version) {
    std::ifstream file(directory + (version == Version::second ? "/memory.max" : "/memory.limit_in_bytes"));
    uint64_t bytes = 0;
    if (file >> bytes) least = std::min(least, bytes);  // not "max"
  });
  return least;
}

double cgroup_processors(const CgroupFiles& files) {
  double least = std::numeric_limits<double>::infinity();
  for_each_group(files, "cpu", [&](const std::string& directory, Version version) {
    // Microseconds of processor time, and in how many. Without a limit the first is "max", or -1 in version 1.
    double quota = 0;
    double period = 0;
    if (version == Version::second) {
      std::ifstream file(directory + "/cpu.max");
      file >> quota >> period;
    } else {
      std::ifstream(directory + "/cpu.cfs_quota_us") >> quota;
      std::ifstream(directory + "/cpu.cfs_period_us") >> period;
    }
    if (quota > 0 && period > 0) least = std::min(least, quota / period);
  });
  return least;
}

}  // namespace linblock
