// Work on a store when the N-th file call fails, for every N, or the power goes at it: the state before or after,
// whole, and the next try works. Tests say what the work is, and what a state is.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>

#include "support/file_hooks.h"
#include "support/memory_folder.h"
#include "support/packing.h"
#include "support/power_cut.h"

namespace linblock::test {

template <class Parameter>
class FaultyWork : public ::testing::TestWithParam<Parameter> {
 protected:
  virtual void work_on(const std::string& store) = 0;
  // All that makes it, verified; or what is wrong.
  virtual std::string state_of(const std::string& store) = 0;
  // Where nothing was done, and files could still be removed: nothing is left lying about.
  virtual void expect_as_before() {}
  virtual void expect_next_try_works(const std::string& store) {
    if (state_of(store) == before_) work_on(store);
    ASSERT_EQ(state_of(store), after_);
  }

  // After old_ was made.
  void learn_states() {
    std::filesystem::create_directory(root_);
    before_ = state_of(old_);
    copy_store(old_, store_);
    work_on(store_);
    after_ = state_of(store_);
    ASSERT_NE(before_, after_);
  }

  // `next_tries`: the next try is made after every so many failures; it takes as long as all the rest.
  void fail_every_call(int code, bool later_calls_too, uint64_t next_tries) {
    for (uint64_t number = 1;; ++number) {
      copy_store(old_, store_);
      FailingCall failing(number, code, later_calls_too);
      std::optional<Error> error;
      {
        const ScopedHook hook(std::ref(failing));
        error = error_of([&] { work_on(store_); });
      }
      const std::string found = state_of(store_);
      if (!failing.happened()) {
        EXPECT_FALSE(error.has_value()) << error->what();
        EXPECT_EQ(found, after_);
        EXPECT_GT(number, 20U);
        return;
      }
      std::ostringstream call;
      call << "call " << number << (later_calls_too ? " and all later ones, " : ", ") << failing.call();
      SCOPED_TRACE(call.str());
      // Without an error it is done: only old files could not be deleted.
      const bool may_be_new = !error || failing.call().kind == FileCall::Kind::sync_directory;
      ASSERT_TRUE((error && found == before_) || (may_be_new && found == after_)) << found.substr(0, 300);
      if (error) {
        ASSERT_EQ(error->kind(), ErrorKind::io) << error->what();
      }
      (found == before_ ? undone_ : done_) += 1;
      if (found == before_ && !later_calls_too && failing.call().kind != FileCall::Kind::remove) expect_as_before();
      if (number % next_tries == 0) {
        ASSERT_NO_FATAL_FAILURE(expect_next_try_works(store_));
      }
    }
  }

  void cut_power_at_every_call(uint64_t variants) {
    using Keep = PowerCut::Keep;
    for (uint64_t number = 1;; ++number) {
      copy_store(old_, store_);
      PowerCut power(root_, number);
      std::optional<Error> error;
      {
        // Reading, on whatever thread, changes nothing on a disk.
        const ScopedHook hook([&](const FileCall& call) {
          const bool reads = call.kind == FileCall::Kind::read || call.kind == FileCall::Kind::open;
          return reads ? FileVerdict{} : power(call);
        });
        error = error_of([&] { work_on(store_); });
      }
      const std::string found = folder_ / "found";
      for (uint64_t variant = 0; variant < variants; ++variant) {
        const Keep keep = variant == 0 ? Keep::synced : variant == 1 ? Keep::names : Keep::some_of_it_all;
        power.survivors(found, keep, number * 100 + variant);
        SCOPED_TRACE(::testing::Message() << "cut at call " << number << ", variant " << variant);
        const std::string state = state_of(found + "/store");
        ASSERT_TRUE(state == after_ || (error && state == before_)) << state.substr(0, 300);
      }
      ASSERT_NO_FATAL_FAILURE(expect_next_try_works(found + "/store"));
      if (!power.happened()) {
        EXPECT_GT(number, 10U);
        return;
      }
    }
  }

  const MemoryFolder folder_;
  const std::string root_ = folder_ / "disk";
  const std::string old_ = folder_ / "old";
  const std::string store_ = root_ + "/store";
  std::string before_;
  std::string after_;
  int undone_ = 0;
  int done_ = 0;
};

}  // namespace linblock::test
