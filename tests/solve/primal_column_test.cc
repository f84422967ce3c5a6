#include <gtest/gtest.h>

#include "base/error.h"
#include "solve/solve.h"
#include "support/column_problems.h"
#include "support/errors.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

struct Case {
  const char* name;
  std::string loss;
  AnyMethod method;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& [name, order] :
       {std::pair{"Permuted", ColumnOrder::permuted}, std::pair{"Cyclic", ColumnOrder::cyclic},
        std::pair{"Once", ColumnOrder::once}, std::pair{"Online", ColumnOrder::online}}) {
    all.push_back({name, "squared-hinge", Primal{.order = order}});
    all.push_back({name, "logistic", Primal{.order = order}});
  }
  for (const auto& [name, exponential] :
       {std::pair{"Library", Exponential::library}, std::pair{"Fast", Exponential::fast},
        std::pair{"Stored", Exponential::stored}})
    all.push_back({name, "logistic", Primal{.exponential = exponential}});
  all.push_back({"Huber", "huber-hinge", Primal{}});
  all.push_back({"CmlsCyclic", "squared-hinge", Cmls{}});
  all.push_back({"CmlsPermuted", "squared-hinge", Cmls{.order = ColumnOrder::permuted}});
  return all;
}

class Columnwise : public testing::TestWithParam<Case> {
 protected:
  // The primal that is said must be that of the weights, and both within 1e-6 of the best.
  void expect_optimum(const Data& data, double cost, double bias, uint32_t columns_per_chunk,
                      const std::map<int32_t, double>& class_weights = {}) {
    const Folder folder;
    const Store store = write_store_with_columns(folder, data, columns_per_chunk);
    const std::string& loss = GetParam().loss;
    Problem problem = problem_for(store, loss, cost, bias);
    problem.class_weights = class_weights;
    const std::vector<DenseRow> rows = dense(data, cost, bias, class_weights);
    const ReferenceOptimum reference = reference_optimum(loss, rows, 1e-8);
    std::vector<Solution> solutions;
    const Summary summary = solve_columns(problem, GetParam().method, 1e-7, solutions);
    EXPECT_EQ(summary.termination, Termination::converged) << summary.passes << " passes";
    EXPECT_NEAR(summary.certificates[0].primal, reference.primal, 1e-6 * reference.primal);
    EXPECT_NEAR(summary.certificates[0].primal, primal_at(loss, rows, solutions[0].weights, bias >= 0),
                1e-10 * reference.primal);
    EXPECT_LE(summary.certificates[0].dual, reference.primal * (1 + 1e-9));
  }
};

TEST_P(Columnwise, ReachesTheReferenceOptimumWithBlocksOfAnySize) {
  const Data data = make_data(120, 15, 1);
  for (const uint32_t columns : {1U, 7U, kAllColumns}) {
    SCOPED_TRACE(columns);
    expect_optimum(data, 0.5, -1, columns);
  }
}

TEST_P(Columnwise, ReachesItWithABias) {
  for (const uint32_t columns : {1U, 7U, kAllColumns}) expect_optimum(make_data(100, 10, 2), 0.1, 1.5, columns);
}

TEST_P(Columnwise, ReachesItWithClassAndRowWeights) {
  Data data = make_data(100, 8, 3);
  for (size_t i = 0; i < data.rows.size(); ++i) data.rows[i].weight = static_cast<float>(i % 4) * 0.5F;
  expect_optimum(data, 0.4, -1, 7, {{1, 3.0}, {-1, 0.5}});
  expect_optimum(data, 0.4, 1, 1, {{1, 0.0}, {-1, 0.5}});
}

TEST_P(Columnwise, ReachesItOnRowsOfEqualValues) {
  expect_optimum(with_equal_values(make_data(100, 12, 4, 0.3)), 0.03, 1, 7);
}

TEST_P(Columnwise, HandlesOneFeatureOneRowOfAClassAndFeaturesThatNobodyHas) {
  expect_optimum(make_data(30, 1, 5, 1.0), 1, -1, kAllColumns);
  Data two = make_data(2, 3, 6, 1.0);
  expect_optimum(two, 1, 1, 1);
  Data sparse = make_data(40, 9, 7);
  for (OwnedRow& row : sparse.rows) {
    OwnedRow kept = row;
    kept.index.clear();
    kept.value.clear();
    for (size_t k = 0; k < row.index.size(); ++k) {
      if (row.index[k] % 3 == 0) continue;
      kept.index.push_back(row.index[k]);
      kept.value.push_back(row.value[k]);
    }
    row = kept;
  }
  sparse.rows[0].index.push_back(9);  // the last one stays, so that the reference counts as many
  sparse.rows[0].value.push_back(1);
  expect_optimum(sparse, 1, -1, 7);
}

TEST_P(Columnwise, HandlesAFeatureThatIsConstant) {
  Data data = make_data(60, 4, 8);
  data.features = 5;
  for (OwnedRow& row : data.rows) {
    row.index.push_back(5);
    row.value.push_back(2);
  }
  expect_optimum(data, 0.1, -1, 7);
}

TEST_P(Columnwise, HandlesRowsWithoutFeatures) {
  Data data = make_data(20, 2, 9);
  for (size_t i = 5; i < data.rows.size(); ++i) {
    data.rows[i].index.clear();
    data.rows[i].value.clear();
  }
  expect_optimum(data, 0.5, 1, 1);
}

INSTANTIATE_TEST_SUITE_P(Methods, Columnwise, testing::ValuesIn(cases()), [](const auto& one) {
  return one.param.name + (one.param.loss == "logistic" ? std::string("Logistic") : "");
});

}  // namespace
}  // namespace linblock
