// The active rows of indexed block descent: all in memory, or sliding through files in their turn.
#include "solve/indexed/active_rows.h"

#include <gtest/gtest.h>

#include "support/chunks.h"
#include "support/errors.h"
#include "support/memory_folder.h"
#include "support/small_problems.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

class Active : public testing::Test {
 protected:
  // Every row of the data is active, with its number as alpha.
  void fill(ActiveRows& active) const {
    RowBuffer buffer;
    for (uint32_t c = 0; c < chunks_.size(); ++c)
      for (uint32_t i = 0; i < chunks_[c].rows(); ++i) {
        active.add({c, i}, chunks_[c].encoded(i, buffer));
        active.alpha(active.size() - 1) = static_cast<double>(active.size() - 1);
      }
  }
  void expect_row(const ActiveRows& active, size_t number) const {
    RowBuffer buffer;
    OwnedRow row = own(active.row(number, buffer));
    row.id = number;
    EXPECT_EQ(row, original_[number]);
    EXPECT_EQ(active.alpha(number), static_cast<double>(number));
  }

  const MemoryFolder folder_;
  const Data data_ = make_data(3000, 20, 1);
  const Store store_ = write_rows(folder_ / "store", data_.rows);
  const std::vector<Chunk> chunks_ = chunks_of(store_);
  const std::vector<OwnedRow> original_ = rows_in_order(store_);
};

TEST_F(Active, AreAllHereWhereTheyFit) {
  ActiveRows active(store_, uint64_t{64} << 20, "");
  fill(active);
  ASSERT_EQ(active.size(), 3000U);
  EXPECT_EQ(active.bring(0, 3000), 3000U);
  for (size_t i = 0; i < active.size(); ++i) expect_row(active, i);
  EXPECT_FALSE(active.in_files());
  EXPECT_EQ(active.take_bytes_read(), 0U);
}

TEST_F(Active, SlideThroughFilesWhereTheyDoNotFit) {
  constexpr uint64_t kBytes = 100'000;
  ActiveRows active(store_, kBytes, folder_ / "active-");
  fill(active);
  EXPECT_TRUE(active.in_files());
  EXPECT_GT(active.bytes(), 3 * kBytes);
  for (int round = 0; round < 3; ++round)
    for (size_t first = 0; first < active.size();) {
      const size_t count = active.bring(first, active.size() - first);
      ASSERT_GT(count, 0U);
      for (size_t i = first; i < first + count; ++i) expect_row(active, i);
      EXPECT_LE(active.bytes_here(), kBytes);
      first += count;
    }
  EXPECT_GT(active.take_bytes_read(), 2 * kBytes);
  EXPECT_EQ(active.take_bytes_read(), 0U);
}

TEST_F(Active, AWalkMeetsEachOnceAndReadsNoMoreThanDoesNotFit) {
  constexpr uint64_t kBytes = 300'000;
  ActiveRows active(store_, kBytes, folder_ / "active-");
  fill(active);
  ASSERT_TRUE(active.in_files());
  const uint64_t too_many = active.bytes() - kBytes;
  for (int round = 0; round < 3; ++round) {
    std::vector<int> met(active.size());
    active.walk([&](const ActiveRows::Ranges& here) {
      for (const auto& [first, end] : here)
        for (size_t i = first; i < end; ++i) {
          expect_row(active, i);
          ++met[i];
        }
      EXPECT_LE(active.bytes_here(), kBytes);
    });
    EXPECT_EQ(met, std::vector<int>(active.size(), 1));
    EXPECT_LE(active.take_bytes_read(), too_many + kBytes / 8) << "more than what did not fit, and a segment or two";
  }
}

TEST_F(Active, KeepThePinnedOnesWhileOthersCome) {
  ActiveRows active(store_, 100'000, folder_ / "active-");
  fill(active);
  ASSERT_GT(active.bring(0, 100, 50), 0U);
  for (size_t i = 2950; i < 3000; ++i) expect_row(active, i);
}

TEST_F(Active, RefuseToGrowBeyondTheMemoryWithoutFiles) {
  ActiveRows active(store_, 100'000, "");
  EXPECT_THAT([&] { fill(active); }, fails_with(ErrorKind::memory, "the rows near the margin need more than"));
}

TEST_F(Active, AreTheSameAfterACheckpoint) {
  ActiveRows active(store_, 100'000, folder_ / "active-");
  fill(active);
  active.set_out(7, true);
  {
    SnapshotWriter file(folder_ / "checkpoint");
    FieldWriter to(file);
    to("active", active);
    file.commit();
  }
  ActiveRows again(store_, 100'000, folder_ / "active-");
  FieldReader from(folder_ / "checkpoint");
  from("active", again);
  from.finish();
  ASSERT_EQ(again.size(), active.size());
  EXPECT_EQ(again.bytes(), active.bytes());
  EXPECT_EQ(again.bytes_here(), active.bytes_here());
  EXPECT_TRUE(again.is_out(7));
  EXPECT_FALSE(again.is_out(8));
  for (size_t first = 0; first < again.size();) {
    const size_t count = again.bring(first, again.size() - first);
    for (size_t i = first; i < first + count; ++i) expect_row(again, i);
    first += count;
  }
}

TEST_F(Active, RefuseAFileThatIsDamaged) {
  ActiveRows active(store_, 100'000, folder_ / "active-");
  fill(active);
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    if (!entry.path().filename().string().starts_with("active-")) continue;
    std::filesystem::resize_file(entry.path(), 1000);
    ++files;
  }
  ASSERT_GT(files, 3U);
  const auto bring_all = [&] {
    for (size_t first = 0; first < active.size();) first += active.bring(first, active.size() - first);
  };
  EXPECT_THAT(bring_all, fails_with(ErrorKind::damaged, "active-"));
}

TEST_F(Active, OfWhichSomeAreKeptStayInTheirOrder) {
  ActiveRows active(store_, uint64_t{1} << 20, "");
  fill(active);
  std::vector<uint8_t> keep(active.size());
  for (size_t i = 0; i < keep.size(); ++i) keep[i] = i % 3 == 0 || (i > 1000 && i < 1200) ? 1 : 0;
  std::vector<size_t> left;
  for (size_t i = 0; i < keep.size(); ++i)
    if (keep[i] != 0) left.push_back(i);
  active.keep(keep);
  ASSERT_EQ(active.size(), left.size());
  RowBuffer buffer;
  for (size_t i = 0; i < left.size(); ++i) {
    EXPECT_EQ(active.alpha(i), static_cast<double>(left[i]));
    OwnedRow row = own(active.row(i, buffer));
    row.id = left[i];
    EXPECT_EQ(row, original_[left[i]]);
  }
  active.add({0, 0}, chunks_[0].encoded(0, buffer));
  EXPECT_EQ(active.row(left.size(), buffer).label, original_[0].label);
}

}  // namespace
}  // namespace linblock
