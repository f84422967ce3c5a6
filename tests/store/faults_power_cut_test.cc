// The power goes at the N-th file call, for every N, and takes with it what was not synced: the store is the old one or
// the new one, whole; and once pack() or append() has returned it is the new one.
#include <gtest/gtest.h>

#include "support/damage.h"
#include "support/file_hooks.h"
#include "support/memory_folder.h"
#include "support/power_cut.h"

namespace linblock::test {
namespace {

class PowerCuts : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(root_);
    write_file(folder_ / "first.svm", text_of(first_));
    write_file(folder_ / "second.svm", text_of(second_));
  }

  void pack_first(const std::string& path) { pack({folder_ / "first.svm"}, path, small_options("lz4")); }
  void append_second(const std::string& path) { append({folder_ / "second.svm"}, path, small_options("lz4")); }

  enum class State { absent, first, both, damaged };

  State state_of(const std::string& path) {
    if (!std::filesystem::exists(path)) return State::absent;
    const std::optional<Error> error = error_of([&] { open_and_verify(path); });
    if (error) {
      why_ = error->what();
      return State::damaged;
    }
    const auto rows = verified_rows(path);
    return rows == first_ ? State::first : rows == joined(first_, second_) ? State::both : State::damaged;
  }

  // Cuts `work` at every call; `judge` is asked about each folder that may be found afterwards, and whether the work
  // had ended. Returns the number of calls.
  template <typename Reset, typename Work, typename Judge>
  uint64_t cut_everywhere(Reset&& reset, Work&& work, Judge&& judge) {
    using Keep = PowerCut::Keep;
    for (uint64_t number = 1;; ++number) {
      reset();
      PowerCut power(root_, number);
      std::optional<Error> error;
      {
        const ScopedHook hook(std::ref(power));
        error = error_of(work);
      }
      EXPECT_EQ(error.has_value(), power.happened());
      const std::string after = folder_ / "after";
      for (uint64_t variant = 0; variant < 6; ++variant) {
        const Keep keep = variant == 0 ? Keep::synced : variant == 1 ? Keep::names : Keep::some_of_it_all;
        power.survivors(after, keep, number * 100 + variant);
        SCOPED_TRACE(::testing::Message() << "cut at call " << number << ", variant " << variant);
        judge(after + "/store", !power.happened());
        if (HasFatalFailure()) return number;
      }
      if (!power.happened()) return number - 1;
    }
  }

  const MemoryFolder folder_;
  const std::string root_ = folder_ / "disk";
  const std::string store_ = root_ + "/store";
  const std::vector<OwnedRow> first_ = sample_rows(300, 1, 0, 200);
  const std::vector<OwnedRow> second_ = sample_rows(150, 2, 300, 250);
  std::string why_;
};

TEST_F(PowerCuts, InPackLeaveNoStoreOrAWholeOne) {
  const auto reset = [&] {
    std::filesystem::remove_all(store_);
    std::filesystem::remove_all(store_ + ".partial");
  };
  const auto judge = [&](const std::string& found, bool ended) {
    const State state = state_of(found);
    ASSERT_TRUE(state == State::first || (!ended && state == State::absent)) << why_;
    if (state == State::absent) pack_first(found);
    ASSERT_EQ(state_of(found), State::first);
  };
  EXPECT_GT(cut_everywhere(
                reset, [&] { pack_first(store_); }, judge),
            20U);
}

TEST_F(PowerCuts, InAppendLeaveTheOldStoreOrTheNewOne) {
  const std::string old = folder_ / "old";
  pack_first(old);
  const auto reset = [&] { copy_store(old, store_); };
  const auto judge = [&](const std::string& found, bool ended) {
    const State state = state_of(found);
    ASSERT_TRUE(state == State::both || (!ended && state == State::first)) << why_;
    if (state == State::first) append_second(found);
    ASSERT_EQ(state_of(found), State::both);
  };
  EXPECT_GT(cut_everywhere(
                reset, [&] { append_second(store_); }, judge),
            20U);
}

// --- the model itself: it must see the classic mistakes ------------------------------------------------------------

std::span<const unsigned char> bytes_of(const std::string& text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

TEST_F(PowerCuts, LoseAFileThatWasNotSynced) {
  PowerCut power(root_, 0);
  {
    const ScopedHook hook(std::ref(power));
    const File file = File::create(root_ + "/file", "");
    file.write_at(bytes_of("contents"), 0);
    sync_directory(root_);
  }
  power.survivors(folder_ / "after", PowerCut::Keep::synced);
  EXPECT_EQ(read_file(folder_ / "after/file"), "");
}

TEST_F(PowerCuts, LoseANameWhoseFolderWasNotSynced) {
  write_file(root_ + "/file", "old");
  PowerCut power(root_, 0);
  {
    const ScopedHook hook(std::ref(power));
    const File file = File::create(root_ + "/new", "");
    file.write_at(bytes_of("new"), 0);
    file.sync();
    rename_path(root_ + "/new", root_ + "/file");
  }
  power.survivors(folder_ / "after", PowerCut::Keep::synced);
  EXPECT_EQ(read_file(folder_ / "after/file"), "old");
  power.survivors(folder_ / "after", PowerCut::Keep::names);
  EXPECT_EQ(read_file(folder_ / "after/file"), "new");
}

TEST_F(PowerCuts, KeepWhatReplaceFileHasWritten) {
  write_file(root_ + "/file", "old");
  PowerCut power(root_, 0);
  {
    const ScopedHook hook(std::ref(power));
    replace_file(root_ + "/file", bytes_of("new"), "");
  }
  power.survivors(folder_ / "after", PowerCut::Keep::synced);
  EXPECT_EQ(read_file(folder_ / "after/file"), "new");
  EXPECT_EQ(names_in(folder_ / "after"), std::vector<std::string>{"file"});
}

}  // namespace
}  // namespace linblock::test
