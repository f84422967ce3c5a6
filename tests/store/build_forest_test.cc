// What an index is made of, for rows of every kind.
#include "store/build_forest.h"

#include <gtest/gtest.h>

#include "support/forest.h"

namespace linblock::test {
namespace {

class ForestOfRows : public ::testing::Test {
 protected:
  void pack(const std::vector<OwnedRow>& rows, const std::string& codec = "none") {
    pack_rows(rows, path_, small_options(codec));
  }
  MetricForest open() const { return MetricForest::open(Store::open(path_)); }

  const Folder folder_;
  const std::string path_ = folder_ / "store";
};

TEST_F(ForestOfRows, HasEveryRowOnceAndTrueBounds) {
  pack(sample_rows(2000, 1, 0, 60, true));
  const ForestReport report = make_forest(path_);
  EXPECT_TRUE(report.changed);
  EXPECT_EQ(report.rows, 2000U);
  expect_whole(path_);
  const MetricForest forest = open();
  EXPECT_GE(forest.trees().size(), 4U);
  EXPECT_GT(forest.nodes(), forest.trees().size());
  expect_true_bounds(forest);
}

TEST_F(ForestOfRows, AreWithTheirNearestPivotWhereNothingIsJoined) {
  std::vector<OwnedRow> rows(600);
  Random random(5);
  for (size_t i = 0; i < rows.size(); ++i) {  // each row takes more than half a page, so no two share one
    rows[i] = {.id = i, .label = static_cast<int32_t>(i % 70) - 35};
    for (uint32_t k = 1; k <= 600; ++k) {
      rows[i].index.push_back(k);
      rows[i].value.push_back(static_cast<float>(random.unit() - 0.5));
    }
  }
  pack(rows);
  ForestOptions options = small_forest();
  options.bias = 1.5;
  make_forest(path_, options);
  EXPECT_EQ(open().info().bias, 1.5);
  expect_whole(path_);
  EXPECT_EQ(expect_true_bounds(open()), 0U);
}

TEST_F(ForestOfRows, AreTheSameBytesForAnyNumberOfThreadsAndAgain) {
  for (const std::string codec : {"none", "zstd"}) {
    std::filesystem::remove_all(path_);
    pack(sample_rows(5000), codec);
    make_forest(path_, small_forest(1));
    auto expected = files_of(index_path(path_));
    expected.erase("BUILT");
    for (const size_t threads : {1, 2, 3}) {
      std::filesystem::remove_all(index_path(path_));
      make_forest(path_, small_forest(threads));
      auto found = files_of(index_path(path_));
      found.erase("BUILT");
      EXPECT_TRUE(found == expected) << threads << " threads, " << codec;
    }
  }
}

}  // namespace
}  // namespace linblock::test
