// A store that has changed since the state was made: what a warm start takes over, and that it leads where a cold start
// leads.
#include <gtest/gtest.h>

#include "store/core/compact.h"
#include "store/core/store_snapshot.h"
#include "support/state.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

struct Setting {
  const char* name;
  const char* loss;
  int32_t classes;
  double bias;
};

std::ostream& operator<<(std::ostream& out, const Setting& setting) { return out << setting.name; }

class StateOf : public State, public testing::WithParamInterface<Setting> {
 protected:
  void SetUp() override {
    options_.loss = loss_of(GetParam().loss);
    options_.bias = GetParam().bias;
  }
  std::vector<OwnedRow> rows(size_t count, uint32_t seed, uint32_t features = 12) const {
    return class_rows(count, features, GetParam().classes, seed);
  }
};

TEST_P(StateOf, OfTheSameRowsIsTheModelItself) {
  pack(rows(500, 1));
  const TrainReport first = keep();
  const WarmStart start = expect_weights_of_duals();
  EXPECT_EQ(start.known_rows, 500U);
  EXPECT_EQ(start.new_rows, 0U);
  EXPECT_EQ(start.gone_rows, 0U);
  EXPECT_LT(warm().summary.passes, first.summary.passes);
  EXPECT_TRUE(contains(said_, "500 rows keep their duals, 0 are new, 0 are gone")) << said_;
}

TEST_P(StateOf, TakesInAppendedRows) {
  pack(rows(600, 2));
  keep();
  append(rows(60, 3));
  const WarmStart start = expect_weights_of_duals();
  EXPECT_EQ(start.known_rows, 600U);
  EXPECT_EQ(start.new_rows, 60U);
  expect_like_cold();
}

TEST_P(StateOf, LetsGoOfRemovedRows) {
  pack(rows(600, 4));
  keep();
  remove(3, 10);
  const WarmStart start = expect_weights_of_duals();
  EXPECT_EQ(start.known_rows, 540U);
  EXPECT_EQ(start.gone_rows, 60U);
  EXPECT_FALSE(start.recomputed);
  expect_like_cold();
}

TEST_P(StateOf, FindsRowsThatCompactHasMoved) {
  pack(rows(400, 5));
  append(rows(50, 6));
  keep();
  remove(7, 10);
  append(rows(30, 7));
  compact(store_, {});
  const WarmStart start = expect_weights_of_duals();
  EXPECT_EQ(start.known_rows, 450U - 45);
  EXPECT_EQ(start.new_rows, 30U);
  EXPECT_EQ(start.gone_rows, 45U);
  EXPECT_TRUE(start.recomputed);
  expect_like_cold();
}

// The store goes back to a snapshot, and other rows are appended under the segment number and the ids of those before.
TEST_P(StateOf, DoesNotTakeOtherRowsForThoseBeforeARollBack) {
  pack(rows(500, 8));
  snapshot_store(store_, folder_ / "before");
  append(rows(50, 9));
  keep();
  const auto roll_back = [&] {
    std::filesystem::remove_all(store_);
    snapshot_store(folder_ / "before", store_);
    next_id_ = 500;
  };
  roll_back();
  append(rows(50, 77));
  WarmStart start = expect_weights_of_duals();
  EXPECT_EQ(start.known_rows, 500U);
  EXPECT_EQ(start.new_rows, 50U);
  EXPECT_EQ(start.gone_rows, 50U);
  expect_like_cold();
  roll_back();
  append(rows(7, 78));
  append(rows(43, 79));
  start = expect_weights_of_duals();
  EXPECT_EQ(start.known_rows, 500U);
  EXPECT_EQ(start.new_rows, 50U);
  expect_like_cold();
  roll_back();
  append(rows(50, 9));  // the same rows after all
  start = expect_weights_of_duals();
  EXPECT_EQ(start.known_rows, 550U);
  EXPECT_FALSE(start.recomputed);
}

TEST_P(StateOf, LetsGoOfADroppedSegment) {
  pack(rows(500, 8));
  append(rows(50, 9));
  keep();
  remove_segment(store_, 2);
  const WarmStart start = expect_weights_of_duals();
  EXPECT_EQ(start.known_rows, 500U);
  EXPECT_EQ(start.gone_rows, 50U);
  expect_like_cold();
}

TEST_P(StateOf, GrowsWithNewFeaturesAndShrinksWithThem) {
  pack(rows(400, 10, 8));
  keep();
  append(rows(60, 11, 40));
  expect_weights_of_duals();
  expect_weights_of_duals(64);  // one feature at a time
  expect_like_cold();
  keep();
  remove_segment(store_, 2);
  expect_weights_of_duals();
  expect_like_cold();
}

TEST_P(StateOf, AppendedAndRemovedAgainIsTheFirstModel) {
  pack(rows(400, 12));
  options_.solve.tolerance = 1e-7;
  const TrainReport first = keep();
  append(rows(40, 13));
  options_.keep_state = state_path(model_);
  warm();
  options_.keep_state.clear();
  RowList list;
  for (uint64_t id = 400; id < 440; ++id) list.ids.push_back(id);
  remove_rows(store_, list);
  expect_weights_of_duals();
  const TrainReport last = warm();
  for (size_t i = 0; i < first.summary.certificates.size(); ++i)
    EXPECT_NEAR(last.summary.certificates[i].primal, first.summary.certificates[i].primal,
                2e-7 * first.summary.certificates[i].primal);
}

// Where a gap is small, the last passes of both are the same work; and single runs differ by chance.
TEST_P(StateOf, NeedsFewerPassesThanFromNothing) {
  options_.solve = {.method = Dual{.inner = 1, .cache_fraction = 0}, .tolerance = 0.01};
  options_.cost = 0.05;
  for (const bool removing : {false, true}) {
    int cold_passes = 0;
    int warm_passes = 0;
    for (uint32_t seed = 1; seed <= 3; ++seed) {
      pack(rows(1000, seed, 60));
      keep();
      if (removing)
        remove(4, 10);
      else
        append(rows(100, 10 + seed, 60));
      cold_passes += trained().summary.passes;
      warm_passes += warm().summary.passes;
    }
    EXPECT_LT(warm_passes, cold_passes) << (removing ? "a tenth removed" : "a tenth appended");
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, StateOf,
                         testing::Values(Setting{"hinge", "hinge", 2, -1}, Setting{"hinge_bias", "hinge", 2, 1},
                                         Setting{"squared_classes", "squared-hinge", 3, 2},
                                         Setting{"logistic", "logistic", 2, -1}),
                         [](const auto& setting) { return std::string(setting.param.name); });

}  // namespace
}  // namespace linblock
