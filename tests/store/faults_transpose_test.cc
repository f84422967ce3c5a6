// Transposing when the N-th file call fails, for every N, or the power goes at it: columns as before (absent, or the
// stale ones) or new, whole, the rows untouched, and the next try works.
#include "support/columns.h"
#include "support/faulty_work.h"

namespace linblock::test {
namespace {

enum class Before { absent, stale };

class FaultyTranspose : public FaultyWork<Before> {
 protected:
  // More entries than the least memory sorts at once, so that there are spills.
  void SetUp() override {
    PackOptions options = small_options();
    options.chunk_bytes = 65536;
    pack_rows(sample_rows(14000), old_, options);
    if (GetParam() == Before::stale) {
      transpose(Store::open(old_), {});
      append_rows(sample_rows(10, 5, 14000), old_, options);
    }
    learn_states();
    EXPECT_GT(spilled_bytes_, 0U);
  }

  void work_on(const std::string& path) override {
    const Store rows = Store::open(path);
    TransposeOptions options;
    options.memory_bytes = least_transpose_memory(rows, options);
    spilled_bytes_ = transpose(rows, options).spilled_bytes;
  }

  // Which rows and which columns there are, all of them verified; or what is wrong.
  std::string state_of(const std::string& path) override {
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

  void expect_as_before() override {
    EXPECT_EQ(std::filesystem::exists(columns_path(store_)), GetParam() == Before::stale);
    if (GetParam() == Before::stale) {
      EXPECT_TRUE(files_of(columns_path(store_)) == files_of(columns_path(old_)));
    }
  }

  uint64_t spilled_bytes_ = 0;
};

TEST_P(FaultyTranspose, WithAFailingCallLeavesOldColumnsOrNewOnesAndNoOtherFiles) {
  fail_every_call(EIO, false, 4);
  fail_every_call(ENOSPC, true, 4);
  EXPECT_GT(undone_, 50);
}

TEST_P(FaultyTranspose, WithoutPowerLeavesOldColumnsOrNewOnes) { cut_power_at_every_call(4); }

INSTANTIATE_TEST_SUITE_P(Store, FaultyTranspose, ::testing::Values(Before::absent, Before::stale),
                         [](const auto& before) -> std::string {
                           return before.param == Before::absent ? "WithoutColumns" : "WithStaleColumns";
                         });

}  // namespace
}  // namespace linblock::test
