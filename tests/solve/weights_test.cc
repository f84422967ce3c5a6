// What a weight is, for several tasks: a row of weight 2 is the row twice, one of weight 0 or one that was removed is
// no row, a class's weight counts in every task.
#include <gtest/gtest.h>

#include "store/core/remove.h"
#include "support/tight_memory.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

constexpr double kTolerance = 1e-6;

class Weights : public testing::TestWithParam<const char*> {
 protected:
  Problem problem(const Store& store) const {
    Problem all = tasks_for(store, GetParam(), {1, 0.1, 0.5}, 1);
    all.class_weights = class_weights_;
    return all;
  }
  std::vector<Certificate> certificates(const Store& store, const AnyMethod& method, double tolerance) const {
    std::vector<Solution> solutions;
    return solve(problem(store), {.method = method, .tolerance = tolerance, .max_passes = 50000}, solutions)
        .certificates;
  }
  // In memory, with every way that ends at the optimum.
  void expect_same_optima(const Store& a, const Store& b) const {
    for (const AnyMethod& method : {AnyMethod(Dual{}), AnyMethod(Dual{.schedule = Schedule::fixed, .inner = 3}),
                                    AnyMethod(Subsample{.share = 1})}) {
      const std::vector<Certificate> first = certificates(a, method, kTolerance);
      const std::vector<Certificate> second = certificates(b, method, kTolerance);
      for (size_t i = 0; i < first.size(); ++i) {
        EXPECT_LE(first[i].gap(), kTolerance);
        EXPECT_NEAR(first[i].primal, second[i].primal, kTolerance * first[i].primal) << name_of(method) << " " << i;
      }
    }
  }

  const Folder one_;
  const Folder two_;
  std::map<int32_t, double> class_weights_;
};

TEST_P(Weights, OfTwoAreTheRowTwice) {
  Data weighted = make_classes(60, 5, 3, 2);
  Data repeated = weighted;
  for (size_t i = 0; i < 60; i += 4) {
    weighted.rows[i].weight = 2;
    repeated.rows.push_back(repeated.rows[i]);
  }
  expect_same_optima(write_store(one_, weighted, 10), write_store(two_, repeated, 11));
}

TEST_P(Weights, OfZeroAreNoRow) {
  Data weighted = make_classes(60, 5, 3, 3);
  Data fewer = weighted;
  fewer.rows.clear();
  for (size_t i = 0; i < 60; ++i) {
    if (i % 5 == 4)
      weighted.rows[i].weight = 0;
    else
      fewer.rows.push_back(weighted.rows[i]);
  }
  expect_same_optima(write_store(one_, weighted, 10), write_store(two_, fewer, 10));
}

TEST_P(Weights, OfRemovedRowsAreNone) {
  const Data data = make_classes(60, 5, 3, 4);
  Data fewer = data;
  fewer.rows.clear();
  RowList removed;
  for (uint64_t id = 0; id < 60; ++id) {
    if (id % 7 == 5 || (id >= 20 && id < 30))  // a whole chunk of them
      removed.ids.push_back(id);
    else
      fewer.rows.push_back(data.rows[id]);
  }
  const std::string path = write_store(one_, data, 10).path();
  EXPECT_EQ(remove_rows(path, removed).rows, removed.ids.size());
  const Store store = Store::open(path);
  ASSERT_EQ(store.info().rows, fewer.rows.size());
  expect_same_optima(store, write_store(two_, fewer, 10));
}

// Pegasos counts rows, and a removed one is not one. One block, one step a pass: there is no order that could differ.
TEST_P(Weights, OfRemovedRowsAreNoneForPegasos) {
  if (std::string(GetParam()) == "logistic") return;
  const Data data = make_classes(40, 5, 3, 5);
  Data fewer = data;
  fewer.rows.erase(fewer.rows.begin() + 10, fewer.rows.begin() + 20);
  const std::string path = write_store(one_, data, 40).path();
  RowList removed;
  for (uint64_t id = 10; id < 20; ++id) removed.ids.push_back(id);
  remove_rows(path, removed);
  const Store a = Store::open(path);
  const Store b = write_store(two_, fewer, 30);
  std::vector<Solution> first;
  std::vector<Solution> second;
  const SolveOptions options{.method = Pegasos{.step = 0}, .max_passes = 20};
  solve(problem(a), options, first);
  solve(problem(b), options, second);
  for (size_t task = 0; task < 3; ++task)
    for (size_t j = 0; j < first[task].weights.size(); ++j)
      EXPECT_NEAR(first[task].weights[j], second[task].weights[j], 1e-5) << "task " << task;
}

// The ball that Pegasos keeps its weights in must hold the optimum, whatever the rows count.
TEST_P(Weights, MayBeLargeForPegasos) {
  if (std::string(GetParam()) == "logistic") return;
  Data data = make_classes(60, 5, 3, 8);
  for (OwnedRow& row : data.rows)
    for (float& value : row.value) value *= 0.1F;
  Data weighted = data;
  for (OwnedRow& row : weighted.rows) row.weight = 1000;
  const Store plain = write_store(one_, data, 10);
  const Store heavy = write_store(two_, weighted, 10);
  Problem by_class = tasks_for(plain, GetParam(), {0.01, 0.02, 0.03}, 1);
  by_class.class_weights = {{1, 1000.0}, {2, 1000.0}, {3, 1000.0}};
  Problem by_row = tasks_for(heavy, GetParam(), {0.01, 0.02, 0.03}, 1);
  for (Problem* problem : {&by_class, &by_row}) {
    std::vector<Solution> solutions;
    const Summary summary = solve(*problem, {.method = Pegasos{.step = 0}, .max_passes = 20000}, solutions);
    for (int32_t task = 0; task < 3; ++task) {
      const auto number = static_cast<size_t>(task);
      const ReferenceOptimum reference =
          reference_optimum(GetParam(), dense(data, 10 * (task + 1), 1, {}, task + 1), 1e-3, 300);
      EXPECT_GE(summary.certificates[number].primal, reference.dual * (1 - 1e-9));
      EXPECT_LE(summary.certificates[number].primal, reference.primal * 1.1)
          << (problem == &by_class ? "class" : "row") << " weights, task " << task;
    }
  }
}

TEST_P(Weights, OfClassesCountInEveryTask) {
  const Data data = make_classes(60, 5, 3, 6);
  const Store store = write_store(one_, data, 10);
  class_weights_ = {{1, 3.0}, {3, 0.25}};
  for (const AnyMethod& method : {AnyMethod(Dual{}), AnyMethod(Dual{.schedule = Schedule::fixed, .inner = 3}),
                                  AnyMethod(Subsample{.share = 1})}) {
    const std::vector<Certificate> found = certificates(store, method, kTolerance);
    const std::vector<double> costs = {1, 0.1, 0.5};
    for (int32_t task = 0; task < 3; ++task) {
      const auto number = static_cast<size_t>(task);
      const ReferenceOptimum reference =
          reference_optimum(GetParam(), dense(data, costs[number], 1, class_weights_, task + 1));
      EXPECT_NEAR(found[number].primal, reference.primal, kTolerance * reference.primal) << name_of(method) << task;
    }
  }
}

TEST_P(Weights, OfAClassMayBeZero) {
  Data data = make_classes(60, 5, 3, 7);
  const Store store = write_store(one_, data, 10);
  class_weights_ = {{2, 0.0}};
  const std::vector<Certificate> found = certificates(store, Dual{}, kTolerance);
  for (const int32_t task : {0, 2}) {
    const double cost = task == 0 ? 1 : 0.5;
    const ReferenceOptimum reference = reference_optimum(GetParam(), dense(data, cost, 1, class_weights_, task + 1));
    EXPECT_NEAR(found[static_cast<size_t>(task)].primal, reference.primal, kTolerance * reference.primal);
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, Weights, testing::Values("hinge", "squared-hinge", "logistic", "huber-hinge"));

}  // namespace
}  // namespace linblock
