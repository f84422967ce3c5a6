// Which rows and classes a state holds, and how little of it Pegasos has.
#include "support/state.h"

#include <gtest/gtest.h>

#include "store/core/compact.h"
#include "support/tight_memory.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

TEST_F(State, LearnsAClassThatIsNew) {
  pack(class_rows(400, 10, 3, 1));
  keep();
  std::vector<OwnedRow> more = class_rows(80, 10, 3, 2);
  for (size_t i = 0; i < more.size(); i += 2) more[i].label = 9;
  append(more);
  expect_weights_of_duals();
  expect_like_cold();
}

TEST_F(State, LearnsAThirdClass) {
  pack(class_rows(400, 10, 2, 3));
  keep();
  std::vector<OwnedRow> more = class_rows(60, 10, 2, 4);
  for (OwnedRow& row : more) row.label = -5;
  append(more);
  expect_weights_of_duals();
  expect_like_cold();
}

TEST_F(State, ForgetsAClassThatHasVanished) {
  std::vector<OwnedRow> rows = class_rows(400, 10, 4, 5);
  pack(rows);
  keep();
  for (const int32_t vanishing : {2, 4}) {
    RowList list;
    for (const OwnedRow& row : rows)
      if (row.label == vanishing) list.ids.push_back(row.id);
    remove_rows(store_, list);
    expect_weights_of_duals();
    expect_like_cold();
  }
}

TEST_F(State, KeepsRowsWithoutWeightOutOfIt) {
  std::vector<OwnedRow> rows = two_classes(300, 8, 6);
  for (size_t i = 0; i < rows.size(); ++i) rows[i].weight = i % 4 == 0 ? 0.0F : static_cast<float>(1 + i % 3);
  pack(rows);
  keep();
  remove(1, 9);
  std::vector<OwnedRow> more = two_classes(30, 8, 7);
  for (OwnedRow& row : more) row.weight = 0.5F;
  append(more);
  expect_weights_of_duals();
  expect_like_cold();
}

TEST_F(State, RowsThatAreHeldOutNowLoseTheirDuals) {
  pack(two_classes(400, 8, 21));
  keep();
  const HeldOut held_out{.seed = 1, .parts = 4, .first = 0, .last = 1};
  expect_weights_of_duals(uint64_t{1} << 30, "", held_out);
  remove(2, 9);
  expect_weights_of_duals(uint64_t{1} << 30, "", held_out);
  compact(store_, {});
  expect_weights_of_duals(uint64_t{1} << 30, "", held_out);
}

TEST_F(State, RowsRemovedBeforeItWasMadeStayOut) {
  pack(two_classes(400, 8, 8));
  remove(0, 7);
  keep();
  remove(3, 7);
  expect_weights_of_duals();
  append(two_classes(40, 8, 9));
  compact(store_, {});
  expect_weights_of_duals();
  expect_like_cold();
}

TEST_F(State, SeveralGroupsOfTasksAreOneState) {
  std::vector<OwnedRow> rows = class_rows(300, 8, 5, 10);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].index.push_back(static_cast<uint32_t>(100'000 + 10 * i));
    rows[i].value.push_back(0.2F);
  }
  pack(rows);
  options_.solve.tolerance = 1e-4;
  const Store store = Store::open(store_);
  const Problem problem = make_problem(store, options_, choose_classes(store.info(), options_));
  Context context;
  context.checkpoint.path = folder_ / "STATE";
  context.memory_bytes = memory_for_tasks(problem, options_.solve, 2, context.checkpoint.path);
  EXPECT_GT(keep(context).groups, 2U);
  std::filesystem::remove(folder_ / "STATE.stages");
  expect_weights_of_duals(context.memory_bytes);
  remove(0, 10);
  expect_weights_of_duals(context.memory_bytes);
  expect_like_cold();
  const TrainReport grouped = warm(context);
  EXPECT_GT(grouped.groups, 2U);
  EXPECT_LE(grouped.summary.largest_gap(), options_.solve.tolerance);
}

TEST_F(State, ReadingItsRowsIsShownAndCanBeStopped) {
  pack(class_rows(400, 10, 3, 22));
  keep();
  remove(7, 10);
  compact(store_, {});
  const Store store = Store::open(store_);
  const Problem problem = make_problem(store, options_, choose_classes(store.info(), options_));
  std::atomic<bool> stop = false;
  Context context{.memory_bytes = 256, .stop = &stop};  // v in several ranges
  std::vector<double> shares;
  context.observer.reading = [&](std::string_view purpose, double share) {
    EXPECT_EQ(purpose, "to find the rows of the state again");
    shares.push_back(share);
  };
  warm_start(state_path(model_), options_, problem, "", context);
  EXPECT_GT(shares.size(), store.chunks().size());
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end())) << testing::PrintToString(shares);
  EXPECT_EQ(shares.back(), 1);
  context.observer.reading = [&](std::string_view, double share) { stop = share > 0.5; };
  expect_error(ErrorKind::interrupted, {"before the first pass"},
               [&] { warm_start(state_path(model_), options_, problem, "", context); });
}

TEST_F(State, OfPegasosIsItsWeightsAndSteps) {
  pack(two_classes(400, 10, 13));
  options_.solve = {.method = Pegasos{}, .max_passes = 5};
  const TrainReport first = keep();
  append(two_classes(40, 20, 14));
  const Store store = Store::open(store_);
  const Problem problem = make_problem(store, options_, choose_classes(store.info(), options_));
  const WarmStart start = warm_start(state_path(model_), options_, problem, "", {});
  EXPECT_EQ(start.solutions[0].steps, 5U * 400);
  EXPECT_EQ(start.solutions[0].weights.size(), problem.weights());
  std::vector<float> weights = start.solutions[0].weights;
  sort_by_index(store, weights);
  weights.resize(first.model.weights.size());
  EXPECT_EQ(weights, first.model.weights);
  // The objective after one more pass is near that of many, and far from that of a first pass.
  options_.solve.max_passes = 1;
  const double cold = trained().summary.certificates[0].primal;
  const double again = warm().summary.certificates[0].primal;
  EXPECT_LT(again, cold);
  EXPECT_TRUE(contains(said_, "2,000 steps")) << said_;
}

}  // namespace
}  // namespace linblock
