// Indexing when the N-th file call fails, for every N, or the power goes at it: an index as before (absent, or behind)
// or the new one, whole, the rows untouched, and the next try works.
#include "support/faulty_work.h"
#include "support/forest.h"

namespace linblock::test {
namespace {

class FaultyForest : public FaultyWork<ForestState> {
 protected:
  void SetUp() override {
    pack_rows(sample_rows(1200), old_, small_options());
    if (GetParam() == ForestState::behind) {
      make_forest(old_);
      append_rows(sample_rows(600, 5, 1200), old_, small_options());
    }
    ASSERT_EQ(forest_state(Store::open(old_)), GetParam());
    learn_states();
  }

  void work_on(const std::string& path) override { make_forest(path); }

  // Which rows and which index there are, all of it verified; or what is wrong.
  std::string state_of(const std::string& path) override {
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

  void expect_as_before() override {
    EXPECT_EQ(std::filesystem::exists(index_path(store_)), GetParam() == ForestState::behind);
    if (GetParam() == ForestState::behind) {
      EXPECT_TRUE(files_of(index_path(store_)) == files_of(index_path(old_)));
    }
  }
};

TEST_P(FaultyForest, WithAFailingCallLeavesTheOldIndexOrTheNewOneAndNoOtherFiles) {
  fail_every_call(EIO, false, 4);
  fail_every_call(ENOSPC, true, 4);
  EXPECT_GT(undone_, 50);
}

TEST_P(FaultyForest, WithoutPowerLeavesTheOldIndexOrTheNewOne) { cut_power_at_every_call(4); }

INSTANTIATE_TEST_SUITE_P(Store, FaultyForest, ::testing::Values(ForestState::absent, ForestState::behind),
                         [](const auto& before) -> std::string {
                           return before.param == ForestState::absent ? "WithoutIndex" : "WithAnIndexBehind";
                         });

}  // namespace
}  // namespace linblock::test
