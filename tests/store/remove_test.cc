// Rows taken out of a store: gone for everybody who opens it, in place for whoever has it open.
#include "store/core/remove.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "store/core/compact.h"
#include "store/core/store_writer.h"
#include "support/memory_folder.h"
#include "support/packing.h"

namespace linblock::test {
namespace {

std::vector<OwnedRow> without(std::vector<OwnedRow> rows, const std::vector<uint64_t>& ids) {
  const std::set<uint64_t> gone(ids.begin(), ids.end());
  std::erase_if(rows, [&](const OwnedRow& row) { return gone.contains(row.id); });
  return rows;
}

std::vector<uint64_t> every_nth(uint64_t step, uint64_t begin, uint64_t end) {
  std::vector<uint64_t> ids;
  for (uint64_t id = begin; id < end; id += step) ids.push_back(id);
  return ids;
}

class Remove : public ::testing::Test {
 protected:
  // Two segments with weights, several buckets and chunks.
  void SetUp() override {
    rows_ = joined(sample_rows(3000, 1, 0, 400, true), sample_rows(1000, 2, 3000, 500));
    pack_rows({rows_.begin(), rows_.begin() + 3000}, store_, small_options("lz4"));
    append_rows({rows_.begin() + 3000, rows_.end()}, store_, small_options());
    ASSERT_GT(info().buckets, 1U);
  }

  void remove(const std::vector<uint64_t>& ids, size_t threads = 1) {
    remove_rows(store_, {.ids = ids}, {.team = threads});
  }
  StoreInfo info() const { return Store::open(store_).info(); }
  void expect_untouched(ErrorKind kind, const std::vector<std::string>& parts, const std::function<void()>& work) {
    const auto before = files_of(store_);
    expect_error(kind, parts, work);
    EXPECT_TRUE(files_of(store_) == before) << ::testing::PrintToString(names_in(store_));
  }
  void expect_list_refused(const std::string& text, const std::vector<std::string>& parts) {
    write_file(folder_ / "rows", text);
    SCOPED_TRACE(text);
    expect_untouched(ErrorKind::input, parts, [&] { remove_rows(store_, read_row_list(folder_ / "rows")); });
  }

  const MemoryFolder folder_;
  const std::string store_ = folder_ / "store";
  std::vector<OwnedRow> rows_;
};

TEST_F(Remove, TakesRowsOutOfWhatIsRead) {
  const auto ids = every_nth(7, 2, 4000);
  const RemoveReport report = remove_rows(store_, {.ids = ids}, {.team = 3});
  EXPECT_EQ(report.rows, ids.size());
  EXPECT_TRUE(verified_rows(store_) == without(rows_, ids));
  EXPECT_EQ(info().rows, 4000 - ids.size());
  EXPECT_EQ(info().removed.rows, ids.size());
  EXPECT_EQ(info().physical_rows(), 4000U);
  EXPECT_EQ(info().next_row_id, 4000U);
}

TEST_F(Remove, CountsOnlyTheRowsThatAreLeft) {
  const auto ids = every_nth(3, 0, 4000);
  const uint64_t nonzeros_before = info().nonzeros;
  const RemoveReport report = remove_rows(store_, {.ids = ids});
  uint64_t nonzeros = 0;
  std::map<int32_t, uint64_t> labels;
  for (const OwnedRow& row : without(rows_, ids)) {
    nonzeros += row.index.size();
    ++labels[row.label];
  }
  EXPECT_EQ(info().nonzeros, nonzeros);
  EXPECT_EQ(report.nonzeros, nonzeros_before - nonzeros);
  EXPECT_EQ(info().removed.nonzeros, nonzeros_before - nonzeros);
  EXPECT_EQ(info().labels, labels);
  EXPECT_EQ(verify(Store::open(store_), 3).rows, 4000 - ids.size());
}

TEST_F(Remove, SubtractsTheSquaresOfTheRowsThatAreGone) {
  ASSERT_TRUE(info().values);
  EXPECT_NEAR(info().values->squares, squares_of(rows_), 1e-9 * squares_of(rows_));
  EXPECT_TRUE(info().values->negative);
  const auto ids = every_nth(3, 0, 4000);
  remove(ids);
  const double left = squares_of(without(rows_, ids));
  ASSERT_TRUE(info().values);
  EXPECT_NEAR(info().values->squares, left, 1e-9 * left);
  remove_segment(store_, 1);
  std::vector<OwnedRow> last = without(rows_, ids);
  std::erase_if(last, [](const OwnedRow& row) { return row.id < 3000; });
  ASSERT_TRUE(info().values);
  EXPECT_NEAR(info().values->squares, squares_of(last), 1e-9 * squares_of(last));
}

// Of which no value is stored.
TEST_F(Remove, CountsSquaresOfOnes) {
  const std::string path = folder_ / "ones";
  pack_rows({{0, 1, 1, {1, 4}, {1, 1}}, {1, -1, 1, {2, 3, 4}, {1, 1, 1}}, {2, 1, 1, {}, {}}}, path, small_options());
  EXPECT_EQ(Store::open(path).info().values->squares, 5);
  remove_rows(path, {.ids = {0}});
  EXPECT_EQ(Store::open(path).info().values->squares, 3);
  compact(path, {});
  EXPECT_EQ(Store::open(path).info().values->squares, 3);
  EXPECT_FALSE(Store::open(path).info().values->negative);
}

// The difference of two large sums says nothing of what is left. Compacting adds up again.
TEST_F(Remove, OfNearlyAllSquaresForgetsThem) {
  append_rows({{4000, 1, 1, {1, 2}, {1e18F, -1}}}, store_, small_options());
  ASSERT_TRUE(info().values);
  remove({4000});
  EXPECT_FALSE(info().values);
  compact(store_, {});
  ASSERT_TRUE(info().values);
  EXPECT_NEAR(info().values->squares, squares_of(rows_), 1e-9 * squares_of(rows_));
}

TEST_F(Remove, ForgetsALabelWhoseLastRowIsGone) {
  append_rows({{4000, 9, 1, {1}, {1}}}, store_, small_options());
  ASSERT_EQ(info().labels.count(9), 1U);
  remove({4000});
  EXPECT_EQ(info().labels.count(9), 0U);
}

// Solvers skip rows without weight; whatever lies beside a row keeps its place.
TEST_F(Remove, LeavesRowsInTheirChunksWithoutWeight) {
  const auto ids = every_nth(5, 0, 4000);
  const std::set<uint64_t> gone(ids.begin(), ids.end());
  const size_t chunks = Store::open(store_).chunks().size();
  remove(ids);
  const Store store = Store::open(store_);
  ASSERT_EQ(store.chunks().size(), chunks);
  uint64_t seen = 0;
  Chunk chunk;
  RowBuffer buffer;
  for (size_t number = 0; number < chunks; ++number) {
    store.read(number, chunk);
    ASSERT_EQ(chunk.rows(), store.chunks()[number].rows);
    for (size_t row = 0; row < chunk.rows(); ++row, ++seen) {
      const uint64_t id = chunk.id(row);
      EXPECT_EQ(chunk.removed(row), gone.contains(id)) << id;
      EXPECT_EQ(chunk.row(row, buffer).weight, gone.contains(id) ? 0 : rows_[id].weight) << id;
      EXPECT_EQ(chunk.encoded(row, buffer).weight, chunk.row(row, buffer).weight) << id;
    }
  }
  EXPECT_EQ(seen, 4000U);
}

TEST_F(Remove, TellsARemovedRowFromOneOfWeightZero) {
  const std::vector<OwnedRow> rows = {
      {0, 1, 0, {1}, {1}}, {1, 1, 1, {1}, {1}}, {2, -1, 0, {2}, {1}}, {3, -1, 2, {2}, {1}}};
  const std::string path = folder_ / "weighted";
  pack_rows(rows, path, small_options());
  write_file(folder_ / "minus", "-0\n");
  PackOptions minus = small_options();
  minus.weights = folder_ / "minus";
  write_file(folder_ / "one.svm", "1 1:1\n");
  append({folder_ / "one.svm"}, path, minus);
  remove_rows(path, {.ids = {2}});
  EXPECT_EQ(verified_rows(path), (std::vector<OwnedRow>{rows[0], rows[1], rows[3], {4, 1, 0, {1}, {1}}}));
}

TEST_F(Remove, IsSeenByGather) {
  remove({17, 3500});
  const Store store = Store::open(store_);
  RowBlock block;
  for (const uint64_t id : {17, 3500})
    expect_error(ErrorKind::input, {std::to_string(id), "was removed"}, [&] {
      store.gather(std::vector<uint64_t>{16, id, 18}, block);
    });
  store.gather(std::vector<uint64_t>{18, 16}, block);
  RowBuffer buffer;
  ASSERT_EQ(block.size(), 2U);
  EXPECT_EQ(original(block.row(0, buffer), store.features()), rows_[16]);
}

TEST_F(Remove, AddsUpOverSeveralTimes) {
  std::vector<uint64_t> gone;
  for (uint64_t step = 0; step < 5; ++step) {
    const auto ids = every_nth(50, step, 4000);
    remove(ids, 1 + step % 3);
    gone.insert(gone.end(), ids.begin(), ids.end());
    ASSERT_TRUE(verified_rows(store_) == without(rows_, gone)) << step;
  }
  EXPECT_EQ(info().removed.number, 5U);
  EXPECT_FALSE(std::filesystem::exists(removed_path(store_, 4)));
  EXPECT_TRUE(std::filesystem::exists(removed_path(store_, 5)));
}

TEST_F(Remove, GivesTheSameBytesOnAnyNumberOfThreads) {
  std::map<std::string, std::string> expected;
  for (const size_t threads : {1U, 2U, 7U}) {
    const std::string path = folder_ / ("copy" + std::to_string(threads));
    copy_store(store_, path);
    remove_rows(path, {.ids = every_nth(4, 1, 4000)}, {.team = threads});
    if (expected.empty()) expected = files_of(path);
    EXPECT_TRUE(files_of(path) == expected) << threads;
  }
}

TEST_F(Remove, ChangesTheIdOfTheStoreAndNoSegment) {
  const auto before = files_of(store_);
  const uint64_t id = info().id;
  remove({5});
  EXPECT_NE(info().id, id);
  auto after = files_of(store_);
  EXPECT_EQ(after.erase("removed-000001"), 1U);
  EXPECT_EQ(after.size(), before.size());
  after["MANIFEST"] = before.at("MANIFEST");
  EXPECT_TRUE(after == before);
}

TEST_F(Remove, LetsRowsBeAppendedAfterwards) {
  const auto ids = every_nth(9, 0, 4000);
  remove(ids);
  const auto more = sample_rows(500, 3, 4000);
  append_rows(more, store_, small_options());
  EXPECT_TRUE(verified_rows(store_) == joined(without(rows_, ids), more));
  remove({4001, 10});
  EXPECT_TRUE(verified_rows(store_) == without(without(joined(rows_, more), ids), {4001, 10}));
}

TEST_F(Remove, DoesNotDisturbAReader) {
  const Store reader = Store::open(store_);
  remove(every_nth(2, 0, 4000));
  remove_segment(store_, 2);
  EXPECT_TRUE(rows_in_order(reader) == rows_);
  EXPECT_EQ(verify(reader, 2).rows, 4000U);
}

// Whoever has read the manifest and not yet the files it names finds them gone, and must look again.
TEST_F(Remove, LeavesAStoreThatCanBeOpenedAtAnyMoment) {
  std::atomic<bool> done = false;
  std::atomic<int> opened = 0;
  std::string wrong;
  std::thread reader([&] {
    while (!done && wrong.empty()) {
      const auto error = error_of([&] { verify(Store::open(store_), 1); });
      if (error) wrong = error->what();
      ++opened;
    }
  });
  for (uint64_t id = 0; id < 300 || opened < 20; ++id) {
    if (id < 4000) remove({id});
    if (id % 10 == 9) compact(store_, {});
    append_rows(sample_rows(3, id, 4000 + 3 * id), store_, small_options());
  }
  done = true;
  reader.join();
  EXPECT_EQ(wrong, "");
}

// --- whole segments --------------------------------------------------------------------------------------------------

TEST_F(Remove, DropsASegmentAndItsFiles) {
  const RemoveReport report = remove_segment(store_, 1, {.team = 2});
  EXPECT_EQ(report.rows, 3000U);
  EXPECT_TRUE(verified_rows(store_) == std::vector<OwnedRow>(rows_.begin() + 3000, rows_.end()));
  EXPECT_EQ(names_in(store_), (std::vector<std::string>{"FEATURES", "LOCK", "MANIFEST", "segment-000002.directory",
                                                        "segment-000002.rows"}));
  EXPECT_EQ(info().removed.rows, 0U);
}

TEST_F(Remove, NeverUsesTheNumberOfADroppedSegmentAgain) {
  remove_segment(store_, 2);
  const auto more = sample_rows(10, 3, 4000);
  append_rows(more, store_, small_options());
  EXPECT_EQ(info().segments.back().number, 3U);
  EXPECT_EQ(info().segments.back().first_row, 4000U);
  EXPECT_TRUE(verified_rows(store_) == joined({rows_.begin(), rows_.begin() + 3000}, more));
}

TEST_F(Remove, OfASegmentForgetsItsRemovedRowsOnly) {
  const auto ids = every_nth(3, 1, 4000);
  remove(ids);
  const auto left = without({rows_.begin() + 3000, rows_.end()}, ids);
  const RemoveReport report = remove_segment(store_, 1);
  EXPECT_EQ(report.rows, 2000U);
  EXPECT_TRUE(verified_rows(store_) == left);
  EXPECT_EQ(info().removed.rows, 1000 - left.size());
}

TEST_F(Remove, OfTheOnlySegmentWithRemovedRowsLeavesNoListOfThem) {
  remove(every_nth(3, 3000, 4000));
  remove_segment(store_, 2);
  EXPECT_EQ(info().removed.rows, 0U);
  EXPECT_FALSE(std::filesystem::exists(removed_path(store_, 1)));
  remove({1});
  EXPECT_EQ(info().removed.number, 2U);
  EXPECT_TRUE(verified_rows(store_) == without({rows_.begin(), rows_.begin() + 3000}, {1}));
}

// --- what is refused changes nothing -------------------------------------------------------------------------------

TEST_F(Remove, RefusesAListWithAnythingElseThanRowsOfTheStore) {
  expect_list_refused("1\n2\nx3\n", {"rows:3:1:", "'x3'", "not a row id"});
  expect_list_refused("1\n-2\n", {"rows:2:1:", "'-2'"});
  expect_list_refused("1 2\n", {"rows:1:1:", "'1 2'"});
  expect_list_refused("1.5\n", {"rows:1:1:"});
  expect_list_refused("18446744073709551616\n", {"rows:1:1:", "not a row id"});
  expect_list_refused("7\n4000\n5000\n", {"rows:2:1:", "row 4000 is not in"});
  expect_list_refused("18446744073709551615\n", {"rows:1:1:", "is not in"});
  expect_list_refused("7\n\n# seven again\n7\n", {"rows:4:1:", "row 7 is listed twice"});
  expect_list_refused("# nothing\n\n", {"rows", "lists no rows"});
  expect_list_refused("", {"rows", "empty"});
  expect_list_refused(std::string(100000, '1'), {"rows", "row id"});
  remove({8, 3999});
  expect_list_refused("9\n3999\n8\n", {"rows:2:1:", "row 3999 was removed", "before"});
}

TEST_F(Remove, PassesOverBlankLinesAndComments) {
  write_file(folder_ / "rows", "# bad ones\r\n\n  12  # why\r\n\t13\n# 14\n15");
  const RowList list = read_row_list(folder_ / "rows");
  EXPECT_EQ(list.ids, (std::vector<uint64_t>{12, 13, 15}));
  EXPECT_EQ(list.lines, (std::vector<uint64_t>{3, 4, 6}));
  remove_rows(store_, list);
  EXPECT_TRUE(verified_rows(store_) == without(rows_, {12, 13, 15}));
}

TEST_F(Remove, RefusesToLeaveNoRows) {
  expect_untouched(ErrorKind::input, {store_, "one row"}, [&] { remove(every_nth(1, 0, 4000)); });
  remove(every_nth(1, 1, 4000));
  EXPECT_EQ(verified_rows(store_), std::vector<OwnedRow>{rows_[0]});
  expect_untouched(ErrorKind::input, {store_, "one row"}, [&] { remove_segment(store_, 1); });
  EXPECT_EQ(info().segments.size(), 1U);  // the other has no rows
}

TEST_F(Remove, RefusesASegmentThatIsNotThere) {
  for (const uint64_t number : {uint64_t{0}, uint64_t{3}, UINT64_MAX})
    expect_untouched(ErrorKind::input, {"no segment " + std::to_string(number), "linblock info"},
                     [&] { remove_segment(store_, number); });
}

TEST_F(Remove, RefusesWhatIsNoStore) {
  expect_error(ErrorKind::input, {"does not exist"}, [&] { remove_segment(folder_ / "absent", 1); });
  EXPECT_FALSE(std::filesystem::exists(folder_ / "absent"));
}

TEST_F(Remove, IsRefusedWhileAnotherWriterIsAtWork) {
  const auto writer = StoreWriter::append_to(store_);
  expect_error(ErrorKind::io, {store_, "in use", "appending"}, [&] { remove({1}); });
}

TEST_F(Remove, ToldToStopRemovesNothing) {
  const std::atomic<bool> stop = true;
  expect_untouched(ErrorKind::interrupted, {"nothing was removed"},
                   [&] { remove_rows(store_, {.ids = {1}}, {.stop = &stop}); });
}

TEST_F(Remove, DeletesWhatAKilledWriterHasLeftAndNothingElse) {
  write_file(store_ + "/segment-000003.rows", std::string(format::kSegmentMagic) + "leftover");
  write_file(store_ + "/segment-000003.directory", "leftover");
  for (const char* name : {"removed-000001", "removed-000007"})
    write_file(store_ + "/" + name, std::string(format::kRemovedMagic) + "leftover");
  for (const char* name : {"SOURCE", "removed-notes", "segment-x.rows", "removed-", "removed-000008"})
    write_file(store_ + "/" + name, "mine");
  remove({1});
  EXPECT_EQ(names_in(store_), (std::vector<std::string>{
                                  "FEATURES", "LOCK", "MANIFEST", "SOURCE", "removed-", "removed-000001",
                                  "removed-000008", "removed-notes", "segment-000001.directory", "segment-000001.rows",
                                  "segment-000002.directory", "segment-000002.rows", "segment-x.rows"}));
  EXPECT_TRUE(verified_rows(store_) == without(rows_, {1}));
}

}  // namespace
}  // namespace linblock::test
