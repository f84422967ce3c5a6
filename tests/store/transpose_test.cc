// What transpose() writes, against the rows it was made from.
#include "store/columns/transpose.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "store/columns/entries.h"
#include "store/core/remove.h"
#include "support/arbitrary_rows.h"
#include "support/columns.h"

namespace linblock {
namespace {

using namespace test;

// Transposes, verifies, and compares entries and facts with the rows'.
void expect_transposed(const std::string& path, const TransposeOptions& options) {
  const Store rows = Store::open(path);
  const TransposeReport report = transpose(rows, options);
  const Columns columns = Columns::open(rows);
  verify(columns.store(), 2);
  const ColumnMap expected = expected_columns(rows);
  EXPECT_EQ(columns_in(columns.store()), expected);
  EXPECT_EQ(report.columns, expected.size());
  EXPECT_EQ(columns.store().info().columns, expected.size());
  EXPECT_EQ(report.nonzeros, rows.info().nonzeros);
  EXPECT_EQ(report.bytes, columns.store().bytes());
  const RowFacts facts = columns.facts();
  ASSERT_EQ(facts.ids.size(), rows.info().physical_rows());
  ASSERT_EQ(facts.labels.size(), facts.ids.size());
  ASSERT_TRUE(facts.weights.empty() || facts.weights.size() == facts.ids.size());
  Chunk chunk;
  RowBuffer buffer;
  size_t place = 0;
  for (size_t number = 0; number < rows.chunks().size(); ++number) {
    rows.read(number, chunk);
    for (size_t row = 0; row < chunk.rows(); ++row, ++place) {
      const Row view = chunk.row(row, buffer);
      ASSERT_EQ(facts.ids[place], view.id);
      ASSERT_EQ(facts.labels[place], view.label);
      const float weight = facts.weights.empty() ? 1 : facts.weights[place];
      ASSERT_EQ(std::bit_cast<uint32_t>(weight), std::bit_cast<uint32_t>(view.weight));
    }
  }
}

TEST(Transpose, ColumnsHaveTheEntriesOfTheRows) {
  const Folder folder;
  pack_rows(sample_rows(2000), folder / "store", small_options());
  expect_transposed(folder / "store", small_transpose());
}

TEST(Transpose, WeightsRemovedRowsAndSegmentsAreRespected) {
  const Folder folder;
  const std::string path = folder / "store";
  pack_rows(sample_rows(700, 1, 0, 400, true), path, small_options());
  append_rows(sample_rows(500, 2, 700, 900, true), path, small_options());
  append_rows(sample_rows(300, 3, 1200), path, small_options());
  RowList gone;
  for (uint64_t id = 0; id < 1500; id += 7) gone.ids.push_back(id);
  remove_rows(path, gone);
  expect_transposed(path, small_transpose());
}

TEST(Transpose, RemovedRowsWithoutWeightsAreMarkedInTheFacts) {
  const Folder folder;
  const std::string path = folder / "store";
  pack_rows(sample_rows(300), path, small_options());
  remove_rows(path, {.ids = {5, 6, 299}});
  expect_transposed(path, small_transpose());
}

TEST(Transpose, LongColumnsContinueOverChunks) {
  const Folder folder;
  const std::string path = folder / "store";
  std::vector<OwnedRow> rows;
  for (uint32_t i = 0; i < 9000; ++i) {
    const auto number = static_cast<float>(i);
    OwnedRow row{.id = i, .label = i % 2 == 0 ? 1 : -1, .index = {1, 2, 3}, .value = {1, 0.5F, number / 8}};
    if (i > 6000) row.value[1] = 0.25F + number;  // equal values, and then not
    if (i % 100 == 0) {
      row.index.push_back(7);
      row.value.push_back(2);
    }
    rows.push_back(std::move(row));
  }
  pack_rows(rows, path, small_options());
  expect_transposed(path, small_transpose());
  const Store store = Store::open(columns_path(path));
  EXPECT_GT(store.info().rows, 10);
  EXPECT_EQ(store.info().columns, 4);
  for (const ChunkInfo& chunk : store.chunks()) EXPECT_LT(chunk.raw_bytes, 2 * 4096);
}

TEST(Transpose, ExtremesAreTransposed) {
  const std::vector<std::vector<OwnedRow>> problems = {
      {{.id = 0, .label = 1, .index = {5}, .value = {2}}},                                     // one row, one feature
      {{.id = 0, .label = 1}, {.id = 1, .label = -1}},                                         // no entries at all
      {{.id = 0, .label = 1}, {.id = 1, .label = -1, .index = {3, 900000}, .value = {1, 0}}},  // an empty row, a zero
      {{.id = 0, .label = 1, .index = {format::kLargestIndex}, .value = {-1}}},                // the last feature
  };
  for (const std::vector<OwnedRow>& rows : problems) {
    const Folder folder;
    pack_rows(rows, folder / "store", small_options());
    expect_transposed(folder / "store", small_transpose());
  }
}

TEST(Transpose, ColumnsPerChunkAreLimitedWhereAsked) {
  for (const uint32_t limit : {1U, 7U}) {
    const Folder folder;
    pack_rows(sample_rows(600), folder / "store", small_options());
    TransposeOptions options = small_transpose();
    options.columns_per_chunk = limit;
    options.chunk_bytes = 65536;
    expect_transposed(folder / "store", options);
    const Store store = Store::open(columns_path(folder / "store"));
    for (const ChunkInfo& chunk : store.chunks()) EXPECT_LE(chunk.rows, limit);
    EXPECT_EQ(store.chunks().size(), (store.info().columns + limit - 1) / limit);
  }
}

TEST(Transpose, TwiceGivesTheRows) {
  const Folder folder;
  const std::string path = folder / "store";
  pack_rows(sample_rows(1500), path, small_options());
  remove_rows(path, {.ids = {3, 4, 500}});
  const Store rows = Store::open(path);
  transpose(rows, small_transpose());
  const Columns columns = Columns::open(rows);
  transpose(columns.store(), small_transpose());
  const Columns again = Columns::open(columns.store());
  verify(again.store(), 1);
  ColumnMap by_place;  // place -> (feature, value)
  for (const auto& [feature, entries] : expected_columns(rows))
    for (const auto& [place, value] : entries) by_place[place].emplace_back(feature, value);
  EXPECT_EQ(columns_in(again.store()), by_place);
}

// So little memory that everything goes through files, several times over.
TransposeOptions least_memory(const Store& rows, size_t threads = 1) {
  TransposeOptions options = small_transpose(threads);
  options.memory_bytes = least_transpose_memory(rows, options);
  return options;
}

TEST(Transpose, BytesAreTheSameOnAnyNumberOfThreadsAndInAnyMemory) {
  for (const uint32_t features : {400U, 4000000U}) {  // dense, and far apart
    SCOPED_TRACE(features);
    const Folder folder;
    const std::string path = folder / "store";
    pack_rows(sample_rows(40000, 1, 0, features), path, small_options("lz4"));
    const Store rows = Store::open(path);
    EXPECT_EQ(transpose(rows, {}).spilled_bytes, 0);
    const auto expected = files_of(columns_path(path));
    for (const size_t threads : {1U, 2U, 4U}) {
      std::filesystem::remove_all(columns_path(path));
      TransposeOptions options;
      options.team = threads;
      transpose(rows, options);
      EXPECT_TRUE(files_of(columns_path(path)) == expected) << threads << " threads";
      std::filesystem::remove_all(columns_path(path));
      EXPECT_GE(transpose(rows, least_memory(rows, threads)).spilled_bytes, rows.info().nonzeros * sizeof(ColumnEntry));
      EXPECT_TRUE(files_of(columns_path(path)) == expected) << threads << " threads, spilled";
    }
  }
}

// One feature of more entries than the memory takes among others, far away and near.
TEST(Transpose, AHugeColumnStreamsThrough) {
  const Folder folder;
  const std::string path = folder / "store";
  std::vector<OwnedRow> rows(200000);
  for (uint32_t i = 0; i < rows.size(); ++i) {
    rows[i] = {.id = i, .label = i % 3 == 0 ? 1 : -1, .index = {1 + i % 7, 1000000}, .value = {1, 0.5F}};
    rows[i].value[1] = static_cast<float>(i % 11);
    if (i % 5 == 0) rows[i].index.push_back(1000001 + i), rows[i].value.push_back(2);
  }
  pack_rows(rows, path, small_options());
  const Store store = Store::open(path);
  TransposeOptions options = least_memory(store);
  ASSERT_GT(200000 * sizeof(ColumnEntry), uint64_t{1} << 20);  // what that leaves for sorting
  expect_transposed(path, options);
}

TEST(Transpose, TooLittleMemoryIsRefusedWithTheRemedy) {
  const Folder folder;
  pack_rows(sample_rows(1000), folder / "store", small_options());
  const Store rows = Store::open(folder / "store");
  TransposeOptions options = least_memory(rows);
  options.memory_bytes -= 1;
  expect_error(ErrorKind::memory, {"to transpose this store", "give memory"}, [&] { transpose(rows, options); });
  EXPECT_FALSE(std::filesystem::exists(columns_path(rows.path())));
}

TEST(Transpose, InterruptedLeavesNothing) {
  const Folder folder;
  pack_rows(sample_rows(30000), folder / "store", small_options());
  const Store rows = Store::open(folder / "store");
  std::atomic<bool> stop = false;
  const TransposeContext context{.observer = [&](uint64_t done, uint64_t total) { stop = stop || done > total / 3; },
                                 .stop = &stop};
  expect_error(ErrorKind::interrupted, {"as they were"}, [&] { transpose(rows, least_memory(rows), context); });
  EXPECT_FALSE(std::filesystem::exists(columns_path(rows.path())));
}

TEST(Transpose, AStoreThatHasChangedSinceIsRefused) {
  const Folder folder;
  pack_rows(sample_rows(100), folder / "store", small_options());
  const Store rows = Store::open(folder / "store");
  remove_rows(folder / "store", {.ids = {1}});
  expect_error(ErrorKind::io, {"changed", "linblock transpose"}, [&] { transpose(rows, small_transpose()); });
  EXPECT_FALSE(std::filesystem::exists(columns_path(rows.path())));
}

RC_GTEST_PROP(Transpose, ArbitraryRowsAreTransposed, ()) {
  const bool weighted = *rc::gen::arbitrary<bool>();
  const auto rows = *arbitrary_rows(1, weighted);
  const Folder folder;
  pack_rows(rows, folder / "store", small_options());
  expect_transposed(folder / "store", small_transpose());
}

}  // namespace
}  // namespace linblock
