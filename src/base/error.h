// The one exception type: a kind (which fixes the exit code) and a sentence for the user.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace linblock {

enum class ErrorKind {
  usage,        // the request itself is wrong
  input,        // the user's data cannot be accepted
  damaged,      // a store or model is not what was written
  io,           // the operating system refused, or the disk is full
  memory,       // the memory asked for cannot hold the problem
  interrupted,  // the user asked to stop
};

// The sentence says what failed, where, and what to do about it.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& sentence) : std::runtime_error(sentence), kind_(kind) {}

  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> pattern, Args&&... args) {
  throw Error(kind, fmt::format(pattern, std::forward<Args>(args)...));
}

}  // namespace linblock
