// A team of threads that lives as long as a call and does all of its parallel work.
//
// Work is claimed piece by piece. A thread that has no core at the moment holds nobody up, unless it was stopped in the
// middle of a piece. Which thread does which piece is left to chance, so nothing may be kept by thread: sums are kept
// by piece and added in the order of the pieces.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace linblock {

// Work that the team does while it has nothing better to do, such as reading ahead.
class Background {
 public:
  virtual ~Background() = default;
  // One piece of it. False: there is nothing to do now. Called on several threads at once; it must not throw.
  virtual bool step() = 0;
};

// Of features, where each thread has a range of its own; see for_each_owned().
inline constexpr size_t kMostOwners = 16;

// Memory that each thread needs is planned for so many of them, whatever their number: a plan must not depend on it.
inline constexpr size_t kPlannedThreads = 16;

// A handle: copies are the same team. Its threads start when they are first needed.
class Team {
 public:
  // So many threads, the caller among them. A team of one has a second thread for background work alone, so that the
  // disk is read while the caller computes.
  // `owners`: into how many parts work is to be cut that threads prefer to keep; 0: one for each thread that has a
  // core.
  Team(size_t threads = 1, size_t owners = 0);

  size_t size() const;
  size_t owners() const;
  bool operator==(const Team& other) const { return state_ == other.state_; }

  // work(0) ... work(count - 1), the caller taking part; returns when all are done. After a failure no new piece is
  // begun, and the exception of the lowest number that failed is thrown again. A call from inside of a piece does its
  // work alone. Calls from several threads take turns.
  void for_each(size_t count, const std::function<void(size_t)>& work) const;
  // The same, while the caller does `lead` first.
  void for_each(size_t count, const std::function<void(size_t)>& work, const std::function<void()>& lead) const;
  // The same for pieces of so many numbers: work(begin, end).
  void for_ranges(size_t count, size_t piece, const std::function<void(size_t begin, size_t end)>& work) const;

  // As for_each, for at most kMostOwners pieces that come again and again: thread t begins with piece t, whose data is
  // likely to be in its cache, and takes what others have not begun afterwards.
  void for_each_owned(size_t count, const std::function<void(size_t)>& work) const;

  // Loops that share work among themselves: so many of them, at most size() at the same time. One may begin only after
  // others have ended, so a loop waits for nothing but what loops that have begun do. `on_failure` is called once, by
  // the first that throws; it makes the others end.
  void run_loops(
      size_t count, const std::function<void()>& loop, const std::function<void()>& on_failure = [] {}) const;

  // From now on, between pieces. The caller keeps it alive until it has taken it back; remove() waits for the steps
  // that are being made.
  void add(Background& background) const;
  void remove(Background& background) const;
  // There is something to do again.
  void wake() const;

  // What each thread has done so far.
  struct Busy {
    double pieces = 0;      // seconds
    double background = 0;  // likewise
  };
  std::vector<Busy> busy() const;

 private:
  class Threads;
  std::shared_ptr<Threads> state_;
};

}  // namespace linblock
