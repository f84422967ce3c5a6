// When columns are fresh, stale or absent, and what becomes of the folder they are in.
#include "store/columns/columns.h"

#include <gtest/gtest.h>

#include "store/core/compact.h"
#include "store/core/remove.h"
#include "support/columns.h"

namespace linblock::test {
namespace {

class ColumnsOfAStore : public ::testing::Test {
 protected:
  void SetUp() override {
    pack_rows(sample_rows(500), path_, small_options());
    append_rows(sample_rows(100, 2, 500), path_, small_options());
  }
  ColumnsState state() const { return columns_state(Store::open(path_)); }
  void make() const { transpose(Store::open(path_), small_transpose()); }

  const Folder folder_;
  const std::string path_ = folder_ / "store";
};

TEST_F(ColumnsOfAStore, AreAbsentUntilTheyAreMade) {
  EXPECT_EQ(state(), ColumnsState::absent);
  expect_error(ErrorKind::input, {"no feature columns", "linblock transpose " + path_},
               [&] { Columns::open(Store::open(path_)); });
  make();
  EXPECT_EQ(state(), ColumnsState::fresh);
  EXPECT_EQ(Columns::open(Store::open(path_)).store().info().rows_id, Store::open(path_).info().id);
}

TEST_F(ColumnsOfAStore, AreStaleAfterAppendRemoveAndCompact) {
  const std::vector<std::function<void()>> changes = {
      [&] { append_rows(sample_rows(10, 3, 600), path_, small_options()); },
      [&] { remove_rows(path_, {.ids = {7}}); },
      [&] { remove_segment(path_, 2); },
      [&] { compact(path_, {}); },
  };
  for (const auto& change : changes) {
    make();
    ASSERT_EQ(state(), ColumnsState::fresh);
    change();
    EXPECT_EQ(state(), ColumnsState::stale);
    expect_error(ErrorKind::input, {"stale", "linblock transpose " + path_},
                 [&] { Columns::open(Store::open(path_)); });
    verify(Store::open(columns_path(path_)), 1);  // whole, though of another time
  }
  make();
  EXPECT_EQ(columns_in(Columns::open(Store::open(path_)).store()), expected_columns(Store::open(path_)));
}

TEST_F(ColumnsOfAStore, AreReplacedAndLeaveNothingOfTheOldOnes) {
  make();
  const auto names = names_in(columns_path(path_));
  EXPECT_EQ(names, (std::vector<std::string>{"FEATURES", "MANIFEST", "rows-000001", "segment-000001.directory",
                                             "segment-000001.rows"}));
  const Columns old = Columns::open(Store::open(path_));
  make();
  EXPECT_EQ(names_in(columns_path(path_)),
            (std::vector<std::string>{"FEATURES", "MANIFEST", "rows-000002", "segment-000002.directory",
                                      "segment-000002.rows"}));
  EXPECT_EQ(columns_in(old.store()), expected_columns(Store::open(path_)));  // what is open stays readable
}

TEST_F(ColumnsOfAStore, AreMadeAgainWhereTheyAreDamagedOrHalfDone) {
  make();
  write_file(columns_path(path_) + "/MANIFEST", "linblock-store nonsense");
  EXPECT_THROW(state(), Error);
  make();
  EXPECT_EQ(state(), ColumnsState::fresh);
  std::filesystem::remove(columns_path(path_) + "/MANIFEST");
  write_file(columns_path(path_) + "/spill-000007", "left by a kill");
  write_file(columns_path(path_) + "/rows-000009", std::string(format::kRowFactsMagic) + "left by a kill");
  write_file(columns_path(path_) + "/rows-of-somebody", "not ours");
  EXPECT_EQ(state(), ColumnsState::absent);
  make();
  EXPECT_EQ(names_in(columns_path(path_)),
            (std::vector<std::string>{"FEATURES", "MANIFEST", "rows-000001", "rows-of-somebody",
                                      "segment-000001.directory", "segment-000001.rows"}));
}

TEST_F(ColumnsOfAStore, AreRefusedWhereRowsAreNeeded) {
  make();
  const std::string columns = columns_path(path_);
  const std::vector<std::string> words = {columns, "name that store"};
  expect_error(ErrorKind::input, words, [&] { append_rows(sample_rows(3), columns, small_options()); });
  expect_error(ErrorKind::input, words, [&] { remove_rows(columns, {.ids = {1}}); });
  expect_error(ErrorKind::input, words, [&] { rows_in_order(Store::open(columns)); });
}

TEST_F(ColumnsOfAStore, GoWithRemoveColumns) {
  make();
  remove_columns(path_);
  EXPECT_EQ(state(), ColumnsState::absent);
  EXPECT_FALSE(std::filesystem::exists(columns_path(path_)));
  remove_columns(path_);
  verified_rows(path_);
}

}  // namespace
}  // namespace linblock::test
