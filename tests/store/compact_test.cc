// A store rewritten as one segment: the same rows under the same ids, without the removed ones.
#include "store/core/compact.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <atomic>

#include "store/core/remove.h"
#include "store/core/store_writer.h"
#include "support/arbitrary_rows.h"
#include "support/memory_folder.h"
#include "support/packing.h"

namespace linblock::test {
namespace {

class Compact : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    pack_rows(sample_rows(3000, 1, 0, 400, true), store_, small_options(GetParam()));
    append_rows(sample_rows(800, 2, 3000, 500), store_, small_options());
    append_rows(sample_rows(700, 3, 3800, 5000), store_, small_options());
    std::vector<uint64_t> ids;
    for (uint64_t id = 0; id < 4500; id += 1 + id % 5) ids.push_back(id);
    remove_rows(store_, {.ids = ids});
    left_ = verified_rows(store_);
    ASSERT_EQ(left_.size(), 4500 - ids.size());
  }
  StoreInfo info() const { return Store::open(store_).info(); }

  const MemoryFolder folder_;
  const std::string store_ = folder_ / "store";
  std::vector<OwnedRow> left_;
};

TEST_P(Compact, KeepsEveryRowThatIsLeft) {
  const StoreInfo before = info();
  const CompactReport report = compact(store_, {.team = 2});
  EXPECT_TRUE(report.changed);
  EXPECT_EQ(report.segments_before, 3U);
  EXPECT_EQ(report.removed_rows, 4500 - left_.size());
  EXPECT_LT(report.bytes, report.bytes_before);
  EXPECT_TRUE(verified_rows(store_) == left_);
  EXPECT_TRUE(rows_by_chunk(Store::open(store_)) == left_);
  const StoreInfo after = info();
  EXPECT_EQ(after.bytes(), report.bytes);
  EXPECT_EQ(after.segments.size(), 1U);
  EXPECT_EQ(after.segments[0].number, 4U);
  EXPECT_EQ(after.segments[0].first_row, left_[0].id);
  EXPECT_EQ(after.removed.rows, 0U);
  EXPECT_EQ(after.rows, before.rows);
  EXPECT_EQ(after.nonzeros, before.nonzeros);
  EXPECT_EQ(after.labels, before.labels);
  EXPECT_EQ(after.next_row_id, before.next_row_id);
  EXPECT_EQ(after.largest_index, before.largest_index);
  EXPECT_EQ(after.chunk_bytes, before.chunk_bytes);
  EXPECT_EQ(after.codec, before.codec);
  EXPECT_EQ(after.seal, before.seal);
  EXPECT_TRUE(after.weighted);
  EXPECT_EQ(names_in(store_), (std::vector<std::string>{"FEATURES", "LOCK", "MANIFEST", "segment-000004.directory",
                                                        "segment-000004.rows"}));
}

TEST_P(Compact, LeavesRowsWhereTheyCanBeFound) {
  compact(store_, {});
  const Store store = Store::open(store_);
  std::vector<uint64_t> ids;
  for (size_t i = 0; i < left_.size(); i += 11) ids.push_back(left_[i].id);
  RowBlock block;
  store.gather(ids, block);
  RowBuffer buffer;
  ASSERT_EQ(block.size(), ids.size());
  for (size_t i = 0; i < ids.size(); ++i)
    ASSERT_EQ(original(block.row(i, buffer), store.features()), left_[i * 11]) << ids[i];
  expect_error(ErrorKind::input, {"row 0 is not in"}, [&] { store.gather(std::vector<uint64_t>{0}, block); });
}

TEST_P(Compact, GivesTheSameBytesOnAnyNumberOfThreads) {
  std::map<std::string, std::string> expected;
  for (const size_t threads : {1U, 2U, 3U, 7U}) {
    const std::string path = folder_ / ("copy" + std::to_string(threads));
    copy_store(store_, path);
    compact(path, {.team = threads});
    if (expected.empty()) expected = files_of(path);
    EXPECT_TRUE(files_of(path) == expected) << threads;
  }
}

TEST_P(Compact, LetsTheStoreGrowAndShrinkAgain) {
  compact(store_, {});
  const auto more = sample_rows(100, 4, 4500);
  append_rows(more, store_, small_options());
  EXPECT_TRUE(verified_rows(store_) == joined(left_, more));
  remove_rows(store_, {.ids = {left_[5].id, 4599}});
  EXPECT_EQ(info().removed.number, 2U);
  compact(store_, {});
  auto rows = joined(left_, more);
  rows.pop_back();
  rows.erase(rows.begin() + 5);
  EXPECT_TRUE(verified_rows(store_) == rows);
  EXPECT_EQ(info().segments[0].number, 6U);
}

TEST_P(Compact, DoesNotDisturbAReader) {
  const Store reader = Store::open(store_);
  compact(store_, {});
  EXPECT_TRUE(rows_in_order(reader) == left_);
  verify(reader, 2);
}

INSTANTIATE_TEST_SUITE_P(Store, Compact, ::testing::Values("none", "lz4", "zstd", "zlib"),
                         [](const auto& codec) { return std::string(codec.param); });

class CompactOnce : public Compact {};

TEST_P(CompactOnce, HasNothingToDoASecondTime) {
  compact(store_, {});
  const auto before = files_of(store_);
  const CompactReport report = compact(store_, {});
  EXPECT_FALSE(report.changed);
  EXPECT_EQ(report.bytes, info().bytes());
  EXPECT_TRUE(files_of(store_) == before);
}

TEST_P(CompactOnce, MergesSegmentsWithoutRemovedRows) {
  compact(store_, {});
  const auto more = sample_rows(100, 4, 4500);
  append_rows(more, store_, small_options());
  EXPECT_TRUE(compact(store_, {}).changed);
  EXPECT_EQ(info().segments.size(), 1U);
  EXPECT_TRUE(verified_rows(store_) == joined(left_, more));
}

TEST_P(CompactOnce, OfAStoreInTheOrderOfItsInputKeepsThatOrder) {
  const std::string path = folder_ / "ordered";
  PackOptions options = small_options();
  options.shuffle = false;
  pack_rows(sample_rows(500), path, options);
  append_rows(sample_rows(500, 2, 500), path, options);
  remove_rows(path, {.ids = {0, 499, 500, 999}});
  const auto rows = verified_rows(path);
  compact(path, {.team = 3});
  EXPECT_TRUE(verified_rows(path) == rows);
  uint64_t last = 0;
  const Store store = Store::open(path);
  for (const ChunkInfo& chunk : store.chunks()) {
    EXPECT_GT(chunk.first_row, last);
    last = chunk.first_row;
  }
}

TEST_P(CompactOnce, InTooLittleMemoryIsRefusedAndChangesNothing) {
  const auto before = files_of(store_);
  expect_error(ErrorKind::memory, {"to compact this store", "give memory"},
               [&] { compact(store_, {.memory_bytes = 1 << 20}); });
  EXPECT_TRUE(files_of(store_) == before);
}

TEST_P(CompactOnce, ToldToStopChangesNothing) {
  const auto before = files_of(store_);
  for (const size_t threads : {1U, 3U}) {
    std::atomic<bool> stop = false;
    CompactContext context{.stop = &stop};
    context.observer = [&](uint64_t bytes, uint64_t total) { stop = bytes > total / 2; };
    expect_error(ErrorKind::interrupted, {"as it was"}, [&] { compact(store_, {.team = threads}, context); });
    EXPECT_TRUE(files_of(store_) == before) << ::testing::PrintToString(names_in(store_));
  }
}

TEST_P(CompactOnce, OfADamagedStoreIsRefusedAndChangesNothing) {
  std::string bytes = read_file(store_ + "/segment-000002.rows");
  bytes[5000] = static_cast<char>(bytes[5000] ^ 1);
  write_file(store_ + "/segment-000002.rows", bytes);
  const auto before = files_of(store_);
  for (const size_t threads : {1U, 3U})
    expect_error(ErrorKind::damaged, {"segment-000002.rows", "chunk 0"}, [&] { compact(store_, {.team = threads}); });
  EXPECT_TRUE(files_of(store_) == before);
}

TEST_P(CompactOnce, IsRefusedWhileAnotherWriterIsAtWork) {
  const auto writer = StoreWriter::append_to(store_);
  expect_error(ErrorKind::io, {store_, "in use", "appending"}, [&] { compact(store_, {}); });
}

INSTANTIATE_TEST_SUITE_P(Store, CompactOnce, ::testing::Values("lz4"));

TEST(CompactOfAnything, GivesTheRowsThatWereLeft) {
  EXPECT_TRUE(rc::check([] {
    const auto rows = *arbitrary_rows(1, true);
    if (rows.size() < 2) return;
    const MemoryFolder folder;
    const std::string path = folder / "store";
    pack_rows(rows, path, small_options());
    RowList gone;
    for (uint64_t id = 0; id < rows.size(); ++id)
      if (*rc::gen::inRange(0, 3) == 0 && gone.ids.size() + 1 < rows.size()) gone.ids.push_back(id);
    if (gone.ids.empty()) gone.ids.push_back(0);
    remove_rows(path, gone);
    const auto left = verified_rows(path);
    RC_ASSERT(left.size() == rows.size() - gone.ids.size());
    compact(path, {.team = 2});
    RC_ASSERT(same_rows(verified_rows(path), left));
  }));
}

}  // namespace
}  // namespace linblock::test
