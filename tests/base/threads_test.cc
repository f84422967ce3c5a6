#include "base/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace linblock {
namespace {

using namespace std::chrono_literals;

TEST(Threads, RunsEachNumberOnce) {
  for (const size_t count : {0, 1, 2, 7, 20}) {
    std::vector<std::atomic<int>> calls(count);
    run_on_threads(count, [&](size_t number) { ++calls.at(number); });
    for (size_t number = 0; number < count; ++number) EXPECT_EQ(calls[number], 1) << number << " of " << count;
  }
}

TEST(Threads, RunsASingleWorkerOnTheCallingThread) {
  std::thread::id id;
  run_on_threads(1, [&](size_t) { id = std::this_thread::get_id(); });
  EXPECT_EQ(id, std::this_thread::get_id());
}

TEST(Threads, RunsWorkersAtTheSameTime) {
  std::atomic<int> arrived = 0;
  run_on_threads(3, [&](size_t) {
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 3);
}

TEST(Threads, ThrowsTheExceptionOfAWorkerAgain) {
  for (const size_t count : {1, 2, 5}) {
    try {
      run_on_threads(count, [&](size_t number) {
        if (number == count - 1) throw std::out_of_range("worker " + std::to_string(number));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::out_of_range& error) {
      EXPECT_EQ(error.what(), "worker " + std::to_string(count - 1));
    }
  }
}

TEST(Threads, ThrowsTheExceptionOfTheLowestNumberEvenWhenItCameLater) {
  try {
    run_on_threads(4, [](size_t number) {
      if (number == 1) std::this_thread::sleep_for(20ms);
      if (number > 0) throw std::runtime_error(std::to_string(number));
    });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "1");
  }
}

TEST(Threads, TellsOfTheFirstFailureOnceAndBeforeTheOthersEnd) {
  std::atomic<int> told = 0;
  EXPECT_THROW(run_on_threads(
                   6,
                   [&](size_t number) {
                     if (number % 2 == 1) throw std::runtime_error("odd");
                     while (told == 0) std::this_thread::sleep_for(1ms);  // ends only because it was told
                   },
                   [&] { ++told; }),
               std::runtime_error);
  EXPECT_EQ(told, 1);
}

TEST(Threads, DoesNotCallOnFailureWhenAllIsWell) {
  std::atomic<int> told = 0;
  run_on_threads(
      3, [](size_t) {}, [&] { ++told; });
  EXPECT_EQ(told, 0);
}

TEST(Threads, WaitsForEveryWorkerBeforeItThrows) {
  std::atomic<int> ended = 0;
  EXPECT_THROW(run_on_threads(4,
                              [&](size_t number) {
                                if (number == 0) throw std::runtime_error("at once");
                                std::this_thread::sleep_for(20ms);
                                ++ended;
                              }),
               std::runtime_error);
  EXPECT_EQ(ended, 3);
}

TEST(Threads, HasAtLeastOneThread) {
  EXPECT_GE(available_threads(), 1U);
  EXPECT_LE(available_threads(), std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace linblock
