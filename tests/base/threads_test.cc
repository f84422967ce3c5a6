#include "base/threads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace linblock {
namespace {

TEST(Threads, HasAtLeastOneThread) {
  EXPECT_GE(available_threads(), 1U);
  EXPECT_LE(available_threads(), std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace linblock
