// When an index is fresh, behind, stale or absent, and what becomes of the folder it is in.
#include "store/index/metric_forest.h"

#include <gtest/gtest.h>

#include "store/core/compact.h"
#include "store/core/remove.h"
#include "support/forest.h"

namespace linblock::test {
namespace {

class ForestOfAStore : public ::testing::Test {
 protected:
  void SetUp() override {
    pack_rows(sample_rows(1500), path_, small_options());
    append_rows(sample_rows(300, 2, 1500), path_, small_options());
  }
  ForestState state() const { return forest_state(Store::open(path_)); }

  const Folder folder_;
  const std::string path_ = folder_ / "store";
};

TEST_F(ForestOfAStore, IsAbsentUntilItIsMade) {
  EXPECT_EQ(state(), ForestState::absent);
  expect_error(ErrorKind::input, {"no index", "linblock index " + path_},
               [&] { MetricForest::open(Store::open(path_)); });
  make_forest(path_);
  EXPECT_EQ(state(), ForestState::fresh);
  EXPECT_FALSE(make_forest(path_).changed);
  EXPECT_FALSE(build_forest(Store::open(path_), {}).changed) << "what is not given is as it is";
  ForestOptions other = small_forest();
  other.bias = 2;
  EXPECT_TRUE(make_forest(path_, other).changed);
  EXPECT_EQ(MetricForest::open(Store::open(path_)).info().bias, 2);
}

TEST_F(ForestOfAStore, IsBehindAfterAppendAndGetsTreesForTheNewRowsOnly) {
  make_forest(path_);
  const auto before = files_of(index_path(path_));
  const uint64_t trees = MetricForest::open(Store::open(path_)).trees().size();
  append_rows(sample_rows(700, 3, 1800), path_, small_options());
  append_rows(sample_rows(5, 4, 2500, 900), path_, small_options());
  EXPECT_EQ(state(), ForestState::behind);
  expect_error(ErrorKind::input, {"behind", "linblock index " + path_},
               [&] { MetricForest::open(Store::open(path_)); });
  const ForestReport report = make_forest(path_);
  EXPECT_TRUE(report.extended);
  EXPECT_EQ(report.rows, 705U);
  EXPECT_EQ(state(), ForestState::fresh);
  expect_whole(path_);
  const MetricForest forest = MetricForest::open(Store::open(path_));
  EXPECT_EQ(forest.trees().size(), trees + report.trees);
  expect_true_bounds(forest);
  const auto after = files_of(index_path(path_));
  for (const char* name : {"FEATURES", "forest-000001", "segment-000001.rows", "segment-000001.directory"})
    EXPECT_TRUE(before.at(name) == after.at(name)) << name;
}

TEST_F(ForestOfAStore, IsStaleAfterRemoveAndCompactAndIsMadeAnew) {
  const std::vector<std::function<void()>> changes = {
      [&] { remove_rows(path_, {.ids = {7}}); },
      [&] {
        append_rows(sample_rows(50, 5, 1800), path_, small_options());
        remove_rows(path_, {.ids = {8}});
      },
      [&] { remove_segment(path_, 2); },
      [&] { compact(path_, {}); },
  };
  for (const auto& change : changes) {
    make_forest(path_);
    ASSERT_EQ(state(), ForestState::fresh);
    change();
    EXPECT_EQ(state(), ForestState::stale);
    expect_error(ErrorKind::input, {"stale", "linblock index " + path_},
                 [&] { MetricForest::open(Store::open(path_)); });
    verify(Store::open(index_path(path_)), 1);  // whole, though of another time
    const ForestReport report = make_forest(path_);
    EXPECT_TRUE(report.changed);
    EXPECT_FALSE(report.extended);
    expect_whole(path_);
  }
}

TEST_F(ForestOfAStore, OfAnotherStoreIsStale) {
  // The same first rows, so the same seal; then others.
  const std::string other = folder_ / "other";
  pack_rows(sample_rows(1500), other, small_options());
  append_rows(sample_rows(300, 9, 1500), other, small_options());
  ASSERT_EQ(Store::open(other).info().seal, Store::open(path_).info().seal);
  make_forest(other);
  copy_store(index_path(other), index_path(path_));
  EXPECT_EQ(state(), ForestState::stale);
  append_rows(sample_rows(300, 9, 1800), path_, small_options());
  EXPECT_EQ(state(), ForestState::stale);
  EXPECT_FALSE(make_forest(path_).extended);
  expect_whole(path_);
}

TEST_F(ForestOfAStore, IsReplacedAndLeavesNothingOfTheOldOne) {
  make_forest(path_);
  EXPECT_EQ(names_in(index_path(path_)), (std::vector<std::string>{"BUILT", "FEATURES", "MANIFEST", "forest-000001",
                                                                   "segment-000001.directory", "segment-000001.rows"}));
  const MetricForest old = MetricForest::open(Store::open(path_));
  ForestOptions again = small_forest();
  again.force = true;
  make_forest(path_, again);
  EXPECT_EQ(names_in(index_path(path_)), (std::vector<std::string>{"BUILT", "FEATURES", "MANIFEST", "forest-000002",
                                                                   "segment-000002.directory", "segment-000002.rows"}));
  expect_true_bounds(old);  // what is open stays readable
  EXPECT_GT(forest_build_seconds(path_), 0);
}

TEST_F(ForestOfAStore, IsMadeAgainWhereItIsDamagedOrHalfDone) {
  make_forest(path_);
  write_file(index_path(path_) + "/MANIFEST", "linblock-store nonsense");
  EXPECT_THROW(state(), Error);
  ForestOptions again = small_forest();
  again.force = true;
  make_forest(path_, again);
  EXPECT_EQ(state(), ForestState::fresh);
  std::filesystem::remove(index_path(path_) + "/MANIFEST");
  write_file(index_path(path_) + "/forest-000009", std::string(format::kForestMagic) + "left by a kill");
  write_file(index_path(path_) + "/forest-of-somebody", "not ours");
  EXPECT_EQ(state(), ForestState::absent);
  make_forest(path_);
  EXPECT_EQ(names_in(index_path(path_)),
            (std::vector<std::string>{"BUILT", "FEATURES", "MANIFEST", "forest-000001", "forest-of-somebody",
                                      "segment-000001.directory", "segment-000001.rows"}));
}

TEST_F(ForestOfAStore, IsRefusedWhereRowsAreNeeded) {
  make_forest(path_);
  const std::string index = index_path(path_);
  const std::vector<std::string> words = {index, "name that store"};
  expect_error(ErrorKind::input, words, [&] { append_rows(sample_rows(3), index, small_options()); });
  expect_error(ErrorKind::input, words, [&] { remove_rows(index, {.ids = {1}}); });
  expect_error(ErrorKind::input, words, [&] { rows_in_order(Store::open(index)); });
  expect_error(ErrorKind::input, words, [&] { make_forest(index); });
}

TEST_F(ForestOfAStore, GoesWithRemoveForest) {
  make_forest(path_);
  remove_forest(path_);
  EXPECT_EQ(state(), ForestState::absent);
  EXPECT_FALSE(std::filesystem::exists(index_path(path_)));
  remove_forest(path_);
  verified_rows(path_);
}

}  // namespace
}  // namespace linblock::test
