// Softmax: the optimum of an independent solver, and what every method promises.
#include <gtest/gtest.h>

#include <cmath>

#include "solve/solve.h"
#include "support/errors.h"
#include "support/softmax_reference.h"
#include "support/stopping.h"
#include "support/tight_memory.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

constexpr double kTolerance = 1e-8;

SolveOptions exactly(double tolerance = kTolerance) {
  return {.method = Softmax{}, .tolerance = tolerance, .max_passes = 5000};
}

Problem softmax_task(const Store& store, double cost, double bias = -1, bool free_bias = false) {
  Problem problem = class_problem(store, cost, bias);
  problem.loss = Logistic{};
  problem.free_bias = free_bias;
  return problem;
}

// The objective of weights as they are saved, in long double.
Real value_of(const Store& store, const Problem& problem, const std::vector<float>& weights) {
  SoftmaxProblem dense_problem{.classes = problem.classes(), .free_bias = problem.free_bias};
  const ClassNumbers numbers(store.info());
  for (const OwnedRow& row : rows_in_order(store)) {
    DenseRow dense_row;
    dense_row.x.assign(problem.weights(), 0);
    for (size_t k = 0; k < row.index.size(); ++k) dense_row.x[row.index[k]] = double{row.value[k]};
    if (problem.has_bias()) dense_row.x.back() = problem.bias;
    const auto factor = problem.class_weights.find(row.label);
    dense_row.cost =
        problem.tasks[0].held_out.holds(row.id)
            ? 0
            : problem.tasks[0].cost * double{row.weight} * (factor == problem.class_weights.end() ? 1 : factor->second);
    dense_problem.rows.push_back(dense_row);
    dense_problem.labels.push_back(numbers[row.label]);
  }
  return dense_problem.value({weights.begin(), weights.end()});
}

// Every certificate on the way bounds the optimum, the last is true of the saved weights and within the tolerance.
Summary expect_optimum(const Store& store, const Problem& problem, Real optimum,
                       const SolveOptions& options = exactly(), Context context = {}) {
  const auto best = static_cast<double>(optimum);
  context.observer.pass = [&](const PassReport& pass) {
    EXPECT_LE(Real{pass.dual}, optimum * (1 + 1e-15L));
    EXPECT_GE(pass.primal_estimate, best * (1 - 1e-12));
  };
  std::vector<Solution> solutions;
  Summary summary = solve(problem, options, solutions, context);
  const Certificate& certificate = summary.certificates.at(0);
  EXPECT_EQ(summary.termination, Termination::converged);
  EXPECT_LE(certificate.gap(), options.tolerance * (1 + 1e-3));
  EXPECT_NEAR(certificate.primal, best, 2 * options.tolerance * best);
  EXPECT_EQ(solutions[0].weights.size(), problem.weights() * problem.classes());
  const Real value = value_of(store, problem, solutions[0].weights);
  EXPECT_NEAR(certificate.primal, static_cast<double>(value), 1e-12 * best);
  EXPECT_LE(value - optimum, Real{certificate.primal} - Real{certificate.dual}) << "certified too little";
  return summary;
}

struct Shape {
  uint32_t classes = 3;
  double bias = -1;
  bool free_bias = false;
};

class SoftmaxOptimum : public testing::TestWithParam<Shape> {};

TEST_P(SoftmaxOptimum, IsReachedWithBlocksOfAnySize) {
  const auto [classes, bias, free_bias] = GetParam();
  const Data data = make_class_data(42, 4, classes, 1);
  const Real reference = softmax_optimum(softmax_problem(data, 0.5, bias, free_bias));
  for (const size_t rows_per_chunk : {1, 7, 42}) {
    SCOPED_TRACE(testing::Message() << rows_per_chunk << " rows a chunk");
    const Folder folder;
    const Store store = write_store(folder, data, rows_per_chunk);
    SolveOptions options = exactly();
    options.chunks_per_block = 3;
    expect_optimum(store, softmax_task(store, 0.5, bias, free_bias), reference, options);
  }
}

TEST_P(SoftmaxOptimum, TakesClassWeightsRowWeightsAndHeldOutRowsIntoAccount) {
  const auto [classes, bias, free_bias] = GetParam();
  const Folder folder;
  Data data = make_class_data(60, 4, classes, 3);
  for (size_t i = 0; i < data.rows.size(); ++i) data.rows[i].weight = static_cast<float>(i % 4);
  const Store store = write_store(folder, data, 10);
  Problem problem = softmax_task(store, 0.7, bias, free_bias);
  problem.class_weights = {{10, 3.0}, {20, 0.5}};
  problem.tasks[0].held_out = {.seed = 1, .parts = 4, .first = 1, .last = 2};
  for (size_t i = 0; i < data.rows.size(); ++i)
    if (problem.tasks[0].held_out.holds(i)) data.rows[i].weight = 0;
  const SoftmaxProblem dense_problem = softmax_problem(data, 0.7, bias, free_bias, problem.class_weights);
  expect_optimum(store, problem, softmax_optimum(dense_problem));
}

TEST_P(SoftmaxOptimum, HasALowerBoundBesideWeightsThatAreFarFromIt) {
  const auto [classes, bias, free_bias] = GetParam();
  const Data data = make_class_data(50, 4, classes, 5);
  const Folder folder;
  const Store store = write_store(folder, data, 10);
  for (const double cost : {1e-3, 1.0, 100.0}) {
    const Problem problem = softmax_task(store, cost, bias, free_bias);
    const Real reference = softmax_optimum(softmax_problem(data, cost, bias, free_bias));
    for (const int passes : {1, 2, 3, 5, 8}) {
      SolveOptions options = exactly();
      options.max_passes = passes;
      std::vector<Solution> solutions(1);
      std::mt19937 random(static_cast<uint32_t>(passes));
      std::normal_distribution<float> normal;
      for (size_t i = 0; i < problem.weights() * problem.classes(); ++i) solutions[0].weights.push_back(normal(random));
      const Summary summary = solve(problem, options, solutions);
      const Certificate& certificate = summary.certificates[0];
      EXPECT_LE(Real{certificate.dual}, reference * (1 + 1e-15L)) << cost << " " << passes;
      const Real value = value_of(store, problem, solutions[0].weights);
      EXPECT_NEAR(certificate.primal, static_cast<double>(value), 1e-12 * static_cast<double>(value));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Some, SoftmaxOptimum,
                         testing::Values(Shape{.classes = 2}, Shape{}, Shape{.classes = 5, .bias = 1},
                                         Shape{.classes = 2, .bias = 1, .free_bias = true},
                                         Shape{.classes = 4, .bias = 2, .free_bias = true}),
                         [](const testing::TestParamInfo<Shape>& shape) {
                           return fmt::format("{}Classes{}", shape.param.classes,
                                              shape.param.free_bias  ? "FreeBias"
                                              : shape.param.bias > 0 ? "Bias"
                                                                     : "");
                         });

TEST(Softmax, LeavesOutAClassWithoutCostIfTheBiasIsFree) {
  const Folder folder;
  const Data data = make_class_data(60, 4, 4, 7);
  const Store store = write_store(folder, data, 10);
  for (const bool free_bias : {false, true}) {
    Problem problem = softmax_task(store, 1, 1, free_bias);
    problem.class_weights = {{30, 0.0}};
    Data others = data;
    if (free_bias) std::erase_if(others.rows, [](const OwnedRow& row) { return row.label == 30; });
    const SoftmaxProblem dense_problem = softmax_problem(others, 1, 1, free_bias, problem.class_weights);
    expect_optimum(store, problem, softmax_optimum(dense_problem));
  }
}

Problem several_tasks(const Store& store, bool free_bias) {
  Problem problem = softmax_task(store, 1, 1, free_bias);
  problem.tasks.clear();
  for (uint32_t fold = 0; fold < 3; ++fold)
    problem.tasks.push_back(
        {.cost = fold == 2 ? 0.01 : 1, .held_out = {.seed = 1, .parts = 3, .first = fold, .last = fold + 1}});
  return problem;
}

TEST(Softmax, GivesTheSameBitsForAnyNumberOfThreads) {
  const Folder folder;
  const Store store = write_store(folder, make_class_data(150, 8, 5, 8), 10);
  for (const bool free_bias : {false, true}) {
    const Problem several = several_tasks(store, free_bias);
    Problem one = several;
    one.tasks.resize(1);
    for (const Problem& problem : {one, several}) {
      std::vector<std::vector<float>> expected;
      for (const size_t threads : {1, 2, 3, 7, 16}) {
        std::vector<Solution> solutions;
        SolveOptions options = exactly(1e-4);
        options.chunks_per_block = 4;
        solve(problem, options, solutions, {.team = threads});
        for (size_t i = 0; i < solutions.size(); ++i) {
          if (threads == 1) expected.push_back(solutions[i].weights);
          EXPECT_EQ(solutions[i].weights, expected.at(i)) << threads << " threads";
        }
      }
    }
  }
}

TEST(Softmax, GoesOnFromAnEarlierAnswer) {
  const Folder folder;
  const Store store = write_store(folder, make_class_data(100, 6, 4, 9), 10);
  for (const bool free_bias : {false, true}) {
    std::vector<Solution> solutions;
    const Problem problem = softmax_task(store, 1, 1, free_bias);
    const Summary first = solve(problem, exactly(1e-4), solutions);
    const Summary again = solve(problem, exactly(1e-4), solutions);
    EXPECT_GT(first.passes, 5);
    EXPECT_LE(again.passes, 2);
    EXPECT_EQ(again.termination, Termination::converged);
  }
}

// Weights of 0 are within the tolerance then, and tell no class from another.
TEST(Softmax, MakesAStepHoweverSmallTheCostIs) {
  const Folder folder;
  const Store store = write_store(folder, make_class_data(100, 6, 4, 9), 10);
  for (const bool free_bias : {false, true}) {
    std::vector<Solution> solutions;
    const Problem problem = softmax_task(store, 1e-6, 1, free_bias);
    const Summary summary = solve(problem, exactly(0.01), solutions);
    EXPECT_EQ(summary.termination, Termination::converged);
    const std::vector<float>& weights = solutions[0].weights;
    const auto biases = static_cast<ptrdiff_t>(problem.classes());
    EXPECT_TRUE(std::any_of(weights.begin(), weights.end() - biases, [](float weight) { return weight != 0; }));
  }
}

// In so little memory that rows are read in each pass.
class SoftmaxInLittleMemory : public testing::TestWithParam<bool> {
 protected:
  static Store write(const std::string& path, const Data& data) {
    StoreWriter writer(path);
    writer.begin({.buckets = 60, .chunk_bytes = 4096});
    for (const OwnedRow& row : data.rows) writer.add(row.view());
    writer.commit();
    return Store::open(path);
  }
  uint64_t streaming(const Problem& problem) const {
    const AnyMethod method = Softmax{};
    const uint64_t least = least_memory(problem, method);
    const uint64_t enough =
        least_memory_where(problem, method, "", [](const Plan& plan) { return plan.rows != RowsHeld::streamed; });
    return least + (enough - least) / 2;
  }

  const MemoryFolder folder_;
  const Data data_ = make_class_data(300, 12, 3, 10);
  const Store store_ = write(folder_ / "store", data_);
};

TEST_P(SoftmaxInLittleMemory, ReachesTheReferenceOptimum) {
  const Problem problem = softmax_task(store_, 0.1, 1, GetParam());
  const Real reference = softmax_optimum(softmax_problem(data_, 0.1, 1, GetParam()));
  const Summary summary = expect_optimum(store_, problem, reference, exactly(), context_with(streaming(problem)));
  EXPECT_EQ(summary.plan.rows, RowsHeld::streamed);
  const Summary least =
      expect_optimum(store_, problem, reference, exactly(), context_with(least_memory(problem, Softmax{})));
  EXPECT_EQ(least.plan.bytes("probabilities") > 0, GetParam()) << "a free bias needs them, others need not keep them";
}

TEST_P(SoftmaxInLittleMemory, EndsWithTheSameBitsWhereverItIsStopped) {
  const Problem problem = several_tasks(store_, GetParam());
  for (const uint64_t memory : {streaming(problem), uint64_t{1} << 30}) {
    SolveOptions options = exactly(1e-4);
    options.chunks_per_block = 13;
    std::vector<Solution> whole;
    int blocks = 0;
    Context unstopped = context_with(memory, folder_ / "WHOLE");
    unstopped.observer.block = [&](const BlockReport&) { ++blocks; };
    const Summary expected = solve(problem, options, whole, unstopped);
    EXPECT_GT(blocks, expected.passes) << "one block a pass is no test";
    Context stopping = context_with(memory, folder_ / ("STOPPED-" + std::to_string(memory)));
    stopping.team = 3;
    const StoppedRun found = run_with_stops(problem, options, stopping);
    EXPECT_EQ(found.stops, blocks);
    EXPECT_EQ(found.summary.passes, expected.passes);
    for (size_t i = 0; i < whole.size(); ++i) {
      EXPECT_EQ(found.summary.certificates[i].primal, expected.certificates[i].primal);
      EXPECT_EQ(found.summary.certificates[i].dual, expected.certificates[i].dual);
      EXPECT_EQ(found.solutions[i].weights, whole[i].weights);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Bias, SoftmaxInLittleMemory, testing::Bool(),
                         [](const auto& bias) { return bias.param ? "free" : "penalized"; });

TEST(Softmax, CertifiesTheSavedWeightsIfItIsToldToEndEarly) {
  const Folder folder;
  const Data data = make_class_data(100, 6, 4, 11);
  const Store store = write_store(folder, data, 10);
  for (const bool free_bias : {false, true}) {
    const Problem problem = softmax_task(store, 10, 1, free_bias);
    for (const int passes : {1, 2, 4, 7}) {
      SolveOptions options = exactly();
      options.max_passes = passes;
      std::vector<Solution> solutions;
      const Summary summary = solve(problem, options, solutions);
      EXPECT_EQ(summary.termination, Termination::pass_limit);
      EXPECT_EQ(summary.passes, passes);
      const auto value = static_cast<double>(value_of(store, problem, solutions[0].weights));
      EXPECT_NEAR(summary.certificates[0].primal, value, 1e-12 * value);
    }
  }
}

TEST(Softmax, IsForTheLogisticLoss) {
  const Folder folder;
  const Store store = write_store(folder, make_class_data(20, 3, 3, 11), 10);
  std::vector<Solution> solutions;
  expect_error(ErrorKind::usage, {"softmax", "hinge", "logistic"},
               [&] { solve(class_problem(store, 1), exactly(), solutions); });
}

TEST(Softmax, RefusesAMemoryThatCannotHoldTheWeightsOfAllClasses) {
  const Folder folder;
  Data data = make_class_data(20, 3, 5, 12);
  data.rows[0].index.push_back(1'000'000);
  data.rows[0].value.push_back(1);
  const Store store = write_store(folder, data, 10);
  std::vector<Solution> solutions;
  expect_error(ErrorKind::memory, {"weights of 1,000,001 features for each of 5 classes", "one-vs-rest"},
               [&] { solve(softmax_task(store, 1), exactly(), solutions, {.memory_bytes = uint64_t{64} << 20}); });
}

TEST(Softmax, NeverMakesANumberThatIsNotFinite) {
  for (const double scale : {1e30, 1e-30}) {
    for (const double cost : {1e-8, 1.0, 1e8}) {
      for (const bool free_bias : {false, true}) {
        const Folder folder;
        Data data = make_class_data(30, 4, 3, 14);
        for (OwnedRow& row : data.rows)
          for (float& value : row.value) value = static_cast<float>(value * scale);
        data.rows.push_back({.label = 10});  // rows without features
        data.rows.push_back({.label = 30});
        const Store store = write_store(folder, data, 32);
        std::vector<Solution> solutions;
        SolveOptions options = exactly(0.01);
        options.max_passes = 50;
        const Summary summary = solve(softmax_task(store, cost, 1, free_bias), options, solutions);
        for (const float weight : solutions[0].weights) EXPECT_TRUE(std::isfinite(weight)) << scale << " " << cost;
        EXPECT_TRUE(std::isfinite(summary.certificates[0].primal)) << scale << " " << cost;
        EXPECT_LE(summary.certificates[0].dual, summary.certificates[0].primal);
      }
    }
  }
}

}  // namespace
}  // namespace linblock
