// Threads that cannot lose an exception.
#pragma once

#include <cstddef>
#include <functional>

namespace linblock {

// How many threads this process may really use.
size_t available_threads();

// Runs work(0) ... work(count - 1) on threads of their own (count 1: on this one) and joins them. The exception of
// the lowest number is thrown again; `on_failure` is called once, at the first failure, so that the others can be
// told to stop.
void run_on_threads(
    size_t count, const std::function<void(size_t)>& work, const std::function<void()>& on_failure = [] {});

// Runs work(0) ... work(count - 1) on up to `threads` threads, each taking the next number that nobody has.
void for_each_on_threads(size_t threads, size_t count, const std::function<void(size_t)>& work);

}  // namespace linblock
