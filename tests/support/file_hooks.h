// Hooks that make files fail: the N-th call, all calls from the N-th on, short reads and writes.
#pragma once

#include <atomic>
#include <mutex>
#include <ostream>
#include <utility>

#include "base/file.h"

namespace linblock {

inline std::ostream& operator<<(std::ostream& out, const FileCall& call) {
  constexpr const char* kNames[] = {"open",   "create",         "read",           "write", "sync", "close", "rename",
                                    "remove", "make_directory", "sync_directory", "lock",  "list", "link"};
  return out << kNames[static_cast<int>(call.kind)] << " '" << call.path << "' " << call.target << " at " << call.offset
             << ", " << call.bytes << " bytes";
}

}  // namespace linblock

namespace linblock::test {

class ScopedHook {
 public:
  explicit ScopedHook(FileHook hook) { set_file_hook(std::move(hook)); }
  ~ScopedHook() { set_file_hook({}); }
  ScopedHook(const ScopedHook&) = delete;
  ScopedHook& operator=(const ScopedHook&) = delete;
};

// Calls are counted from 1, over all threads.
class FailingCall {
 public:
  FailingCall(uint64_t number, int error, bool later_calls_too)
      : number_(number), error_(error), later_calls_too_(later_calls_too) {}

  FileVerdict operator()(const FileCall& call) {
    const std::lock_guard lock(mutex_);
    ++calls_;
    if (calls_ == number_) failed_ = call;
    return {.error = calls_ == number_ || (later_calls_too_ && calls_ > number_) ? error_ : 0};
  }

  // The work had ended before the N-th call was made.
  bool happened() const { return failed_.has_value(); }
  const FileCall& call() const { return *failed_; }

 private:
  std::mutex mutex_;
  uint64_t calls_ = 0;
  uint64_t number_;
  int error_;
  bool later_calls_too_;
  std::optional<FileCall> failed_;
};

}  // namespace linblock::test
