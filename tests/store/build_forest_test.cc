// What an index is made of, for rows of every kind.
#include "store/index/build_forest.h"

#include <gtest/gtest.h>

#include <numeric>

#include "store/core/remove.h"
#include "store/index/pivot_products.h"
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
  std::vector<OwnedRow> rows(150);
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

// Rows of one kind each; what is made of them is whole, and its bounds are true.
struct Kind {
  std::string name;
  std::function<OwnedRow(uint64_t)> row;
  uint64_t count = 700;
  double bias = -1;
};

OwnedRow line(uint64_t id, std::vector<uint32_t> index, std::vector<float> value) {
  return {.id = id, .label = id % 3 == 0 ? 1 : -1, .index = std::move(index), .value = std::move(value)};
}

class ForestOfKind : public ::testing::TestWithParam<Kind> {};

TEST_P(ForestOfKind, IsWholeWithTrueBounds) {
  const Folder folder;
  const std::string path = folder / "store";
  std::vector<OwnedRow> rows;
  for (uint64_t id = 0; id < GetParam().count; ++id) rows.push_back(GetParam().row(id));
  pack_rows(rows, path, small_options());
  ForestOptions options = small_forest();
  options.bias = GetParam().bias;
  make_forest(path, options);
  expect_whole(path);
  const MetricForest forest = MetricForest::open(Store::open(path));
  expect_true_bounds(forest);
  for (uint32_t page = 0; page < forest.pages().chunks().size(); ++page) {
    const ChunkInfo& chunk = forest.pages().chunks()[page];
    EXPECT_TRUE(chunk.rows == 1 || chunk.raw_bytes <= 4096 + 200) << "page " << page << ": " << chunk.raw_bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Store, ForestOfKind,
    ::testing::Values(
        Kind{"EqualRows",
             [](uint64_t id) {
               return line(id, {1, 5}, {0.5F, 2});
             }},
        Kind{"EqualRowsButTwo",
             [](uint64_t id) { return id == 9 || id == 600 ? line(id, {2}, {3}) : line(id, {1}, {1}); }},
        Kind{"EmptyRows", [](uint64_t id) { return line(id, {}, {}); }},
        Kind{"EmptyRowsAndABias", [](uint64_t id) { return line(id, {}, {}); }, 700, 1},
        Kind{"SomeEmptyRows",
             [](uint64_t id) {
               return id % 2 == 0 ? line(id, {}, {}) : line(id, {1, static_cast<uint32_t>(2 + id % 9)}, {1, 0.1F});
             }},
        Kind{"OneRow", [](uint64_t id) { return line(id, {3}, {1}); }, 1},
        Kind{"TwoRows", [](uint64_t id) { return line(id, {static_cast<uint32_t>(3 + id)}, {1}); }, 2},
        Kind{"OneFeature", [](uint64_t id) { return line(id, {1}, {static_cast<float>(id) - 300}); }, 700, 0.5},
        Kind{"NormsFromTinyToHuge",
             [](uint64_t id) {
               const float scale = std::pow(10.0F, static_cast<float>(id % 70) - 35);
               return line(id, {1, 2, 3},
                           {scale, scale * static_cast<float>(id % 7), -scale * static_cast<float>(id % 5)});
             }},
        Kind{"TheLargestFloats",
             [](uint64_t id) {
               return line(id, {1, 2, 3}, {3e38F, id % 2 == 0 ? 3e38F : -3e38F, static_cast<float>(id) * 1e35F});
             }},
        Kind{"SomeLongRows",
             [](uint64_t id) {
               OwnedRow row = line(id, {}, {});
               for (uint32_t k = 1; k < (id % 50 == 0 ? 3000U : 10U); ++k) {
                 row.index.push_back(k * 3 + static_cast<uint32_t>(id % 3));
                 row.value.push_back(static_cast<float>(mix64(id, k) % 1000) / 100);
               }
               return row;
             },
             200},
        Kind{"VeryManyFeatures",
             [](uint64_t id) {
               OwnedRow row = line(id, {}, {});
               for (uint32_t k = 0; k < 8; ++k) {
                 row.index.push_back(k * 500000000 + static_cast<uint32_t>(mix64(id, k) % 400000000));
                 row.value.push_back(1 + static_cast<float>(k));
               }
               return row;
             }}),
    [](const auto& kind) { return kind.param.name; });

TEST_F(ForestOfRows, HaveNoTreesWhereAllOfAChunkAreRemoved) {
  pack(sample_rows(600));
  std::vector<uint64_t> ids(599);
  std::iota(ids.begin(), ids.end(), 0);
  remove_rows(path_, {.ids = ids});
  ForestOptions options = small_forest();
  options.tree_rows = 1;
  ASSERT_GT(Store::open(path_).chunks().size(), 1U);
  EXPECT_EQ(make_forest(path_, options).trees, 1U);
  EXPECT_EQ(open().trees().size(), 1U);
  EXPECT_EQ(open().info().contrast(), 0);
  expect_whole(path_);
}

TEST_F(ForestOfRows, LeaveRemovedOnesOut) {
  pack(sample_rows(1500));
  remove_rows(path_, {.ids = {0, 3, 700, 1499}});
  EXPECT_EQ(make_forest(path_).rows, 1496U);
  expect_whole(path_);
}

// The products by hashing are those with a place for every feature, bit by bit.
TEST(PivotProducts, AreTheSameBitsDenseAndHashed) {
  const std::vector<OwnedRow> rows = sample_rows(60, 3, 0, 200);
  std::vector<Row> views;
  std::vector<double> scales;
  for (const OwnedRow& row : rows) views.push_back(row.view()), scales.push_back(0.3);
  PivotProducts dense(500, 40, UINT64_MAX);
  PivotProducts hashed(500, 40, 0);
  std::vector<float> a;
  std::vector<float> b;
  for (const size_t pivots : {40, 3, 17}) {
    dense.set(std::span(views).first(pivots), std::span(scales).first(pivots));
    hashed.set(std::span(views).first(pivots), std::span(scales).first(pivots));
    for (const Row& row : views)
      for (const double scale : {1.0, 0.25}) {
        dense.of(row, scale, a);
        hashed.of(row, scale, b);
        ASSERT_EQ(a, b);
        double expected = 0;
        for (size_t i = 0; i < row.index.size(); ++i)
          for (size_t j = 0; j < views[pivots - 1].index.size(); ++j)
            if (row.index[i] == views[pivots - 1].index[j])
              expected += static_cast<double>(row.value[i]) * views[pivots - 1].value[j];
        EXPECT_NEAR(a[pivots - 1], 0.3 * scale * expected, 1e-4);
      }
  }
}

TEST_F(ForestOfRows, InLittleMemoryHaveSmallerTreesAndAreRefusedInLess) {
  PackOptions packing = small_options();
  packing.chunk_bytes = 65536;
  pack_rows(sample_rows(40000), path_, packing);
  ForestOptions options = small_forest();
  options.tree_rows = 100000;
  const Store rows = Store::open(path_);
  const uint64_t least = least_forest_memory(rows, options);
  options.memory_bytes = least - 1;
  expect_error(ErrorKind::memory, {"give memory " + size_of_at_least(least) + " or more"},
               [&] { build_forest(rows, options); });
  EXPECT_FALSE(std::filesystem::exists(index_path(path_)));
  options.memory_bytes = least;
  const ForestReport small = build_forest(rows, options);
  expect_whole(path_);
  options.memory_bytes = uint64_t{64} << 20;
  options.force = true;
  const ForestReport large = build_forest(rows, options);
  EXPECT_EQ(large.trees, 1U);
  EXPECT_GT(small.trees, 4U);
  EXPECT_LT(small.rows_per_tree, large.rows_per_tree / 4);
}

TEST_F(ForestOfRows, HaveContrastWhereTheyPointTheSameWay) {
  std::vector<OwnedRow> rows;
  for (uint64_t id = 0; id < 2000; ++id)
    rows.push_back(line(id, {static_cast<uint32_t>(1 + id % 4)}, {1 + static_cast<float>(id)}));
  pack(rows);
  make_forest(path_);
  EXPECT_GT(open().info().contrast(), 0.3);
  EXPECT_LE(open().info().contrast(), 1);
}

TEST_F(ForestOfRows, StoppedLeaveNothing) {
  pack(sample_rows(3000));
  const std::atomic<bool> stop = true;
  expect_error(ErrorKind::interrupted, {"as they were"},
               [&] { build_forest(Store::open(path_), small_forest(2), {.stop = &stop}); });
  EXPECT_FALSE(std::filesystem::exists(index_path(path_)));
}

// Whoever waits for others to write pages must not wait for a writer that has given up.
TEST_F(ForestOfRows, StoppedAtAnyMomentEnd) {
  pack(sample_rows(3000));
  const Store rows = Store::open(path_);
  for (uint64_t moment = 0; moment < 3000; moment += 50) {
    std::atomic<bool> stop = false;
    ForestContext context{.stop = &stop};
    context.observer = [&](uint64_t done, uint64_t) { stop = stop || done >= moment; };
    ForestOptions options = small_forest(2);
    options.force = true;
    options.tree_rows = 300;
    try {
      build_forest(rows, options, context);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::interrupted);
    }
  }
}

}  // namespace
}  // namespace linblock::test
