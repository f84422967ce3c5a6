// Rows added to a store: a new segment under the old options, and nobody who reads the old one is disturbed.
#include <gtest/gtest.h>

#include <cmath>

#include "store/core/store_writer.h"
#include "support/memory_folder.h"
#include "support/packing.h"

namespace linblock::test {
namespace {

class Append : public ::testing::Test {
 protected:
  // The files a failed append must leave as they were.
  void expect_refused(ErrorKind kind, const std::vector<std::string>& parts, const std::string& text,
                      PackOptions options = small_options(), const PackContext& context = {}) {
    const auto before = files_of(store_);
    write_file(folder_ / "bad.svm", text);
    expect_error(kind, parts, [&] { append({folder_ / "bad.svm"}, store_, options, context); });
    EXPECT_TRUE(files_of(store_) == before) << ::testing::PrintToString(names_in(store_));
  }

  StoreInfo info() const { return Store::open(store_).info(); }

  const MemoryFolder folder_;
  const std::string store_ = folder_ / "store";
};

TEST_F(Append, ContinuesTheRowIds) {
  std::vector<OwnedRow> all = sample_rows(500);
  pack_rows(all, store_, small_options("lz4"));
  for (uint64_t step = 1; step <= 20; ++step) {
    const auto more = sample_rows(step * 7, step, all.size());
    const PackReport report = append_rows(more, store_, small_options());
    EXPECT_EQ(report.rows, more.size());
    all = joined(all, more);
  }
  EXPECT_TRUE(verified_rows(store_) == all);
  EXPECT_TRUE(rows_by_chunk(Store::open(store_)) == all);
  EXPECT_EQ(info().segments.size(), 21U);
  EXPECT_EQ(info().next_row_id, all.size());
  EXPECT_EQ(info().rows, all.size());
}

TEST_F(Append, TakesFeaturesThatTheMapHasNeverSeen) {
  const auto first = sample_rows(2000, 1, 0, 400);
  pack_rows(first, store_, small_options());
  ASSERT_GE(Store::open(store_).features().frequent().size(), 128U);
  const std::string map = read_file(store_ + "/FEATURES");
  std::vector<OwnedRow> second = sample_rows(300, 2, 2000, 4000);
  second[0] = {2000, 5, 1, {1, 399, 70000, 4294967294U}, {1, 2, 3, 4}};
  append_rows(second, store_, small_options());
  EXPECT_TRUE(verified_rows(store_) == joined(first, second));
  EXPECT_EQ(read_file(store_ + "/FEATURES"), map);
  EXPECT_EQ(info().largest_index, 4294967294U);
  EXPECT_EQ(info().features(), 4294967294U);
}

TEST_F(Append, AddsUpSquaresAndSeesTheFirstNegativeValue) {
  pack_rows({{0, 1, 1, {1, 4}, {3, 4}}, {1, -1, 1, {2, 3}, {2, 2}}, {2, 1, 1, {}, {}}}, store_, small_options());
  ASSERT_TRUE(info().values);
  EXPECT_EQ(info().values->squares, 25 + 8);
  EXPECT_FALSE(info().values->negative);
  append_rows({{3, 1, 1, {2}, {-0.5F}}}, store_, small_options());
  EXPECT_EQ(info().values->squares, 25 + 8 + 0.25);
  EXPECT_TRUE(info().values->negative);
}

TEST_F(Append, AddsUpLabels) {
  pack_rows({{0, 1, 1, {1}, {1}}, {1, -1, 1, {1}, {1}}, {2, 1, 1, {1}, {1}}}, store_, small_options());
  append_rows({{3, 1, 1, {1}, {1}}, {4, 7, 1, {1}, {1}}}, store_, small_options());
  EXPECT_EQ(info().labels, (std::map<int32_t, uint64_t>{{-1, 1}, {1, 3}, {7, 1}}));
}

TEST_F(Append, DoesNotDisturbAReader) {
  const auto first = sample_rows(800);
  const auto second = sample_rows(900, 2, 800, 3000);
  pack_rows(first, store_, small_options());
  const Store reader = Store::open(store_);
  const uint64_t id = reader.info().id;
  append_rows(second, store_, small_options());
  EXPECT_TRUE(rows_in_order(reader) == first);
  EXPECT_EQ(verify(reader, 2).rows, first.size());
  EXPECT_EQ(reader.info().id, id);
  EXPECT_NE(info().id, id);
  EXPECT_TRUE(verified_rows(store_) == joined(first, second));
}

TEST_F(Append, NeverChangesAnOldSegment) {
  pack_rows(sample_rows(800), store_, small_options());
  const auto before = files_of(store_);
  append_rows(sample_rows(100, 2, 800), store_, small_options());
  const auto after = files_of(store_);
  for (const char* name : {"FEATURES", "segment-000001.rows", "segment-000001.directory"})
    EXPECT_TRUE(before.at(name) == after.at(name)) << name;
  EXPECT_EQ(after.size(), before.size() + 2);
}

TEST_F(Append, ObeysTheStoresOptionsAndNotItsOwn) {
  PackOptions packing = small_options("zstd");
  packing.seed = 77;
  pack_rows(sample_rows(3000), store_, packing);
  const StoreInfo before = info();
  PackOptions other = small_options("none");
  other.seed = 5;
  other.shuffle = false;
  other.chunk_bytes = 64 << 10;
  other.normalize = true;
  const auto more = sample_rows(3000, 2, 3000);
  append_rows(more, store_, other);
  const StoreInfo after = info();
  EXPECT_EQ(after.seed, before.seed);
  EXPECT_EQ(after.buckets, before.buckets);
  EXPECT_EQ(after.chunk_bytes, before.chunk_bytes);
  EXPECT_EQ(after.codec, Codec::zstd);
  EXPECT_FALSE(after.normalized);
  EXPECT_TRUE(verified_rows(store_) == joined(sample_rows(3000), more));
}

TEST_F(Append, NormalizesWhereTheStoreIsNormalized) {
  PackOptions packing = small_options();
  packing.normalize = true;
  pack_rows({{0, 1, 1, {1, 2}, {3, 4}}}, store_, packing);
  append_rows({{1, 1, 1, {1, 5}, {6, 8}}, {2, 1, 1, {9}, {0}}}, store_, small_options());
  const std::vector<OwnedRow> expected = {
      {0, 1, 1, {1, 2}, {0.6F, 0.8F}}, {1, 1, 1, {1, 5}, {0.6F, 0.8F}}, {2, 1, 1, {9}, {0}}};
  EXPECT_EQ(verified_rows(store_), expected);
}

TEST_F(Append, GivesRowsWithoutWeightsTheWeightOne) {
  const auto weighted = sample_rows(50, 1, 0, 100, true);
  const auto plain = sample_rows(50, 2, 50, 100);
  pack_rows(weighted, store_, small_options());
  append_rows(plain, store_, small_options());
  EXPECT_EQ(verified_rows(store_), joined(weighted, plain));
}

TEST_F(Append, MakesAStoreWeightedWhereItsRowsAre) {
  const auto plain = sample_rows(50, 1, 0, 100);
  const auto weighted = sample_rows(50, 2, 50, 100, true);
  pack_rows(plain, store_, small_options());
  EXPECT_FALSE(info().weighted);
  append_rows(weighted, store_, small_options());
  EXPECT_TRUE(info().weighted);
  EXPECT_EQ(verified_rows(store_), joined(plain, weighted));
}

TEST_F(Append, GivesTheSameBytesOnAnyNumberOfThreads) {
  const auto first = sample_rows(500);
  const auto second = sample_rows(6000, 2, 500, 2000);
  pack_rows(first, store_, small_options("lz4"));
  std::map<std::string, std::string> expected;
  for (const size_t threads : {1U, 2U, 3U, 7U}) {
    const std::string path = folder_ / ("copy" + std::to_string(threads));
    copy_store(store_, path);
    append_rows(second, path, small_options("none", threads));
    if (expected.empty()) expected = files_of(path);
    EXPECT_TRUE(files_of(path) == expected) << threads;
  }
}

// --- the index base --------------------------------------------------------------------------------------------------

TEST_F(Append, RefusesIndexZeroInAStoreNumberedFromOne) {
  pack_rows({{0, 1, 1, {1, 3}, {1, 1}}}, store_, small_options());
  expect_refused(ErrorKind::input, {"bad.svm:2:3:", "index 0"}, "1 2:1\n1 0:1\n");
}

TEST_F(Append, AcceptsIndexZeroInAStoreNumberedFromZero) {
  const std::vector<OwnedRow> first = {{0, 1, 1, {0, 3}, {1, 1}}};
  const std::vector<OwnedRow> second = {{1, 1, 1, {0, 9}, {1, 2}}};
  pack_rows(first, store_, small_options());
  PackOptions options = small_options();
  options.index_base = 1;  // does not count: the store's own holds
  append_rows(second, store_, options);
  EXPECT_EQ(verified_rows(store_), joined(first, second));
  EXPECT_EQ(info().index_base, 0);
}

TEST_F(Append, FindsTheIndexBaseOfAStoreWithoutFeatures) {
  pack_rows({{0, 1, 1, {}, {}}}, store_, small_options());
  append_rows({{1, 1, 1, {0}, {1}}}, store_, small_options());
  EXPECT_EQ(info().index_base, 0);
  EXPECT_EQ(info().features(), 1U);
}

TEST_F(Append, RefusesIndexZeroInAStoreWithoutFeaturesWhoseBaseWasGivenAsOne) {
  PackOptions packing = small_options();
  packing.index_base = 1;
  pack_rows({{0, 1, 1, {}, {}}}, store_, packing);
  expect_refused(ErrorKind::input, {"bad.svm:1:3:", "index 0"}, "1 0:1\n");
}

// --- what is refused leaves no trace ---------------------------------------------------------------------------------

TEST_F(Append, ThatFailsLeavesNoFiles) {
  pack_rows(sample_rows(100), store_, small_options());
  std::string late;
  for (const OwnedRow& row : sample_rows(5000, 2)) late += line_of(row);
  expect_refused(ErrorKind::input, {"bad.svm:5001:3:"}, late + "1 x:1\n");
  expect_refused(ErrorKind::input, {"bad.svm:5001:3:"}, late + "1 x:1\n", small_options("none", 4));
  expect_refused(ErrorKind::input, {"no rows"}, "\n\n# nothing\n");
  expect_refused(ErrorKind::input, {"empty"}, "");
  PackOptions weighted = small_options();
  weighted.weights = folder_ / "weights";
  write_file(weighted.weights, "1\n2\n");
  expect_refused(ErrorKind::input, {"weights", "more rows"}, "1 1:1\n1 1:1\n1 1:1\n", weighted);
  const std::atomic<bool> stop = true;
  PackContext context;
  context.stop = &stop;
  expect_refused(ErrorKind::interrupted, {"interrupted"}, late, small_options(), context);
  EXPECT_TRUE(verified_rows(store_) == sample_rows(100));
}

TEST_F(Append, ToAStoreThatNeedsMoreMemoryIsRefused) {
  {
    StoreWriter writer(store_);
    writer.begin({.buckets = 64, .chunk_bytes = 256 << 10});
    for (const OwnedRow& row : sample_rows(100)) writer.add(row.view());
    writer.commit();
  }
  expect_refused(ErrorKind::memory, {"to append to this store", "give memory"}, "1 1:1\n");
  PackOptions enough = small_options();
  enough.memory_bytes = uint64_t{64} << 20;
  append_rows(sample_rows(10, 2, 100), store_, enough);
  EXPECT_EQ(info().rows, 110U);
}

TEST_F(Append, ToSomethingElseThanAStoreIsRefused) {
  write_file(folder_ / "rows.svm", "1 1:1\n");
  expect_error(ErrorKind::input, {"does not exist"}, [&] { append({folder_ / "rows.svm"}, store_, small_options()); });
  EXPECT_FALSE(std::filesystem::exists(store_));
  std::filesystem::create_directory(store_);
  expect_error(ErrorKind::input, {"not a linblock store"},
               [&] { append({folder_ / "rows.svm"}, store_, small_options()); });
  EXPECT_EQ(names_in(store_).size(), 0U);
  expect_error(ErrorKind::input, {"rows.svm", "not a store"},
               [&] { append({folder_ / "rows.svm"}, folder_ / "rows.svm", small_options()); });
}

TEST_F(Append, ToADamagedStoreIsRefused) {
  pack_rows(sample_rows(100), store_, small_options());
  write_file(store_ + "/MANIFEST", read_file(store_ + "/MANIFEST") + " ");
  expect_refused(ErrorKind::damaged, {"MANIFEST"}, "1 1:1\n");
}

TEST_F(Append, WritesOverWhatAKilledAppendHasLeft) {
  const auto first = sample_rows(100);
  const auto second = sample_rows(20, 2, 100);
  pack_rows(first, store_, small_options());
  write_file(store_ + "/segment-000002.rows", std::string(format::kSegmentMagic) + std::string(1 << 20, 'x'));
  write_file(store_ + "/segment-000002.directory", std::string(1 << 20, 'y'));
  write_file(store_ + "/MANIFEST.new", "linblock-st");
  EXPECT_EQ(verified_rows(store_), first);
  append_rows(second, store_, small_options());
  EXPECT_EQ(verified_rows(store_), joined(first, second));
  EXPECT_FALSE(std::filesystem::exists(store_ + "/MANIFEST.new"));
}

TEST_F(Append, IsRefusedWhileAnotherWriterIsAtWork) {
  pack_rows(sample_rows(100), store_, small_options());
  const auto writer = StoreWriter::append_to(store_);
  write_file(folder_ / "rows.svm", "1 1:1\n");
  expect_error(ErrorKind::io, {store_, "in use", "process " + std::to_string(::getpid()), "appending"},
               [&] { append({folder_ / "rows.svm"}, store_, small_options()); });
}

}  // namespace
}  // namespace linblock::test
