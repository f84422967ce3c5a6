#include "solve/columns/column_blocks.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "support/chunks.h"
#include "support/column_problems.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

class ColumnOrders : public testing::Test {
 protected:
  ColumnOrders() : rows_(write_store_with_columns(folder_, make_data(60, 31, 1), 4)), columns_(Columns::open(rows_)) {
    chunks_ = chunks_of(columns_.store());
    for (uint32_t number = 0; number < chunks_.size(); ++number) {
      block_.chunks.push_back(&chunks_[number]);
      block_.numbers.push_back(number);
    }
  }
  std::vector<uint64_t> features(ColumnOrder order, uint64_t seed) {
    ColumnVisits visits;
    visits.collect(block_, true);
    visits.arrange(order, Random(seed));
    std::vector<uint64_t> found;
    for (size_t i = 0; i < visits.size(); ++i)
      found.push_back(visits[i].is_bias() ? 0 : block_.chunks[visits[i].chunk]->id(visits[i].row));
    return found;
  }

  const Folder folder_;
  const Store rows_;
  const Columns columns_;
  std::vector<Chunk> chunks_;
  Block block_;
};

TEST_F(ColumnOrders, CyclicIsAsFeaturesAreNumberedAndTheBiasLast) {
  std::vector<uint64_t> expected;
  for (uint64_t feature = 1; feature <= 31; ++feature) expected.push_back(feature);
  expected.push_back(0);
  EXPECT_EQ(features(ColumnOrder::cyclic, 1), expected);
}

TEST_F(ColumnOrders, PermutedVisitsEachOnceInAnOrderThatTheNumbersDecide) {
  for (const ColumnOrder order : {ColumnOrder::permuted, ColumnOrder::once}) {
    const auto first = features(order, 1);
    EXPECT_EQ(first, features(order, 1));
    EXPECT_NE(first, features(order, 2));
    EXPECT_NE(first, features(ColumnOrder::cyclic, 1));
    EXPECT_EQ(std::set<uint64_t>(first.begin(), first.end()).size(), 32U);
  }
}

TEST_F(ColumnOrders, OnlineDrawsAsManyAsThereAreWithReplacement) {
  std::map<uint64_t, int> times;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const auto drawn = features(ColumnOrder::online, seed);
    ASSERT_EQ(drawn.size(), 32U);
    for (const uint64_t feature : drawn) ++times[feature];
  }
  EXPECT_EQ(times.size(), 32U);
  for (const auto& [feature, count] : times) EXPECT_NEAR(count, 500, 120) << feature;
  const auto one = features(ColumnOrder::online, 3);
  EXPECT_LT(std::set<uint64_t>(one.begin(), one.end()).size(), 32U);
}

TEST_F(ColumnOrders, BlocksOfAPassHoldEachChunkOnce) {
  const ColumnUnits units(columns_.store());
  EXPECT_EQ(units.largest(), 1U);
  for (const size_t chunks : {1, 3, 100}) {
    const BlockOrder order = units.order_of_pass(ColumnOrder::permuted, chunks, 7, 2);
    EXPECT_EQ(std::set<uint32_t>(order.chunks.begin(), order.chunks.end()).size(), 8U);
    EXPECT_EQ(order.ends.size(), (8 + chunks - 1) / chunks);
    EXPECT_NE(order.chunks, units.order_of_pass(ColumnOrder::permuted, chunks, 7, 3).chunks);
    EXPECT_EQ(order.chunks, units.order_of_pass(ColumnOrder::permuted, chunks, 7, 2).chunks);
  }
}

}  // namespace
}  // namespace linblock
