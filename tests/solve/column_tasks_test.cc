// The methods that go over columns, with what all methods must know: tasks, folds, warm starts, removed rows, threads.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "solve/solve.h"
#include "store/core/remove.h"
#include "support/column_problems.h"
#include "support/errors.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

const std::vector<AnyMethod>& methods() {
  static const std::vector<AnyMethod> all = {Primal{}, Primal{.order = ColumnOrder::cyclic},
                                             Primal{.order = ColumnOrder::online}, Cmls{}};
  return all;
}

bool knows(const AnyMethod& method, const std::string& loss) {
  return loss == "squared-hinge" || !std::holds_alternative<Cmls>(method);
}

TEST(ColumnTasks, EachClassAgainstTheRestReachesItsOptimum) {
  const Folder folder;
  const Data data = make_classes(150, 12, 3, 1);
  const Store store = write_store_with_columns(folder, data, 5);
  for (const char* loss : {"squared-hinge", "logistic"}) {
    const Problem problem = tasks_for(store, loss, {0.1, 1, 0.01}, 1);
    for (const AnyMethod& method : methods()) {
      if (!knows(method, loss)) continue;
      std::vector<Solution> solutions;
      const Summary summary = solve_columns(problem, method, 1e-7, solutions);
      for (size_t i = 0; i < problem.tasks.size(); ++i) {
        const Task& task = problem.tasks[i];
        const auto rows = dense(data, task.cost, 1, {}, task.positive);
        const ReferenceOptimum reference = reference_optimum(loss, rows, 1e-8);
        EXPECT_NEAR(summary.certificates[i].primal, reference.primal, 1e-6 * reference.primal) << loss << " " << i;
        EXPECT_NEAR(summary.certificates[i].primal, primal_at(loss, rows, solutions[i].weights, true),
                    1e-9 * reference.primal);
        EXPECT_LE(summary.certificates[i].gap(), 1e-7);
        EXPECT_TRUE(solutions[i].duals.empty());
      }
    }
  }
}

TEST(ColumnTasks, HeldOutRowsAreAsGoodAsAbsent) {
  const Folder folder;
  const Data data = make_data(150, 8, 2);
  const Store store = write_store_with_columns(folder, data, 3);
  for (const char* loss : {"squared-hinge", "logistic"}) {
    Problem problem = problem_for(store, loss, 0.2, 1);
    problem.tasks.assign(3, problem.tasks[0]);
    for (uint32_t fold = 0; fold < 3; ++fold)
      problem.tasks[fold].held_out = {.seed = 5, .parts = 3, .first = fold, .last = fold + 1};
    for (const AnyMethod& method : methods()) {
      if (!knows(method, loss)) continue;
      std::vector<Solution> solutions;
      const Summary summary = solve_columns(problem, method, 1e-7, solutions);
      for (size_t i = 0; i < 3; ++i) {
        std::vector<DenseRow> rows = dense(data, 0.2, 1);
        for (size_t id = 0; id < rows.size(); ++id)
          if (problem.tasks[i].held_out.holds(id)) rows[id].cost = 0;
        const ReferenceOptimum reference = reference_optimum(loss, rows, 1e-8);
        EXPECT_NEAR(summary.certificates[i].primal, reference.primal, 1e-6 * reference.primal) << loss << i;
        EXPECT_NEAR(summary.certificates[i].primal, primal_at(loss, rows, solutions[i].weights, true),
                    1e-9 * reference.primal);
      }
    }
  }
}

TEST(ColumnTasks, RemovedRowsAreAbsent) {
  const Folder folder;
  Data data = make_data(100, 6, 3);
  write_store(folder, data, 20);
  remove_rows(folder / "store", {.ids = {3, 4, 5, 17, 60, 61, 99}});
  const Store store = Store::open(folder / "store");
  write_columns(store, 2);
  std::vector<DenseRow> rows = dense(data, 0.3, 1);
  for (const size_t id : {3, 4, 5, 17, 60, 61, 99}) rows[id].cost = 0;
  for (const char* loss : {"squared-hinge", "logistic"}) {
    const ReferenceOptimum reference = reference_optimum(loss, rows, 1e-8);
    for (const AnyMethod& method : methods()) {
      if (!knows(method, loss)) continue;
      std::vector<Solution> solutions;
      const Summary summary = solve_columns(problem_for(store, loss, 0.3, 1), method, 1e-7, solutions);
      EXPECT_NEAR(summary.certificates[0].primal, reference.primal, 1e-6 * reference.primal);
    }
  }
}

TEST(ColumnTasks, AgreeWithTheDualMethod) {
  const Folder folder;
  const Data data = make_data(200, 40, 4, 0.2);
  const Store store = write_store_with_columns(folder, data, 7);
  for (const char* loss : {"squared-hinge", "logistic"}) {
    const Problem problem = problem_for(store, loss, 1, 1);
    std::vector<Solution> dual;
    solve(problem, {.tolerance = 1e-8, .max_passes = 20000}, dual);
    std::vector<Solution> primal;
    solve_columns(problem, Primal{}, 1e-10, primal);
    for (size_t i = 0; i < dual[0].weights.size(); ++i)
      EXPECT_NEAR(primal[0].weights[i], dual[0].weights[i], 2e-3) << loss << " " << i;
  }
}

TEST(ColumnTasks, TheObjectiveNeverRisesFromPassToPass) {
  const Folder folder;
  const Store store = write_store_with_columns(folder, make_data(150, 20, 5), 3);
  for (const char* loss : {"squared-hinge", "logistic"}) {
    for (const ColumnOrder order :
         {ColumnOrder::permuted, ColumnOrder::cyclic, ColumnOrder::once, ColumnOrder::online}) {
      double before = std::numeric_limits<double>::infinity();
      std::vector<Solution> solutions;
      Context context;
      context.observer.pass = [&](const PassReport& pass) {
        // A certificate rounds the weights to floats on the way.
        EXPECT_LE(pass.primal_estimate, before * (1 + 1e-10)) << loss << ", pass " << pass.pass;
        EXPECT_GE(pass.gradient_norm, pass.largest_slope);
        before = pass.primal_estimate;
      };
      const Summary summary =
          solve_columns(problem_for(store, loss, 3, 1), Primal{.order = order}, 1e-9, solutions, context);
      EXPECT_GT(summary.passes, 3);
    }
  }
}

TEST(ColumnTasks, CmlsFallsOnceItsLossIsTheTrueOne) {
  const Folder folder;
  const Store store = write_store_with_columns(folder, make_data(150, 20, 5), 3);
  double before = std::numeric_limits<double>::infinity();
  std::vector<Solution> solutions;
  Context context;
  context.observer.pass = [&](const PassReport& pass) {
    EXPECT_FALSE(pass.certified.has_value() && pass.pass <= 50);
    EXPECT_TRUE(pass.pass <= 51 || pass.primal_estimate <= before * (1 + 1e-10)) << pass.pass;
    before = pass.primal_estimate;
  };
  const Summary summary = solve_columns(problem_for(store, "squared-hinge", 3), Cmls{}, 1e-9, solutions, context);
  EXPECT_GT(summary.passes, 51);
  EXPECT_EQ(summary.termination, Termination::converged);
  // At a limit before that, the weights are certified for what they are.
  std::vector<Solution> early;
  const Summary short_one = solve_columns(problem_for(store, "squared-hinge", 3), Cmls{}, 1e-9, early, {}, 5);
  EXPECT_EQ(short_one.termination, Termination::pass_limit);
  EXPECT_GE(short_one.certificates[0].primal, summary.certificates[0].dual);
  EXPECT_LE(short_one.certificates[0].dual, summary.certificates[0].primal);
}

TEST(ColumnTasks, AWarmStartGoesOnFromItsWeights) {
  const Folder folder;
  const Data data = make_data(200, 15, 6);
  const Store store = write_store_with_columns(folder, data, 4);
  for (const char* loss : {"squared-hinge", "logistic"}) {
    const Problem problem = problem_for(store, loss, 1, 1);
    std::vector<Solution> cold;
    const Summary first = solve_columns(problem, Primal{}, 1e-8, cold);
    std::vector<Solution> warm(1);
    warm[0].weights = cold[0].weights;
    const Summary again = solve_columns(problem, Primal{}, 1e-8, warm);
    EXPECT_LT(again.passes, first.passes / 2) << loss;
    EXPECT_NEAR(again.certificates[0].primal, first.certificates[0].primal, 1e-7 * first.certificates[0].primal);
    // From another cost's weights to this one's optimum.
    std::vector<Solution> other;
    solve_columns(problem_for(store, loss, 0.01, 1), Primal{}, 1e-3, other);
    other[0].weights.resize(problem.weights());
    const Summary from_other = solve_columns(problem, Primal{}, 1e-8, other);
    EXPECT_NEAR(from_other.certificates[0].primal, first.certificates[0].primal, 1e-7 * first.certificates[0].primal);
  }
}

TEST(ColumnTasks, TheWeightsHaveTheSameBitsForAnyNumberOfThreads) {
  const Folder folder;
  const Store store = write_store_with_columns(folder, make_classes(200, 30, 3, 7), 4);
  for (const char* loss : {"squared-hinge", "logistic"}) {
    const Problem problem = tasks_for(store, loss, {1, 0.1, 2}, 1);
    for (const AnyMethod& method : methods()) {
      if (!knows(method, loss)) continue;
      std::vector<Solution> expected;
      const Summary one = solve_columns(problem, method, 1e-5, expected, {.team = 1});
      for (const size_t threads : {2, 4}) {
        std::vector<Solution> found;
        const Summary summary = solve_columns(problem, method, 1e-5, found, {.team = threads});
        EXPECT_EQ(summary.passes, one.passes);
        for (size_t i = 0; i < found.size(); ++i) {
          EXPECT_EQ(found[i].weights, expected[i].weights);
          EXPECT_EQ(summary.certificates[i].dual, one.certificates[i].dual);
        }
      }
    }
  }
}

TEST(ColumnTasks, ATaskHasTheBitsThatItWouldHaveAlone) {
  const Folder folder;
  const Store store = write_store_with_columns(folder, make_classes(120, 10, 3, 8), 4);
  const Problem problem = tasks_for(store, "squared-hinge", {1, 1, 1});
  std::vector<Solution> together;
  solve_columns(problem, Primal{}, 1e-5, together);
  for (size_t i = 0; i < 3; ++i) {
    std::vector<Solution> alone;
    solve_columns(only_task(problem, i), Primal{}, 1e-5, alone);
    EXPECT_EQ(alone[0].weights, together[i].weights);
  }
}

TEST(ColumnTasks, WeightsStandUnderTheStoresFeatureNumbers) {
  const Folder folder;
  const Data data = make_data(80, 200, 9, 0.1);
  // Feature 150 and its neighbors are the frequent ones, and have the first numbers.
  std::vector<uint32_t> sample;
  for (uint32_t i = 0; i < 128; ++i)
    for (uint32_t times = 0; times < i + 2; ++times) sample.push_back(73 + i);
  {
    StoreWriter writer(folder / "store");
    writer.begin({.shuffle = false}, FeatureMap::from_sample(sample, 1 << 20));
    for (const OwnedRow& row : data.rows) writer.add(row.view());
    writer.commit();
  }
  const Store store = Store::open(folder / "store");
  ASSERT_NE(store.features().number(150), 150U);
  write_columns(store, 9);
  for (const char* loss : {"squared-hinge", "logistic"}) {
    std::vector<Solution> solutions;
    const Summary summary = solve_columns(problem_for(store, loss, 1, 1), Primal{}, 1e-8, solutions);
    std::vector<float> original(solutions[0].weights.size());
    for (uint32_t index = 0; index + 1 < original.size(); ++index)
      original[index] = solutions[0].weights[store.features().number(index)];
    original.back() = solutions[0].weights.back();
    EXPECT_NEAR(primal_at(loss, dense(data, 1, 1), original, true), summary.certificates[0].primal,
                1e-9 * summary.certificates[0].primal);
    // And a warm start reads them there.
    const Summary again = solve_columns(problem_for(store, loss, 1, 1), Primal{}, 1e-8, solutions);
    EXPECT_LE(again.passes, 3);
  }
}

TEST(ColumnTasks, SayHowManyStepsWereFull) {
  const Folder folder;
  const Store store = write_store_with_columns(folder, make_data(150, 20, 10), kAllColumns);
  std::vector<Solution> solutions;
  const Summary summary = solve_columns(problem_for(store, "squared-hinge", 10), Primal{}, 1e-6, solutions);
  const ColumnSteps& steps = summary.column_steps;
  EXPECT_GT(steps.steps, 20U);
  EXPECT_LE(steps.full, steps.steps);
  EXPECT_GT(steps.full_share(), 0.5);
  EXPECT_GT(steps.saved, 0U);
  EXPECT_GE(steps.saved + steps.evaluations, steps.steps);
}

TEST(ColumnTasks, StoredExponentialsOfFarRowsBecomeProducts) {
  Data data = make_data(40, 1, 11, 1.0);
  for (OwnedRow& row : data.rows) row.value[0] = 300;
  const Folder folder;
  const Store store = write_store_with_columns(folder, data, kAllColumns);
  const Problem problem = problem_for(store, "logistic", 1, 1);
  std::vector<Solution> cold;
  const double best =
      solve_columns(problem, Primal{.exponential = Exponential::library}, 1e-9, cold).certificates[0].primal;
  // At once, on the first step, which is long; and not at all.
  for (const float first : {5.0F, -1.5F, 1e-3F}) {
    std::vector<Solution> solutions(1);
    solutions[0].weights.assign(problem.weights(), first);
    const Summary summary = solve_columns(problem, Primal{.exponential = Exponential::stored}, 1e-9, solutions);
    EXPECT_NEAR(summary.certificates[0].primal, best, 1e-8 * best) << first;
    EXPECT_LE(summary.certificates[0].gap(), 1e-9);
  }
}

// No column tells of a feature that no row has any more: its best weight is 0.
TEST(ColumnTasks, AWarmStartForgetsFeaturesThatNoRowHas) {
  const Folder folder;
  const Store store = write_store_with_columns(folder, make_data(50, 4, 14), 2);
  const Problem problem = problem_for(store, "squared-hinge", 1);
  std::vector<Solution> solutions(1);
  solutions[0].weights.assign(problem.weights(), 7);  // feature 0 too
  const Summary summary = solve_columns(problem, Primal{}, 1e-8, solutions);
  EXPECT_EQ(summary.termination, Termination::converged);
  EXPECT_EQ(solutions[0].weights[0], 0);
}

TEST(ColumnTasks, UnsupportedPairsAreUsageErrors) {
  const Folder folder;
  const Store store = write_store_with_columns(folder, make_data(20, 3, 12));
  std::vector<Solution> solutions;
  const auto run = [&](const char* loss, const AnyMethod& method) {
    return [&, loss, method] { solve(problem_for(store, loss, 1), {.method = method}, solutions); };
  };
  expect_error(ErrorKind::usage, {"primal needs a smooth loss", "hinge is none"}, run("hinge", Primal{}));
  expect_error(ErrorKind::usage, {"cmls needs the squared hinge"}, run("hinge", Cmls{}));
  expect_error(ErrorKind::usage, {"cmls needs the squared hinge"}, run("logistic", Cmls{}));
  for (const ColumnOrder order : {ColumnOrder::once, ColumnOrder::online})
    expect_error(ErrorKind::usage, {"cyclic or permuted"}, run("squared-hinge", Cmls{.order = order}));
}

TEST(ColumnTasks, NeedColumnsAndSaySo) {
  const Folder folder;
  const Store store = write_store(folder, make_data(20, 3, 13), 20);
  std::vector<Solution> solutions;
  for (const AnyMethod& method : {AnyMethod(Primal{}), AnyMethod(Cmls{})})
    expect_error(ErrorKind::input, {"transpose"},
                 [&] { solve(problem_for(store, "squared-hinge", 1), {.method = method}, solutions); });
}

}  // namespace
}  // namespace linblock
