// Losses that count as 1 + s at most: the true objective falls, and ends where an independent solver ends.
#include "solve/truncated/truncated.h"

#include <gtest/gtest.h>

#include <map>

#include "solve/indexed/start_sample.h"
#include "support/column_problems.h"
#include "support/errors.h"
#include "support/small_problems.h"
#include "support/tight_memory.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

// Labels of which one in ten is wrong.
Data noisy_data(size_t rows, uint32_t features, uint32_t seed) {
  Data data = make_data(rows, features, seed);
  for (size_t i = 2; i < rows; i += 10) data.rows[i].label = -data.rows[i].label;
  return data;
}

double margin_in(const std::vector<double>& w, const DenseRow& row) {
  double sum = 0;
  for (size_t j = 0; j < w.size(); ++j) sum += w[j] * row.x[j];
  return row.y * sum;
}

double true_objective(const std::string& loss, double s, const std::vector<DenseRow>& rows,
                      const std::vector<double>& w) {
  double sum = 0;
  for (const double weight : w) sum += 0.5 * weight * weight;
  for (const DenseRow& row : rows) sum += row.cost * std::min(1 + s, reference_loss(loss, margin_in(w, row)));
  return sum;
}

// The outer loop again, with the reference solver for its convex problems.
double reference_truncated(const std::string& loss, double s, const std::vector<DenseRow>& rows,
                           std::vector<double> w) {
  double objective = true_objective(loss, s, rows, w);
  for (int step = 0; step < 100; ++step) {
    std::vector<DenseRow> in;
    for (const DenseRow& row : rows)
      if (reference_loss(loss, margin_in(w, row)) <= 1 + s) in.push_back(row);
    w = reference_optimum(loss, in, 1e-9).weights;
    const double next = true_objective(loss, s, rows, w);
    if (next >= objective * (1 - 1e-9)) return std::min(next, objective);
    objective = next;
  }
  return objective;
}

std::vector<double> in_double(const Store& store, std::span<const float> weights, uint32_t features, bool bias) {
  std::vector<double> w(features + (bias ? 1 : 0));
  for (uint32_t j = 0; j < features; ++j) w[j] = double{weights[store.features().number(j + 1)]};
  if (bias) w.back() = double{weights.back()};
  return w;
}

// The sum of alpha y x over all rows; `alphas`: by row id.
std::vector<double> sum_of_duals(const Problem& problem, const Task& task, Solution& solution,
                                 std::map<uint64_t, double>* alphas = nullptr) {
  std::vector<double> v(problem.weights(), 0);
  Chunk chunk;
  RowBuffer buffer;
  for (uint32_t number = 0; number < problem.store->chunks().size(); ++number) {
    problem.store->read(number, chunk);
    solution.duals.fetch({&number, 1});
    for (size_t i = 0; i < chunk.rows(); ++i) {
      const double alpha = solution.duals.page(number)[i];
      if (alphas != nullptr) (*alphas)[chunk.id(i)] = alpha;
      const Row row = chunk.row(i, buffer);
      const double scale = row.label == task.positive ? alpha : -alpha;
      for (size_t k = 0; k < row.index.size(); ++k) v[row.index[k]] += scale * double{row.value[k]};
      if (problem.has_bias()) v.back() += scale * problem.bias;
    }
  }
  return v;
}

struct Way {
  const char* loss;
  const char* solver;
  double s = 0.25;
};
std::ostream& operator<<(std::ostream& out, const Way& way) {
  return out << way.loss << "_" << way.solver << "_" << way.s;
}

AnyMethod method_of(const std::string& name) {
  if (name == "dual") return Dual{.inner = 1};
  if (name == "newton") return Newton{};
  if (name == "primal") return Primal{};
  return Cmls{};
}

class Truncated : public testing::TestWithParam<Way> {};

INSTANTIATE_TEST_SUITE_P(Ways, Truncated,
                         testing::Values(Way{"hinge", "dual"}, Way{"hinge", "dual", 0}, Way{"hinge", "dual", 2},
                                         Way{"squared-hinge", "dual"}, Way{"squared-hinge", "dual", 1},
                                         Way{"logistic", "dual"}, Way{"squared-hinge", "newton"},
                                         Way{"squared-hinge", "newton", 1}, Way{"logistic", "newton"},
                                         Way{"hinge", "newton"}, Way{"squared-hinge", "primal"},
                                         Way{"logistic", "primal"}, Way{"squared-hinge", "cmls"},
                                         Way{"huber-hinge", "dual"}, Way{"huber-hinge", "newton"},
                                         Way{"huber-hinge", "primal"}),
                         [](const auto& one) {
                           std::string name = fmt::format("{}_{}_{}", one.param.loss, one.param.solver, one.param.s);
                           for (char& c : name)
                             if (c == '-' || c == '.') c = '_';
                           return name;
                         });

TEST_P(Truncated, EndsWhereAnIndependentSolverEndsAndNeverRises) {
  const auto [loss, solver, s] = GetParam();
  for (const double bias : {-1.0, 1.0}) {
    const Folder folder;
    const Data data = noisy_data(160, 12, 7);
    const Store store = write_store_with_columns(folder, data, kAllColumns, 40);
    Problem problem = problem_for(store, loss, 1, bias);
    problem.truncate = s;
    problem.class_weights = {{-1, 1.5}};
    std::vector<Solution> solutions;
    std::vector<double> objectives;
    std::vector<double> first;
    int last_pass = 0;
    uint64_t last_bytes = 0;
    Context context;
    context.observer.pass = [&](const PassReport& report) {
      // Newton reports a pass only where its weights have moved.
      EXPECT_GT(report.pass, last_pass);
      EXPECT_TRUE(std::string(solver) == "newton" || report.pass == last_pass + 1);
      EXPECT_GE(report.bytes_read, last_bytes);
      last_pass = report.pass;
      last_bytes = report.bytes_read;
      ASSERT_EQ(report.weights.size(), 1U);
      if (!report.truncated) return;
      if (objectives.empty()) first = in_double(store, report.weights.front(), data.features, bias >= 0);
      objectives.push_back(report.truncated->objective);
    };
    const Summary summary =
        solve(problem, {.method = method_of(solver), .tolerance = 1e-5, .max_passes = 100000}, solutions, context);
    EXPECT_NE(summary.termination, Termination::pass_limit);
    EXPECT_LE(summary.largest_gap(), 1e-5);
    ASSERT_EQ(summary.truncated.size(), 1U);
    const TruncatedResult& result = summary.truncated.front();
    const std::vector<DenseRow> rows = dense(data, 1, bias, {{-1, 1.5}});
    const std::vector<double> w = in_double(store, solutions[0].weights, data.features, bias >= 0);
    EXPECT_NEAR(result.objective, true_objective(loss, s, rows, w), 1e-9 * result.objective);
    size_t outliers = 0;
    for (const DenseRow& row : rows) outliers += reference_loss(loss, margin_in(w, row)) > 1 + s ? 1 : 0;
    EXPECT_EQ(result.outliers, outliers);
    EXPECT_GT(outliers, 0U) << "where nothing is cut there is nothing to test";
    ASSERT_GE(objectives.size(), 2U);
    for (size_t i = 1; i < objectives.size(); ++i) EXPECT_LE(objectives[i], objectives[i - 1]);
    EXPECT_EQ(objectives.back(), result.objective);
    // From the same start the reference may take another path at a row on the border; from our end it finds no way on.
    const double reference = reference_truncated(loss, s, rows, first);
    EXPECT_NEAR(result.objective, reference, 1e-2 * reference);
    EXPECT_GE(reference_truncated(loss, s, rows, w), result.objective * (1 - 1e-5));
    ASSERT_EQ(summary.support_vectors.size(), 1U);
    EXPECT_GT(summary.support_vectors[0], 0U);
    EXPECT_LE(summary.support_vectors[0] + outliers, rows.size());
  }
}

TEST_P(Truncated, AtALargeSIsTheConvexOptimum) {
  const auto [loss, solver, s] = GetParam();
  const Folder folder;
  const Data data = noisy_data(120, 10, 3);
  const Store store = write_store_with_columns(folder, data, kAllColumns, 40);
  Problem problem = problem_for(store, loss, 0.5, 1);
  problem.truncate = 1e6;
  std::vector<Solution> solutions;
  const Summary summary =
      solve(problem, {.method = method_of(solver), .tolerance = 1e-7, .max_passes = 100000}, solutions);
  const double best = reference_optimum(loss, dense(data, 0.5, 1)).primal;
  EXPECT_NEAR(summary.truncated[0].objective, best, 1e-6 * best);
  EXPECT_EQ(summary.truncated[0].outliers, 0U);
  EXPECT_LE(summary.truncated[0].outer_steps, 1U);
}

TEST(TruncatedDuals, AreZeroForOutliersAndMakeUpTheWeights) {
  for (const char* loss : {"hinge", "squared-hinge", "logistic"}) {
    const Folder folder;
    const Data data = noisy_data(400, 8, 5);
    const Store store = write_store(folder, data, 30);
    Problem problem = problem_for(store, loss, 1, 1);
    problem.truncate = 0.5;
    std::vector<Solution> solutions;
    const Summary summary = solve(problem, {.method = Dual{}, .tolerance = 1e-4, .max_passes = 10000}, solutions);
    ASSERT_EQ(summary.termination, Termination::converged);
    std::map<uint64_t, double> alphas;
    const std::vector<double> v = sum_of_duals(problem, problem.tasks[0], solutions[0], &alphas);
    const std::vector<float>& weights =
        solutions[0].weights_of_duals.empty() ? solutions[0].weights : solutions[0].weights_of_duals;
    for (size_t j = 0; j < v.size(); ++j) EXPECT_NEAR(v[j], double{weights[j]}, 1e-4) << loss << " weight " << j;
    const std::vector<DenseRow> rows = dense(data, 1, 1);
    const std::vector<double> w = in_double(store, solutions[0].weights, data.features, true);
    size_t outliers = 0;
    uint64_t support = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      support += alphas[i] > 0 ? 1 : 0;
      if (reference_loss(loss, margin_in(w, rows[i])) <= 1.5) continue;
      ++outliers;
      EXPECT_EQ(alphas[i], 0) << loss << " row " << i;
    }
    EXPECT_GT(outliers, 0U);
    EXPECT_EQ(summary.support_vectors[0], support) << loss;
  }
}

TEST(TruncatedTasks, TogetherEqualEachAlone) {
  for (const char* solver : {"dual", "newton"}) {
    const Folder folder;
    const Data data = make_classes(500, 10, 3, 4);
    const Store store = write_store(folder, data, 50);
    Problem problem = tasks_for(store, "squared-hinge", {0.1, 1, 10}, 1);
    for (const Task& task : std::vector<Task>(problem.tasks))
      for (uint32_t fold = 0; fold < 2; ++fold) {
        problem.tasks.push_back(task);
        problem.tasks.back().held_out = {.seed = 1, .parts = 2, .first = fold, .last = fold + 1};
      }
    problem.truncate = 0.5;
    const SolveOptions options{.method = method_of(solver), .tolerance = 1e-5, .max_passes = 100000};
    std::vector<Solution> solutions;
    size_t fewest = problem.tasks.size();
    Context context{.team = 2};
    context.observer.pass = [&](const PassReport& report) {
      EXPECT_EQ(report.weights.size(), problem.tasks.size());
      for (const auto& one : report.weights) EXPECT_EQ(one.size(), problem.weights());
      if (report.truncated && report.tasks_left > 0) fewest = std::min(fewest, report.tasks_left);
    };
    const Summary together = solve(problem, options, solutions, context);
    EXPECT_LT(fewest, problem.tasks.size()) << "tasks that are all done at once are no test";
    for (size_t i = 0; i < problem.tasks.size(); ++i) {
      std::vector<Solution> own;
      const Summary alone = solve(only_task(problem, i), options, own);
      EXPECT_NEAR(together.truncated[i].objective, alone.truncated[0].objective, 1e-4 * alone.truncated[0].objective)
          << solver << " task " << i;
    }
  }
}

TEST(TruncatedRows, WithoutFeaturesAreNeverOutliers) {
  for (const char* loss : {"hinge", "squared-hinge", "logistic"}) {
    const Folder folder;
    Data data = noisy_data(120, 6, 2);
    for (size_t i = 5; i < 60; i += 5) {
      data.rows[i].index.clear();
      data.rows[i].value.clear();
    }
    const Store store = write_store(folder, data, 20);
    Problem problem = problem_for(store, loss, 1);
    problem.truncate = 0;
    std::vector<Solution> solutions;
    const Summary summary = solve(problem, {.tolerance = 1e-5, .max_passes = 100000}, solutions);
    const std::vector<DenseRow> rows = dense(data, 1, -1);
    const std::vector<double> w = in_double(store, solutions[0].weights, data.features, false);
    EXPECT_NEAR(summary.truncated[0].objective, true_objective(loss, 0, rows, w), 1e-9 * 120);
    uint64_t outliers = 0;
    for (const DenseRow& row : rows) outliers += reference_loss(loss, margin_in(w, row)) > 1 ? 1 : 0;
    EXPECT_EQ(summary.truncated[0].outliers, outliers);
  }
}

TEST(TruncatedStart, GivenIsGoneOnFrom) {
  const Folder folder;
  const Data data = noisy_data(300, 10, 9);
  const Store store = write_store(folder, data, 50);
  Problem problem = problem_for(store, "hinge", 1);
  const SolveOptions options{.method = Dual{.inner = 1}, .tolerance = 1e-4, .max_passes = 10000};
  std::vector<Solution> solutions;
  solve(problem, options, solutions);
  if (!solutions[0].weights_of_duals.empty()) solutions[0].weights = std::move(solutions[0].weights_of_duals);
  solutions[0].weights_of_duals = {};
  const std::vector<double> first = in_double(store, solutions[0].weights, data.features, false);
  problem.truncate = 0.5;
  const Summary summary = solve(problem, options, solutions);
  const double reference = reference_truncated("hinge", 0.5, dense(data, 1, -1), first);
  EXPECT_NEAR(summary.truncated[0].objective, reference, 1e-3 * reference);
  // And once more, from where it ended: nothing is left to do.
  if (!solutions[0].weights_of_duals.empty()) solutions[0].weights = std::move(solutions[0].weights_of_duals);
  solutions[0].weights_of_duals = {};
  const Summary again = solve(problem, options, solutions);
  EXPECT_NEAR(again.truncated[0].objective, summary.truncated[0].objective, 1e-3 * summary.truncated[0].objective);
}

TEST(TruncatedLimits, EndWithTheBestSoFarAndAtLeastOneConvexProblem) {
  const Folder folder;
  const Store store = write_store(folder, noisy_data(300, 10, 9), 50);
  Problem problem = problem_for(store, "hinge", 1);
  problem.truncate = 0.5;
  std::vector<Solution> solutions;
  std::vector<double> objectives;
  Context context;
  context.observer.pass = [&](const PassReport& report) {
    if (report.truncated) objectives.push_back(report.truncated->objective);
  };
  const Summary summary =
      solve(problem, {.method = Dual{.inner = 1}, .tolerance = 1e-6, .max_passes = 1}, solutions, context);
  EXPECT_EQ(summary.termination, Termination::pass_limit);
  EXPECT_EQ(summary.passes, 2);  // of the convex problem to begin with, and a reading
  ASSERT_EQ(objectives.size(), 1U);
  EXPECT_EQ(summary.truncated[0].objective, objectives[0]);
  EXPECT_TRUE(std::isfinite(summary.largest_gap()));
}

TEST(TruncatedRefusals, SayWhichSolversCan) {
  const Folder folder;
  const Store store = write_store(folder, noisy_data(40, 4, 9), 20);
  Problem problem = problem_for(store, "hinge", 1);
  problem.truncate = 1;
  for (const AnyMethod& method : std::vector<AnyMethod>{Pegasos{}, Average{}, Subsample{}, CrammerSinger{}}) {
    std::vector<Solution> solutions;
    EXPECT_THAT([&] { solve(problem, {.method = method}, solutions); },
                fails_with(ErrorKind::usage, "use solver dual, newton, primal, cmls or indexed"));
  }
  for (const double s : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    problem.truncate = s;
    std::vector<Solution> solutions;
    EXPECT_THAT([&] { solve(problem, {}, solutions); }, fails_with(ErrorKind::usage, "a number from 0 up"));
  }
}

TEST(StartSampleOfRows, IsTheConvexOptimumOfSomeRowsAndTheirDualsMakeUpItsWeights) {
  for (const char* loss : {"hinge", "squared-hinge", "logistic"}) {
    const Folder folder;
    const Data data = noisy_data(500, 8, 6);
    const Store store = write_store(folder, data, 10);
    Problem problem = problem_for(store, loss, 1, 1);
    problem.tasks[0].held_out = {.seed = 1, .parts = 4, .first = 0, .last = 1};
    const StartSample sample(problem, 100, UINT64_MAX, 1);
    EXPECT_EQ(sample.size(), 100U);
    const StartSample::StartPoint start = sample.solve(problem.tasks[0], 1e-6);
    ASSERT_FALSE(start.support.empty());
    std::vector<double> v(problem.weights(), 0);
    std::vector<uint32_t> chunks;
    for (const StartSample::Support& one : start.support) {
      chunks.push_back(one.origin.chunk);
      EXPECT_FALSE(problem.tasks[0].held_out.holds(one.id));
      const OwnedRow& row = data.rows[one.id];
      const double scale = row.label == 1 ? one.alpha : -one.alpha;
      for (size_t k = 0; k < row.index.size(); ++k) v[store.features().number(row.index[k])] += scale * row.value[k];
      v.back() += scale;
    }
    for (size_t j = 0; j < v.size(); ++j) EXPECT_NEAR(v[j], double{start.weights[j]}, 1e-5);
    EXPECT_TRUE(std::is_sorted(chunks.begin(), chunks.end()));
    EXPECT_GT(chunks.back(), chunks.front());
  }
}

TEST(StartSampleOfRows, IsSmallerWhereTheMemoryIs) {
  const Folder folder;
  const Store store = write_store(folder, noisy_data(500, 8, 6), 50);
  const Problem problem = problem_for(store, "hinge", 1);
  const StartSample sample(problem, 400, 20000, 1);
  EXPECT_GT(sample.size(), 10U);
  EXPECT_LT(sample.size(), 300U);
  EXPECT_EQ(StartSample(problem, 10000, UINT64_MAX, 1).size(), 500U) << "all there are";
}

}  // namespace
}  // namespace linblock
