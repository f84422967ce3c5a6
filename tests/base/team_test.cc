#include "base/team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/threads.h"

namespace linblock {
namespace {

using namespace std::chrono_literals;

TEST(Team, DoesEachPieceOnce) {
  for (const size_t threads : {1, 2, 3, 7, 16}) {
    const Team team(threads);
    EXPECT_EQ(team.size(), threads);
    for (const size_t count : {0, 1, 2, 5, 100, 3000}) {
      std::vector<std::atomic<int>> calls(count);
      team.for_each(count, [&](size_t number) { ++calls.at(number); });
      for (size_t number = 0; number < count; ++number) ASSERT_EQ(calls[number], 1) << number << " of " << count;
    }
  }
}

// More pieces than the word that counts them has room for.
TEST(Team, DoesMillionsOfPieces) {
  const Team team(3);
  constexpr size_t kCount = 3'000'001;
  std::vector<uint8_t> calls(kCount);
  team.for_each(kCount, [&](size_t number) { ++calls[number]; });
  for (size_t number = 0; number < kCount; ++number) ASSERT_EQ(calls[number], 1) << number;
}

TEST(Team, CutsRanges) {
  const Team team(2);
  std::vector<int> calls(1001);
  team.for_ranges(calls.size(), 10, [&](size_t begin, size_t end) {
    EXPECT_LE(end - begin, 10U);
    for (size_t i = begin; i < end; ++i) ++calls[i];
  });
  for (const int count : calls) EXPECT_EQ(count, 1);
}

// Thousands of short phases, one after another: no piece of an earlier phase may be claimed in a later one.
TEST(Team, KeepsPhasesApart) {
  const Team team(4);
  std::vector<size_t> values(7);
  for (size_t phase = 0; phase < 5000; ++phase) {
    team.for_each(values.size(), [&](size_t number) { values[number] = phase; });
    for (const size_t value : values) ASSERT_EQ(value, phase);
  }
}

// Pieces that come again and again; by any number of threads, more or fewer than pieces.
TEST(Team, DoesEachOwnedPieceOnce) {
  for (const size_t threads : {1, 2, 3, 7, 16})
    for (const size_t owners : {1, 2, 5, 16}) {
      const Team team(threads, owners);
      EXPECT_EQ(team.owners(), owners);
      std::vector<size_t> values(owners);
      std::atomic<size_t> calls = 0;
      for (size_t phase = 0; phase < 300; ++phase) {
        team.for_each_owned(owners, [&](size_t number) {
          values[number] = phase;
          ++calls;
        });
        for (const size_t value : values) ASSERT_EQ(value, phase);
        // Phases of both kinds take turns.
        team.for_each(owners, [&](size_t number) { values[number] = SIZE_MAX; });
      }
      EXPECT_EQ(calls, 300 * owners);
    }
}

TEST(Team, HasNoMoreOwnersThanCoresUnlessTold) {
  EXPECT_LE(Team(1000).owners(), available_threads());
  EXPECT_EQ(Team(1).owners(), 1U);
  EXPECT_EQ(Team(1, 7).owners(), 7U);
}

TEST(Team, LeadsOnTheCallersThreadWhileOthersClaim) {
  const Team team(3);
  for (int phase = 0; phase < 200; ++phase) {
    std::thread::id leader;
    std::vector<std::atomic<int>> calls(20);
    team.for_each(
        calls.size(), [&](size_t number) { ++calls[number]; }, [&] { leader = std::this_thread::get_id(); });
    EXPECT_EQ(leader, std::this_thread::get_id());
    for (const auto& count : calls) ASSERT_EQ(count, 1);
  }
  EXPECT_THROW(team.for_each(
                   5, [](size_t) {}, [] { throw std::runtime_error("lead"); }),
               std::runtime_error);
  EXPECT_THROW(team.for_each_owned(2,
                                   [](size_t number) {
                                     if (number == 1) throw std::runtime_error("owner");
                                   }),
               std::runtime_error);
}

TEST(Team, UsesAllItsThreads) {
  const Team team(3);
  std::atomic<int> arrived = 0;
  team.for_each(3, [&](size_t) {
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 3);
}

TEST(Team, CopiesAreTheSameTeam) {
  const Team team(2);
  const Team copy = team;
  EXPECT_TRUE(copy == team);
  EXPECT_FALSE(copy == Team(2));
}

TEST(Team, ThrowsTheExceptionOfTheLowestPieceThatFailed) {
  const Team team(4);
  for (int trial = 0; trial < 50; ++trial) {
    std::atomic<size_t> begun = 0;
    try {
      team.for_each(1000, [&](size_t number) {
        ++begun;
        if (number == 3) throw std::runtime_error("3");
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()), "3");
    }
    EXPECT_LE(begun, 1000U);
  }
  std::atomic<size_t> after = 0;
  team.for_each(10, [&](size_t) { ++after; });
  EXPECT_EQ(after, 10U) << "a team that failed once can be used again";
}

TEST(Team, DoesNestedWorkAlone) {
  const Team team(3);
  std::vector<std::vector<std::thread::id>> inner(20);
  std::vector<std::thread::id> outer(20);
  team.for_each(outer.size(), [&](size_t number) {
    outer[number] = std::this_thread::get_id();
    inner[number].resize(5);
    team.for_each(5, [&](size_t i) { inner[number][i] = std::this_thread::get_id(); });
  });
  for (size_t number = 0; number < outer.size(); ++number)
    for (const std::thread::id id : inner[number]) EXPECT_EQ(id, outer[number]);
}

TEST(Team, ServesSeveralCallers) {
  const Team team(2);
  std::atomic<size_t> pieces = 0;
  std::vector<std::jthread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int phase = 0; phase < 200; ++phase) team.for_each(9, [&](size_t) { ++pieces; });
    });
  callers.clear();
  EXPECT_EQ(pieces, 4U * 200U * 9U);
}

TEST(Team, RunsLoopsAtTheSameTime) {
  const Team team(3);
  std::atomic<int> arrived = 0;
  team.run_loops(3, [&] {
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 3);
}

TEST(Team, RunsASingleLoopOnTheCallersThread) {
  const Team team(3);
  std::thread::id id;
  team.run_loops(1, [&] { id = std::this_thread::get_id(); });
  EXPECT_EQ(id, std::this_thread::get_id());
}

// More loops than threads, and threads that have other things to do: whoever begins does the work of those that do not.
TEST(Team, LoopsClaimWorkFromOneAnother) {
  for (const size_t threads : {1, 2, 5}) {
    const Team team(threads);
    std::atomic<size_t> next = 0;
    std::atomic<size_t> loops = 0;
    std::vector<std::atomic<int>> done(1000);
    team.run_loops(7, [&] {
      ++loops;
      for (size_t number = next++; number < done.size(); number = next++) ++done[number];
    });
    EXPECT_EQ(loops, 7U);
    for (const auto& count : done) ASSERT_EQ(count, 1);
  }
}

TEST(Team, TellsOfALoopThatFailsOnceAndBeforeTheOthersEnd) {
  for (const size_t threads : {1, 2, 6}) {
    const Team team(threads);
    std::atomic<int> told = 0;
    std::atomic<int> begun = 0;
    EXPECT_THROW(team.run_loops(
                     6,
                     [&] {
                       if (begun++ == static_cast<int>(threads) - 1) throw std::out_of_range("the last that begins");
                       while (told == 0) std::this_thread::sleep_for(1ms);  // ends only because it was told
                     },
                     [&] { ++told; }),
                 std::out_of_range);
    EXPECT_EQ(told, 1);
    team.run_loops(
        6, [] {}, [&] { ++told; });
    EXPECT_EQ(told, 1) << "when all is well";
  }
}

TEST(Team, WaitsForEveryLoopBeforeItThrows) {
  const Team team(4);
  std::atomic<int> begun = 0;
  std::atomic<int> ended = 0;
  EXPECT_THROW(team.run_loops(4,
                              [&] {
                                const int number = begun++;
                                while (begun < 4) std::this_thread::yield();
                                if (number == 3) throw std::runtime_error("at once");
                                std::this_thread::sleep_for(20ms);
                                ++ended;
                              }),
               std::runtime_error);
  EXPECT_EQ(ended, 3);
}

class Counter : public Background {
 public:
  explicit Counter(size_t most) : most_(most) {}
  bool step() override {
    const std::lock_guard lock(mutex_);
    if (steps_ == most_) return false;
    ++steps_;
    return true;
  }
  size_t steps() const {
    const std::lock_guard lock(mutex_);
    return steps_;
  }
  void allow(size_t more) {
    const std::lock_guard lock(mutex_);
    most_ += more;
  }

 private:
  mutable std::mutex mutex_;
  size_t steps_ = 0;
  size_t most_;
};

void wait_until(const std::function<bool()>& done) {
  for (int i = 0; i < 5000 && !done(); ++i) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(done());
}

TEST(Team, WorksInTheBackground) {
  for (const size_t threads : {1, 2, 5}) {
    const Team team(threads);
    Counter counter(100);
    team.add(counter);
    wait_until([&] { return counter.steps() == 100; });
    std::this_thread::sleep_for(5ms);  // they are asleep
    counter.allow(50);
    team.wake();
    wait_until([&] { return counter.steps() == 150; });
    size_t pieces = 0;
    std::mutex mutex;
    team.for_each(20, [&](size_t) {
      const std::lock_guard lock(mutex);
      ++pieces;
    });
    EXPECT_EQ(pieces, 20U);
    team.remove(counter);
    counter.allow(1'000'000);
    team.wake();
    std::this_thread::sleep_for(2ms);
    EXPECT_EQ(counter.steps(), 150U) << "what was taken back is left alone";
  }
}

TEST(Team, TakesBackBackgroundWorkInTheMiddleOfIt) {
  const Team team(3);
  for (int trial = 0; trial < 100; ++trial) {
    Counter counter(1'000'000'000);
    team.add(counter);
    std::this_thread::yield();
    team.remove(counter);
    const size_t steps = counter.steps();
    std::this_thread::yield();
    EXPECT_EQ(counter.steps(), steps);
  }
}

TEST(Team, SaysWhatItsThreadsDid) {
  const Team team(2);
  team.for_each(8, [](size_t) { std::this_thread::sleep_for(2ms); });
  // A thread notes its time when it finds no other piece, which may be after the caller has gone on.
  wait_until([&] {
    double sum = 0;
    for (const Team::Busy& busy : team.busy()) sum += busy.pieces;
    return sum >= 0.016;
  });
}

}  // namespace
}  // namespace linblock
