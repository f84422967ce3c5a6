#include "base/threads.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace linblock {

size_t available_threads() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) return static_cast<size_t>(std::max(1, CPU_COUNT(&set)));
  return std::max(1U, std::thread::hardware_concurrency());
}

void run_on_threads(size_t count, const std::function<void(size_t)>& work, const std::function<void()>& on_failure) {
  std::vector<std::exception_ptr> failures(count);
  std::once_flag told;
  const auto guarded = [&](size_t number) {
    try {
      work(number);
    } catch (...) {
      failures[number] = std::current_exception();
      std::call_once(told, on_failure);
    }
  };
  if (count == 1) {
    guarded(0);
  } else {
    std::vector<std::jthread> threads;
    for (size_t number = 0; number < count; ++number) threads.emplace_back(guarded, number);
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

void for_each_on_threads(size_t threads, size_t count, const std::function<void(size_t)>& work) {
  if (count == 0) return;
  std::atomic<size_t> next = 0;
  run_on_threads(
      std::clamp<size_t>(threads, 1, count),
      [&](size_t) {
        for (size_t number = next++; number < count; number = next++) work(number);
      },
      [&] { next = count; });
}

}  // namespace linblock
