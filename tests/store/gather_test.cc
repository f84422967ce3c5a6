// Single rows by their ids, wherever they lie.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "support/arbitrary_rows.h"
#include "support/memory_folder.h"
#include "support/packing.h"

namespace linblock::test {
namespace {

std::vector<OwnedRow> gathered(const Store& store, const std::vector<uint64_t>& ids) {
  RowBlock block;
  store.gather(ids, block);
  std::vector<OwnedRow> rows;
  RowBuffer buffer;
  for (size_t row = 0; row < block.size(); ++row) rows.push_back(original(block.row(row, buffer), store.features()));
  return rows;
}

class Gather : public ::testing::Test {
 protected:
  static constexpr uint64_t kRows = 2500;

  static void SetUpTestSuite() {
    folder_ = new MemoryFolder;
    const std::string path = *folder_ / "store";
    pack_rows(sample_rows(1500, 1, 0, 400, true), path, small_options("zstd"));
    append_rows(sample_rows(700, 2, 1500, 600), path, small_options());
    append_rows(sample_rows(300, 3, 2200, 600, true), path, small_options());
    store_ = new Store(Store::open(path));
    rows_ = rows_in_order(*store_);
    ASSERT_EQ(rows_.size(), kRows);
    ASSERT_EQ(store_->info().segments.size(), 3U);
  }
  static void TearDownTestSuite() {
    delete store_;
    delete folder_;
  }

  static inline MemoryFolder* folder_ = nullptr;
  static inline Store* store_ = nullptr;
  static inline std::vector<OwnedRow> rows_;
};

TEST_F(Gather, GivesExactlyTheRowsAskedForInTheOrderOfTheirIds) {
  EXPECT_TRUE(rc::check([&] {
    const auto ids = *rc::gen::container<std::vector<uint64_t>>(rc::gen::inRange<uint64_t>(0, kRows));
    std::vector<OwnedRow> expected;
    for (const uint64_t id : std::set<uint64_t>(ids.begin(), ids.end())) expected.push_back(rows_[id]);
    RC_ASSERT(same_rows(gathered(*store_, ids), expected));
  }));
}

TEST_F(Gather, GivesTheWholeStoreToo) {
  std::vector<uint64_t> ids;
  for (uint64_t id = kRows; id-- > 0;) ids.push_back(id);
  EXPECT_TRUE(same_rows(gathered(*store_, ids), rows_));
}

TEST_F(Gather, GivesEveryRowAlone) {
  for (uint64_t id = 0; id < kRows; id += 7) ASSERT_TRUE(same_rows(gathered(*store_, {id}), {rows_[id]})) << id;
}

TEST_F(Gather, GivesARowOnceHoweverOftenItIsNamed) {
  EXPECT_TRUE(same_rows(gathered(*store_, {7, 2000, 7, 7, 2000}), {rows_[7], rows_[2000]}));
}

TEST_F(Gather, GivesNothingForNothing) { EXPECT_EQ(gathered(*store_, {}).size(), 0U); }

TEST_F(Gather, ForgetsWhatTheBlockHeldBefore) {
  RowBlock block;
  store_->gather(std::vector<uint64_t>{1, 2, 3}, block);
  store_->gather(std::vector<uint64_t>{9}, block);
  RowBuffer buffer;
  ASSERT_EQ(block.size(), 1U);
  EXPECT_EQ(block.row(0, buffer).id, 9U);
}

TEST_F(Gather, RefusesRowsThatAreNotThere) {
  for (const uint64_t id : {kRows, kRows + 1, uint64_t{1} << 40, UINT64_MAX})
    expect_error(ErrorKind::input, {std::to_string(id), store_->path()}, [&] { gathered(*store_, {5, id, 6}); });
}

TEST(GatherFromGaps, RefusesIdsThatWereNeverGivenOut) {
  const MemoryFolder folder;
  const auto first = sample_rows(20);
  pack_rows(first, folder / "store", small_options());
  StoreInfo info = read_manifest(folder / "store");
  info.next_row_id = 1000;
  write_manifest(folder / "store", info);
  const auto second = sample_rows(20, 2, 1000);
  append_rows(second, folder / "store", small_options());
  const Store store = Store::open(folder / "store");
  EXPECT_EQ(gathered(store, {19, 1000}), (std::vector<OwnedRow>{first.back(), second.front()}));
  for (const uint64_t id : {20, 500, 999, 1020})
    expect_error(ErrorKind::input, {std::to_string(id)}, [&] { gathered(store, {id}); });
}

TEST(GatherOfEverything, GivesWhatATextHeldWhateverTheRowsAre) {
  EXPECT_TRUE(rc::check([] {
    const auto rows = *arbitrary_rows(1, true);
    const MemoryFolder folder;
    pack_rows(rows, folder / "store", small_options());
    std::vector<uint64_t> ids(rows.size());
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = i;
    RC_ASSERT(same_rows(gathered(Store::open(folder / "store"), ids), rows));
  }));
}

}  // namespace
}  // namespace linblock::test
