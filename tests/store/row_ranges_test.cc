// Ranges of row ids: read from options and lists, and removed.
#include <gtest/gtest.h>

#include "store/core/compact.h"
#include "store/core/remove.h"
#include "store/core/removed_rows.h"
#include "support/memory_folder.h"
#include "support/packing.h"

namespace linblock::test {
namespace {

class Ranges : public ::testing::Test {
 protected:
  void SetUp() override {
    rows_ = sample_rows(1500, 1, 0, 300, true);
    pack_rows({rows_.begin(), rows_.begin() + 1000}, store_, small_options("lz4"));
    append_rows({rows_.begin() + 1000, rows_.end()}, store_, small_options());
    ASSERT_GT(Store::open(store_).info().buckets, 1U);
  }
  RowList list(const std::string& text) const {
    write_file(folder_ / "rows", text);
    return read_row_list(folder_ / "rows");
  }
  std::vector<OwnedRow> without(const std::function<bool(uint64_t)>& gone) const {
    std::vector<OwnedRow> rows = rows_;
    std::erase_if(rows, [&](const OwnedRow& row) { return gone(row.id); });
    return rows;
  }
  void expect_refused(const std::string& text, const std::vector<std::string>& parts) const {
    SCOPED_TRACE(text);
    const auto before = files_of(store_);
    expect_error(ErrorKind::input, parts, [&] { remove_rows(store_, list(text)); });
    EXPECT_TRUE(files_of(store_) == before);
  }

  const MemoryFolder folder_;
  const std::string store_ = folder_ / "store";
  std::vector<OwnedRow> rows_;
};

TEST_F(Ranges, TakeTheirRowsAtBothEnds) {
  const RemoveReport report = remove_rows(store_, {.ranges = {{.first = 100, .last = 200}}}, {.team = 3});
  EXPECT_EQ(report.rows, 101U);
  EXPECT_EQ(verified_rows(store_), without([](uint64_t id) { return id >= 100 && id <= 200; }));
}

TEST_F(Ranges, OfAListStandBesideSingleIds) {
  const RowList rows = list("# some\n1490-1499\n7\n100-200 # more\n\n5-5\n1200\n");
  EXPECT_EQ(rows.ids, (std::vector<uint64_t>{7, 1200}));
  ASSERT_EQ(rows.ranges.size(), 3U);
  EXPECT_EQ(rows.ranges[1].line, 4U);
  EXPECT_EQ(remove_rows(store_, rows).rows, 2U + 10 + 101 + 1);
  EXPECT_EQ(verified_rows(store_), without([](uint64_t id) {
              return id == 7 || id == 1200 || id == 5 || id >= 1490 || (id >= 100 && id <= 200);
            }));
}

TEST_F(Ranges, TakeWhatIsStillThere) {
  remove_rows(store_, {.ids = {100, 150, 200}});
  compact(store_, {});
  remove_rows(store_, {.ids = {101}});
  EXPECT_EQ(remove_rows(store_, {.ranges = {{.first = 100, .last = 200}}}).rows, 97U);
  EXPECT_EQ(remove_rows(store_, {.ranges = {{.first = 1400, .last = UINT64_MAX}}}).rows, 100U);
  EXPECT_EQ(verified_rows(store_), without([](uint64_t id) { return id >= 1400 || (id >= 100 && id <= 200); }));
}

TEST_F(Ranges, OverAWholeSegmentTakeItsFilesToo) {
  const RemoveReport report = remove_rows(store_, {.ranges = {{.first = 990, .last = 1499}}});
  EXPECT_EQ(report.rows, 510U);
  EXPECT_EQ(report.segments, std::vector<uint64_t>{2});
  const StoreInfo info = read_manifest(store_);
  EXPECT_EQ(info.removed.rows, 10U);
  EXPECT_EQ(info.new_segment_number(), 3U);
  EXPECT_FALSE(std::filesystem::exists(segment_path(store_, 2)));
  EXPECT_EQ(verified_rows(store_), without([](uint64_t id) { return id >= 990; }));
  append_rows(sample_rows(5, 3, 1500), store_, small_options());
  EXPECT_EQ(verified_rows(store_).size(), 995U);
}

// What is left of it was removed before, and counts as removed no longer.
TEST_F(Ranges, OverTheRestOfASegmentTakeItsFilesToo) {
  remove_rows(store_, {.ranges = {{.first = 900, .last = 1399}}});
  EXPECT_EQ(read_manifest(store_).removed.rows, 500U);
  const RemoveReport report = remove_rows(store_, {.ranges = {{.first = 1400, .last = 1499}}});
  EXPECT_EQ(report.segments, std::vector<uint64_t>{2});
  EXPECT_EQ(read_manifest(store_).removed.rows, 100U);
  EXPECT_EQ(verified_rows(store_), without([](uint64_t id) { return id >= 900; }));
}

// Earlier versions kept a segment whose rows had all been removed by their ids.
TEST_F(Ranges, ASegmentWithoutRowsCanStillBeRemoved) {
  const StoreInfo before = read_manifest(store_);
  copy_store(store_, folder_ / "other");
  remove_segment(folder_ / "other", 2);
  StoreInfo info = read_manifest(folder_ / "other");
  info.segments = before.segments;
  info.next_segment = 0;
  std::vector<uint64_t> ids;
  for (uint64_t id = 1000; id < 1500; ++id) ids.push_back(id);
  write_removed(store_, info, ids);
  info.removed.nonzeros = before.segments[1].nonzeros;
  write_manifest(store_, info);
  const auto first = without([](uint64_t id) { return id >= 1000; });
  ASSERT_EQ(verified_rows(store_), first);
  copy_store(store_, folder_ / "dead");
  const RemoveReport report = remove_segment(store_, 2);
  EXPECT_EQ(report.rows, 0U);
  EXPECT_EQ(report.segments, std::vector<uint64_t>{2});
  EXPECT_EQ(read_manifest(store_).removed.rows, 0U);
  EXPECT_EQ(verified_rows(store_), first);
  EXPECT_EQ(remove_rows(folder_ / "dead", {.ranges = {{.first = 900, .last = 1499}}}).rows, 100U);
  EXPECT_EQ(verified_rows(folder_ / "dead"), without([](uint64_t id) { return id >= 900; }));
}

TEST_F(Ranges, GiveTheSameStoreForAnyNumberOfThreads) {
  copy_store(store_, folder_ / "other");
  const RowList rows = {.ids = {1}, .ranges = {{.first = 10, .last = 700}, {.first = 1000, .last = 1100}}};
  remove_rows(store_, rows, {.team = 1});
  remove_rows(folder_ / "other", rows, {.team = 4});
  EXPECT_TRUE(files_of(store_) == files_of(folder_ / "other"));
}

TEST_F(Ranges, WithMistakesAreRefusedAndNothingIsRemoved) {
  expect_refused("1\n2000-3000\n", {"rows:2:1: rows 2000-3000 are not in", "nothing was removed"});
  expect_refused("1-10\n10-20\n", {"rows:2:1: rows 10-20 are listed twice in part"});
  expect_refused("10-20\n1-10\n", {"rows:2:1: rows 1-10 are listed twice in part"});
  expect_refused("5\n1-10\n", {"rows:1:1: row 5 is listed twice: it is in a range too"});
  expect_refused("20-10\n", {"rows:1:1: '20-10' is not a row id", "such as 100-200"});
  expect_refused("1-2-3\n", {"rows:1:1: '1-2-3' is not a row id"});
  expect_refused("-3\n", {"rows:1:1: '-3' is not a row id"});
  expect_refused("0-1499\n", {"all rows"});
  remove_rows(store_, {.ranges = {{.first = 30, .last = 40}}});
  expect_refused("30-40\n", {"rows 30-40 are not in"});
}

TEST(RowRangesOption, IsReadAndShown) {
  const auto ranges = RowRanges::read("100-200,7-7");
  ASSERT_TRUE(ranges);
  EXPECT_EQ(ranges->show(), "100-200,7-7");
  for (const char* bad : {"", "5", "a-b", "1-", "-1", "2-1", "1-2,", "1-2,x", "1 - 2", "99999999999999999999-1"})
    EXPECT_FALSE(RowRanges::read(bad)) << bad;
}

}  // namespace
}  // namespace linblock::test
