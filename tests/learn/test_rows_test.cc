// Test rows, looked at by one group of tasks after another: the same answers as by all tasks at once.
#include "learn/test_rows.h"

#include <gtest/gtest.h>

#include "solve/core/pass.h"
#include "support/memory_folder.h"
#include "support/packing.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

class RowsForGroups : public testing::Test {
 protected:
  RowsForGroups() {
    write_file(folder_ / "data.svm", "1 1:1 2:1e-9\n2 1:1 2:1e-9\n3 2:1\n4 1:-1\n");
    pack({folder_ / "data.svm"}, folder_ / "store", small_options());
    options_.test = {folder_ / "data.svm"};
  }

  const MemoryFolder folder_;
  TrainOptions options_;
};

TEST_F(RowsForGroups, AreJudgedAsByAllTasksAtOnceHoweverCloseTheDecisions) {
  const Store store = Store::open(folder_ / "store");
  const Classes classes = choose_classes(store.info(), options_);
  ASSERT_EQ(classes.labels, (std::vector<int32_t>{1, 2, 3, 4}));
  // By feature number. Of the first two rows, task 2 thinks a billionth more than task 1 does.
  std::vector<Solution> solutions(4);
  for (Solution& solution : solutions) solution.weights.assign(store.info().feature_numbers(), 0);
  solutions[0].weights[store.features().number(1)] = 1;
  solutions[1].weights[store.features().number(1)] = 1;
  solutions[1].weights[store.features().number(2)] = 1;
  solutions[2].weights[store.features().number(2)] = 2;
  solutions[3].weights[store.features().number(1)] = -1;
  const TestRows whole(options_, store, classes, {});
  const TestResult expected = whole.test(weights_of(solutions));
  EXPECT_EQ(expected.rows, 4U);
  EXPECT_EQ(expected.correct, 3U) << "all but the first";
  for (size_t split = 1; split < 4; ++split) {
    TestRows parts(options_, store, classes, {});
    const auto middle = static_cast<ptrdiff_t>(split);
    std::vector<Solution> first(4);
    for (size_t i = 0; i < 4; ++i) first[i].weights = solutions[i].weights;
    std::vector<Solution> second(std::make_move_iterator(first.begin() + middle), std::make_move_iterator(first.end()));
    first.resize(split);
    parts.add(weights_of(first), 0);
    parts.add(weights_of(second), split);
    EXPECT_EQ(parts.result().rows, 4U);
    EXPECT_EQ(parts.result().correct, 3U) << "groups of " << split << " and " << 4 - split;
  }
}

}  // namespace
}  // namespace linblock
