// Transposing when the N-th file call fails, for every N, or the power goes at it: columns as before (absent, or the
// stale ones) or new, whole, the rows untouched, and the next try works.
#include <gtest/gtest.h>

#include <cerrno>

#include "support/columns.h"
#include "support/file_hooks.h"
#include "support/memory_folder.h"
#include "support/power_cut.h"

namespace linblock::test {
namespace {

enum class Before { absent, stale };

class FaultyTranspose : public ::testing::TestWithParam<Before> {
 protected:
  // More entries than the least memory sorts at once, so that there are spills.
  void SetUp() override {
    std::filesystem::create_directory(root_);
    PackOptions options = small_options();
    options.chunk_bytes = 65536;
    pack_rows(sample_rows(14000), old_, options);
    if (GetParam() == Before::stale) {
      transpose(Store::open(old_), {});
      append_rows(sample_rows(10, 5, 14000), old_, options);
    }
    before_ = state_of(old_);
    copy_store(old_, store_);
    EXPECT_GT(work_on(store_).spilled_bytes, 0);
    after_ = state_of(store_);
    ASSERT_NE(before_, after_);
  }

  static TransposeReport work_on(const std::string& path) {
    const Store rows = Store::open(path);
    TransposeOptions options;
    options.memory_bytes = least_transpose_memory(rows, options);
    return transpose(rows, options);
  }

  // Which rows and which columns there are, all of them verified; or what is wrong.
  static std::string state_of(const std::string& path) {
    try {
      const Store rows = Store::open(path);
      verify(rows, 1);
      std::string state = std::to_string(rows.info().id);
      if (columns_state(rows) == ColumnsState::absent) return state + ", no columns";
      const Store columns = Store::open(columns_path(path));
      verify(columns, 1);
      return state + ", columns " + std::to_string(columns.info().id);
    } catch (const Error& error) {
      return std::string("damaged: ") + error.what();
    }
  }

  void expect_next_try_works(const std::string& path) {
    if (state_of(path) == before_) work_on(path);
    ASSERT_EQ(state_of(path), after_);
  }

  const MemoryFolder folder_;
  const std::string root_ = folder_ / "disk";
  const std::string old_ = folder_ / "old";
  const std::string store_ = root_ + "/store";
  std::string before_;
  std::string after_;
};

TEST_P(FaultyTranspose, WithAFailingCallLeavesOldColumnsOrNewOnesAndNoOtherFiles) {
  int undone = 0;
  for (const bool later_calls_too : {false, true})
    for (uint64_t number = 1;; ++number) {
      copy_store(old_, store_);
      FailingCall failing(number, later_calls_too ? ENOSPC : EIO, later_calls_too);
      std::optional<Error> error;
      {
        const ScopedHook hook(std::ref(failing));
        error = error_of([&] { work_on(store_); });
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
      const bool removing = failing.call().kind == FileCall::Kind::remove;
      if (found == before_ && !later_calls_too && !removing) {
        EXPECT_EQ(std::filesystem::exists(columns_path(store_)), GetParam() == Before::stale);
        if (GetParam() == Before::stale) {
          EXPECT_TRUE(files_of(columns_path(store_)) == files_of(columns_path(old_)));
        }
      }
      if (number % 4 == 0) {  // it takes as long as all the rest
        ASSERT_NO_FATAL_FAILURE(expect_next_try_works(store_));
      }
    }
  EXPECT_GT(undone, 50);
}

TEST_P(FaultyTranspose, WithoutPowerLeavesOldColumnsOrNewOnes) {
  using Keep = PowerCut::Keep;
  for (uint64_t number = 1;; ++number) {
    copy_store(old_, store_);
    PowerCut power(root_, number);
    std::optional<Error> error;
    {
      // Rows are read on another thread; reading changes nothing on a disk.
      const ScopedHook hook([&](const FileCall& call) {
        const bool reads = call.kind == FileCall::Kind::read || call.kind == FileCall::Kind::open;
        return reads ? FileVerdict{} : power(call);
      });
      error = error_of([&] { work_on(store_); });
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

INSTANTIATE_TEST_SUITE_P(Store, FaultyTranspose, ::testing::Values(Before::absent, Before::stale),
                         [](const auto& before) -> std::string {
                           return before.param == Before::absent ? "WithoutColumns" : "WithStaleColumns";
                         });

}  // namespace
}  // namespace linblock::test
