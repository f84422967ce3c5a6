// Indexing when the N-th file call fails, for every N, or the power goes at it: an index as before (absent, or behind)
// or the new one, whole, the rows untouched, and the next try works.
#include <gtest/gtest.h>

#include <cerrno>

#include "support/file_hooks.h"
#include "support/forest.h"
#include "support/memory_folder.h"
#include "support/power_cut.h"

namespace linblock::test {
namespace {

class FaultyForest : public ::testing::TestWithParam<ForestState> {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(root_);
    pack_rows(sample_rows(1200), old_, small_options());
    if (GetParam() == ForestState::behind) {
      make_forest(old_);
      append_rows(sample_rows(600, 5, 1200), old_, small_options());
    }
    ASSERT_EQ(forest_state(Store::open(old_)), GetParam());
    before_ = state_of(old_);
    copy_store(old_, store_);
    make_forest(store_);
    after_ = state_of(store_);
    ASSERT_NE(before_, after_);
  }

  // Which rows and which index there are, all of it verified; or what is wrong.
  static std::string state_of(const std::string& path) {
    try {
      const Store rows = Store::open(path);
      verify(rows, 1);
      std::string state = std::to_string(rows.info().id);
      if (forest_state(rows) == ForestState::absent) return state + ", no index";
      const Store index = Store::open(index_path(path));
      verify(index, 1);
      return state + ", index " + std::to_string(index.info().id);
    } catch (const Error& error) {
      return std::string("damaged: ") + error.what();
    }
  }

  void expect_next_try_works(const std::string& path) {
    if (state_of(path) == before_) make_forest(path);
    ASSERT_EQ(state_of(path), after_);
  }

  const MemoryFolder folder_;
  const std::string root_ = folder_ / "disk";
  const std::string old_ = folder_ / "old";
  const std::string store_ = root_ + "/store";
  std::string before_;
  std::string after_;
};

TEST_P(FaultyForest, WithAFailingCallLeavesTheOldIndexOrTheNewOneAndNoOtherFiles) {
  int undone = 0;
  for (const bool later_calls_too : {false, true})
    for (uint64_t number = 1;; ++number) {
      copy_store(old_, store_);
      FailingCall failing(number, later_calls_too ? ENOSPC : EIO, later_calls_too);
      std::optional<Error> error;
      {
        const ScopedHook hook(std::ref(failing));
        error = error_of([&] { make_forest(store_); });
      }
      const std::string found = state_of(store_);
      if (!failing.happened()) {
        EXPECT_FALSE(error.has_value()) << error->what();
        EXPECT_EQ(found, after_);
        EXPECT_GT(number, 30U);
        break;
      }
      std::ostringstream call;
      call << "call " << number << (later_calls_too ? " and all later ones, " : ", ") << failing.call();
      SCOPED_TRACE(call.str());
      const bool may_be_new = !error || failing.call().kind == FileCall::Kind::sync_directory;
      ASSERT_TRUE((error && found == before_) || (may_be_new && found == after_)) << found.substr(0, 300);
      if (error) {
        ASSERT_EQ(error->kind(), ErrorKind::io) << error->what();
      }
      if (found == before_) ++undone;
      // Where files can still be removed after the failure, nothing is left lying about.
      if (found == before_ && !later_calls_too && failing.call().kind != FileCall::Kind::remove) {
        EXPECT_EQ(std::filesystem::exists(index_path(store_)), GetParam() == ForestState::behind);
        if (GetParam() == ForestState::behind) {
          EXPECT_TRUE(files_of(index_path(store_)) == files_of(index_path(old_)));
        }
      }
      if (number % 4 == 0) {
        ASSERT_NO_FATAL_FAILURE(expect_next_try_works(store_));
      }
    }
  EXPECT_GT(undone, 50);
}

TEST_P(FaultyForest, WithoutPowerLeavesTheOldIndexOrTheNewOne) {
  using Keep = PowerCut::Keep;
  for (uint64_t number = 1;; ++number) {
    copy_store(old_, store_);
    PowerCut power(root_, number);
    std::optional<Error> error;
    {
      const ScopedHook hook([&](const FileCall& call) { return power(call); });
      error = error_of([&] { make_forest(store_); });
    }
    const std::string found = folder_ / "found";
    for (uint64_t variant = 0; variant < 4; ++variant) {
      const Keep keep = variant == 0 ? Keep::synced : variant == 1 ? Keep::names : Keep::some_of_it_all;
      power.survivors(found, keep, number * 100 + variant);
      SCOPED_TRACE(::testing::Message() << "cut at call " << number << ", variant " << variant);
      const std::string state = state_of(found + "/store");
      ASSERT_TRUE(state == after_ || (error && state == before_)) << state.substr(0, 300);
    }
    ASSERT_NO_FATAL_FAILURE(expect_next_try_works(found + "/store"));
    if (!power.happened()) {
      EXPECT_GT(number, 20U);
      break;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Store, FaultyForest, ::testing::Values(ForestState::absent, ForestState::behind),
                         [](const auto& before) -> std::string {
                           return before.param == ForestState::absent ? "WithoutIndex" : "WithAnIndexBehind";
                         });

}  // namespace
}  // namespace linblock::test
