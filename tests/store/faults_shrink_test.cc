// Removing rows and compacting when the N-th file call fails, for every N, or the power goes at it: the store before or
// after, whole, and the next try works.
#include "store/core/compact.h"
#include "store/core/remove.h"
#include "support/damage.h"
#include "support/faulty_work.h"

namespace linblock::test {
namespace {

enum class Work { remove_rows, remove_segment, compact };

class Shrinking : public FaultyWork<Work> {
 protected:
  // Something was removed before, so that there is an old list to be replaced.
  void SetUp() override {
    make_small_store(old_, "lz4");
    remove_rows(old_, {.ids = {2, 50, 330}});
    learn_states();
    files_before_ = files_of(old_);
  }

  void work_on(const std::string& store) override {
    switch (GetParam()) {
      case Work::remove_rows: remove_rows(store, {.ids = {7, 51, 409, 3}}, {.team = threads_}); break;
      case Work::remove_segment: remove_segment(store, 1, {.team = threads_}); break;
      case Work::compact: compact(store, {.team = threads_}); break;
    }
  }

  // All that makes a store, and what its rows are; or why it is none.
  std::string state_of(const std::string& path) override {
    try {
      const Store store = Store::open(path);
      verify(store, 1);
      return std::to_string(store.info().id) + "\n" + text_of(rows_in_order(store));
    } catch (const Error& error) {
      return std::string("damaged: ") + error.what();
    }
  }

  // Whatever it has left, the next try works; and no file is there that nobody names.
  void expect_next_try_works(const std::string& store) override {
    if (state_of(store) == before_) work_on(store);
    ASSERT_EQ(state_of(store), after_);
    remove_rows(store, {.ids = {405}});
    open_and_verify(store);
    const StoreInfo info = read_manifest(store);
    size_t files = 3 + 2 * info.segments.size() + (info.removed.rows > 0 ? 1 : 0);
    files += std::filesystem::exists(store + "/MANIFEST.new") ? 1 : 0;
    EXPECT_EQ(names_in(store).size(), files) << ::testing::PrintToString(names_in(store));
  }

  void expect_as_before() override {
    EXPECT_TRUE(files_of(store_) == files_before_) << ::testing::PrintToString(names_in(store_));
  }

  size_t threads_ = 1;
  decltype(files_of("")) files_before_;
};

TEST_P(Shrinking, WithAFailingCallLeavesTheOldStoreOrTheNewOneAndNoOtherFiles) {
  for (const bool later_calls_too : {false, true})
    for (const int code : {EIO, ENOSPC})
      for (threads_ = 1; threads_ <= 2; ++threads_) fail_every_call(code, later_calls_too, 1);
  EXPECT_GT(undone_, 50);
  EXPECT_GT(done_, 5);
}

TEST_P(Shrinking, WithoutPowerLeavesTheOldStoreOrTheNewOne) { cut_power_at_every_call(6); }

INSTANTIATE_TEST_SUITE_P(Store, Shrinking, ::testing::Values(Work::remove_rows, Work::remove_segment, Work::compact),
                         [](const auto& work) -> std::string {
                           return work.param == Work::remove_rows      ? "RemovingRows"
                                  : work.param == Work::remove_segment ? "RemovingASegment"
                                                                       : "Compacting";
                         });

}  // namespace
}  // namespace linblock::test
