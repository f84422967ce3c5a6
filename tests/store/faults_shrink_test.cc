// Removing rows and compacting when the N-th file call fails, for every N, or the power goes at it: the store before or
// after, whole, and the next try works.
#include <gtest/gtest.h>

#include <cerrno>

#include "store/compact.h"
#include "store/remove.h"
#include "support/damage.h"
#include "support/file_hooks.h"
#include "support/memory_folder.h"
#include "support/power_cut.h"

namespace linblock::test {
namespace {

enum class Work { remove_rows, remove_segment, compact };

class Shrinking : public ::testing::TestWithParam<Work> {
 protected:
  // Something was removed before, so that there is an old list to be replaced.
  void SetUp() override {
    std::filesystem::create_directory(root_);
    make_small_store(old_, "lz4");
    remove_rows(old_, {.ids = {2, 50, 330}});
    before_ = state_of(old_);
    copy_store(old_, store_);
    work();
    after_ = state_of(store_);
    ASSERT_NE(before_, after_);
  }

  void work(size_t threads = 1) { work_on(store_, threads); }
  static void work_on(const std::string& store, size_t threads = 1) {
    switch (GetParam()) {
      case Work::remove_rows: remove_rows(store, {.ids = {7, 51, 409, 3}}, {.threads = threads}); break;
      case Work::remove_segment: remove_segment(store, 1, {.threads = threads}); break;
      case Work::compact: compact(store, {.threads = threads}); break;
    }
  }

  // All that makes a store, and what its rows are; or why it is none.
  static std::string state_of(const std::string& path) {
    try {
      const Store store = Store::open(path);
      verify(store, 1);
      return std::to_string(store.info().id) + "\n" + text_of(rows_in_order(store));
    } catch (const Error& error) {
      return std::string("damaged: ") + error.what();
    }
  }

  // Whatever it has left, the next try works; and no file is there that nobody names.
  void expect_next_try_works(const std::string& store) {
    if (state_of(store) == before_) work_on(store);
    ASSERT_EQ(state_of(store), after_);
    remove_rows(store, {.ids = {405}});
    open_and_verify(store);
    const StoreInfo info = read_manifest(store);
    size_t files = 3 + 2 * info.segments.size() + (info.removed.rows > 0 ? 1 : 0);
    files += std::filesystem::exists(store + "/MANIFEST.new") ? 1 : 0;
    EXPECT_EQ(names_in(store).size(), files) << ::testing::PrintToString(names_in(store));
  }

  void fail_every_call(int code, bool later_calls_too, size_t threads) {
    for (uint64_t number = 1;; ++number) {
      copy_store(old_, store_);
      FailingCall failing(number, code, later_calls_too);
      std::optional<Error> error;
      {
        const ScopedHook hook(std::ref(failing));
        error = error_of([&] { work(threads); });
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
      ASSERT_NO_FATAL_FAILURE(expect_next_try_works(store_));
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

TEST_P(Shrinking, WithAFailingCallLeavesTheOldStoreOrTheNewOne) {
  for (const bool later_calls_too : {false, true})
    for (const int code : {EIO, ENOSPC})
      for (const size_t threads : {1U, 2U}) fail_every_call(code, later_calls_too, threads);
  EXPECT_GT(undone_, 50);
  EXPECT_GT(done_, 5);
}

// Where files can still be removed after the failure, nothing is left lying about.
TEST_P(Shrinking, WithOneFailingCallLeavesNoNewFiles) {
  const auto files_before = files_of(old_);
  for (uint64_t number = 1;; ++number) {
    copy_store(old_, store_);
    FailingCall failing(number, EIO, false);
    {
      const ScopedHook hook(std::ref(failing));
      error_of([&] { work(); });
    }
    if (!failing.happened()) break;
    if (state_of(store_) != before_) continue;
    std::ostringstream call;
    call << failing.call();
    EXPECT_TRUE(files_of(store_) == files_before) << call.str() << ::testing::PrintToString(names_in(store_));
  }
}

TEST_P(Shrinking, WithoutPowerLeavesTheOldStoreOrTheNewOne) {
  using Keep = PowerCut::Keep;
  for (uint64_t number = 1;; ++number) {
    copy_store(old_, store_);
    PowerCut power(root_, number);
    std::optional<Error> error;
    {
      const ScopedHook hook(std::ref(power));
      error = error_of([&] { work(); });
    }
    const std::string found = folder_ / "found";
    for (uint64_t variant = 0; variant < 6; ++variant) {
      const Keep keep = variant == 0 ? Keep::synced : variant == 1 ? Keep::names : Keep::some_of_it_all;
      power.survivors(found, keep, number * 100 + variant);
      SCOPED_TRACE(::testing::Message() << "cut at call " << number << ", variant " << variant);
      const std::string state = state_of(found + "/store");
      ASSERT_TRUE(state == after_ || (error && state == before_)) << state.substr(0, 300);
      ASSERT_NO_FATAL_FAILURE(expect_next_try_works(found + "/store"));
    }
    if (!power.happened()) {
      EXPECT_GT(number, 20U);
      break;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Store, Shrinking, ::testing::Values(Work::remove_rows, Work::remove_segment, Work::compact),
                         [](const auto& work) -> std::string {
                           return work.param == Work::remove_rows      ? "RemovingRows"
                                  : work.param == Work::remove_segment ? "RemovingASegment"
                                                                       : "Compacting";
                         });

}  // namespace
}  // namespace linblock::test
