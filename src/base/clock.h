// How long something took.
#pragma once

#include <chrono>

namespace linblock {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  void restart() { begin_ = Clock::now(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace linblock
