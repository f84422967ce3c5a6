#include "base/threads.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <thread>

namespace linblock {

size_t available_threads(const CgroupFiles& files) {
  size_t threads = std::max(1U, std::thread::hardware_concurrency());
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) threads = static_cast<size_t>(std::max(1, CPU_COUNT(&set)));
  // A thread more than the quota pays for would only use it up sooner, and wait.
  const double quota = std::ceil(cgroup_processors(files));
  return quota < static_cast<double>(threads) ? std::max<size_t>(1, static_cast<size_t>(quota)) : threads;
}

}  // namespace linblock
