// Trust-region Newton: the reference optimum to 1e-8, whatever the blocks, tasks, costs and starts.
#include <gtest/gtest.h>

#include "solve/solve.h"
#include "support/errors.h"
#include "support/stopping.h"
#include "support/streamed.h"
#include "support/tight_memory.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

const SolveOptions kTight{.method = Newton{}, .tolerance = 1e-9};

double reference(const std::string& loss, const std::vector<DenseRow>& rows) {
  return reference_optimum(loss, rows, 1e-10, 100000).primal;
}

class NewtonWith : public testing::TestWithParam<std::tuple<const char*, size_t>> {
 protected:
  static std::string loss() { return std::get<0>(GetParam()); }
  static size_t rows_per_chunk() { return std::get<1>(GetParam()); }
  const MemoryFolder folder_;
};

TEST_P(NewtonWith, ReachesTheReferenceOptimumOfEveryTask) {
  const Data data = make_classes(42, 6, 3, 1);
  const Store store = write_store(folder_, data, rows_per_chunk());
  const std::vector<double> costs = {0.5, 0.05, 20};
  std::vector<Solution> solutions;
  SolveOptions options = kTight;
  options.chunks_per_block = 1;
  const Summary summary = solve(tasks_for(store, loss(), costs, 1), options, solutions);
  EXPECT_EQ(summary.termination, Termination::converged);
  for (size_t i = 0; i < costs.size(); ++i) {
    const double best = reference(loss(), dense(data, costs[i], 1, {}, static_cast<int32_t>(i) + 1));
    EXPECT_NEAR(summary.certificates[i].primal, best, 1e-8 * best) << "task " << i;
    EXPECT_LE(summary.certificates[i].dual, best * (1 + 1e-9)) << "task " << i;
    EXPECT_LE(summary.certificates[i].gap(), 1e-8) << "task " << i;
  }
}

TEST_P(NewtonWith, ComesToTheSameOptimumAsTheDualMethod) {
  const Data data = make_data(120, 10, 7);
  const Store store = write_store(folder_, data, rows_per_chunk());
  const Problem problem = problem_for(store, loss(), 2, 1);
  std::vector<Solution> ours;
  std::vector<Solution> theirs;
  const Summary newton = solve(problem, kTight, ours);
  const Summary dual = solve(problem, {.tolerance = 1e-7, .max_passes = 20000}, theirs);
  EXPECT_NEAR(newton.total().primal, dual.total().primal, 1e-6 * dual.total().primal);
  for (size_t j = 0; j < ours[0].weights.size(); ++j)
    EXPECT_NEAR(ours[0].weights[j], theirs[0].weights[j], 2e-3) << "weight " << j;
}

// "squared-hinge" as a part of a test's name.
std::string loss_title(const std::string& loss) {
  return loss == "logistic" ? "Logistic" : loss == "huber-hinge" ? "HuberHinge" : "SquaredHinge";
}

INSTANTIATE_TEST_SUITE_P(Chunks, NewtonWith,
                         testing::Combine(testing::Values("squared-hinge", "logistic", "huber-hinge"),
                                          testing::Values(1U, 7U, 1000U)),
                         [](const auto& one) {
                           return loss_title(std::get<0>(one.param)) + std::to_string(std::get<1>(one.param));
                         });

class NewtonOn : public testing::TestWithParam<const char*> {
 protected:
  static std::string loss() { return GetParam(); }
  Summary solved(const Problem& problem, const SolveOptions& options = kTight, const Context& context = {}) {
    return solve(problem, options, solutions_, context);
  }
  const MemoryFolder folder_;
  std::vector<Solution> solutions_;
};

TEST_P(NewtonOn, RowsWithWeightsOfTheirOwnAndOfTheirClass) {
  Data data = make_data(60, 5, 4);
  for (size_t i = 0; i < data.rows.size(); ++i) data.rows[i].weight = static_cast<float>(i % 4) / 2;
  const Store store = write_store(folder_, data, 7);
  Problem problem = problem_for(store, loss(), 3);
  problem.class_weights = {{1, 0.5}};
  const double best = reference(loss(), dense(data, 3, -1, {{1, 0.5}}));
  EXPECT_NEAR(solved(problem).total().primal, best, 1e-8 * best);
}

TEST_P(NewtonOn, RowsOfWhichSomeAreHeldOut) {
  Data data = make_data(90, 5, 4);
  const Store store = write_store(folder_, data, 7);
  Problem problem = problem_for(store, loss(), 1, 1);
  problem.tasks[0].held_out = {.seed = 5, .parts = 3, .first = 1, .last = 2};
  std::vector<DenseRow> rows = dense(data, 1, 1);
  size_t held = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!problem.tasks[0].held_out.holds(i)) continue;
    rows[i].cost = 0;
    ++held;
  }
  ASSERT_GT(held, 10U);
  const double best = reference(loss(), rows);
  EXPECT_NEAR(solved(problem).total().primal, best, 1e-8 * best);
}

TEST_P(NewtonOn, NeverLetsTheObjectiveRiseFromAnyStart) {
  const Data data = make_data(80, 6, 9);
  const Store store = write_store(folder_, data, 20);
  const Problem problem = problem_for(store, loss(), 10, 1);
  const double best = reference(loss(), dense(data, 10, 1));
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const float size : {0.0F, 1.0F, 100.0F, 10000.0F}) {
    solutions_.clear();
    solutions_.resize(1);
    solutions_[0].weights.resize(problem.weights());
    for (float& weight : solutions_[0].weights) weight = size * normal(random);
    double last = std::numeric_limits<double>::infinity();
    Context context;
    context.observer.pass = [&](const PassReport& report) {
      // The last one is of the weights as floats.
      EXPECT_LE(report.primal_estimate, last * (1 + (report.certified ? 1e-9 : 1e-12)));
      last = report.primal_estimate;
    };
    EXPECT_NEAR(solved(problem, kTight, context).total().primal, best, 1e-8 * best) << "from a start of size " << size;
  }
}

TEST_P(NewtonOn, BeginsWithTheWeightsItIsGiven) {
  const Data data = make_data(200, 12, 5);
  const Store store = write_store(folder_, data, 50);
  const Problem problem = problem_for(store, loss(), 1);
  const int cold = solved(problem).passes;
  const int warm = solved(problem, {.method = Newton{}, .tolerance = 1e-6}).passes;
  EXPECT_GT(cold, 5);
  EXPECT_EQ(warm, 1);
}

TEST_P(NewtonOn, FinishesWhatTheDualMethodBegan) {
  const Data data = make_data(200, 12, 5);
  const Store store = write_store(folder_, data, 50);
  const Problem problem = problem_for(store, loss(), 100);
  const Summary begun = solved(problem, {.tolerance = 1e-9, .max_passes = 3});
  ASSERT_EQ(begun.termination, Termination::pass_limit);
  const Summary finished = solved(problem);
  EXPECT_EQ(finished.termination, Termination::converged);
  EXPECT_LE(finished.largest_gap(), 1e-9);
}

TEST_P(NewtonOn, TakenUpAfterEveryBlockEndsWithTheSameBits) {
  const Store store = write_store(folder_, make_classes(60, 6, 3, 2), 10);
  const Problem problem = tasks_for(store, loss(), {1, 0.1, 5}, 1);
  SolveOptions options = kTight;
  options.chunks_per_block = 2;
  const Summary whole = solved(problem, options);
  Context context;
  context.checkpoint = {.path = folder_ / "STATE"};
  const StoppedRun stopped = run_with_stops(problem, options, context);
  EXPECT_GT(stopped.stops, whole.passes);
  EXPECT_EQ(stopped.summary.passes, whole.passes);
  for (size_t i = 0; i < solutions_.size(); ++i) {
    EXPECT_EQ(stopped.solutions[i].weights, solutions_[i].weights) << "task " << i;
    EXPECT_EQ(stopped.summary.certificates[i].primal, whole.certificates[i].primal);
    EXPECT_EQ(stopped.summary.certificates[i].dual, whole.certificates[i].dual);
  }
}

TEST_P(NewtonOn, HasTheSameBitsForAnyNumberOfThreads) {
  const Store store = write_store(folder_, make_data(3000, 20, 6), 100);
  const Problem problem = problem_for(store, loss(), 1, 1);
  std::vector<float> weights;
  for (const size_t threads : {1, 2, 4}) {
    solutions_.clear();
    const Summary summary = solved(problem, kTight, {.team = threads});
    EXPECT_GT(summary.plan.accumulators, 2U);
    if (threads == 1) weights = solutions_[0].weights;
    EXPECT_EQ(solutions_[0].weights, weights) << threads << " threads";
  }
}

TEST_P(NewtonOn, RowsThatAreReadEachPassEndsWhereRowsInMemoryDo) {
  const Store store = write_streamed_store(folder_ / "store");
  const Problem problem = problem_for(store, loss(), 1, 1);
  const Summary streamed = solved(problem, {.method = Newton{}, .tolerance = 1e-6}, {.memory_bytes = kStreamedMemory});
  ASSERT_EQ(streamed.plan.rows, RowsHeld::streamed);
  EXPECT_GT(streamed.costs.bytes, static_cast<uint64_t>(streamed.passes) * store.info().segments[0].bytes);
  solutions_.clear();
  const Summary resident = solved(problem, kTight);
  ASSERT_NE(resident.plan.rows, RowsHeld::streamed);
  EXPECT_NEAR(streamed.total().primal, resident.total().primal, 1e-6 * resident.total().primal);
}

TEST_P(NewtonOn, StoppedWithoutACheckpointCertifiesWhatThereIs) {
  const Data data = make_data(100, 6, 3);
  const Store store = write_store(folder_, data, 10);
  const Problem problem = problem_for(store, loss(), 1);
  const double best = reference(loss(), dense(data, 1, -1));
  for (const int blocks : {1, 7, 13, 22}) {
    std::atomic<bool> stop = false;
    int left = blocks;
    Context context{.stop = &stop};
    context.observer.block = [&](const BlockReport&) { stop = --left == 0; };
    SolveOptions options = kTight;
    options.chunks_per_block = 2;
    solutions_.clear();
    const Summary summary = solved(problem, options, context);
    EXPECT_EQ(summary.termination, Termination::interrupted);
    EXPECT_GE(summary.total().primal, best * (1 - 1e-9)) << "after " << blocks << " blocks";
    EXPECT_LE(summary.total().dual, best * (1 + 1e-9)) << "after " << blocks << " blocks";
  }
}

TEST_P(NewtonOn, DataAtTheEdges) {
  Data data = make_data(30, 3, 8);
  data.features = 9;  // some of which no row has
  for (OwnedRow& row : data.rows) {
    row.index.push_back(7);
    row.value.push_back(0.5F);  // a constant
  }
  data.rows[4].index.clear();
  data.rows[4].value.clear();
  const Store store = write_store(folder_, data, 7);
  const double best = reference(loss(), dense(data, 1, -1));
  EXPECT_NEAR(solved(problem_for(store, loss(), 1)).total().primal, best, 1e-8 * best);
}

TEST_P(NewtonOn, NothingButABias) {
  Data data = make_data(30, 1, 8);
  for (OwnedRow& row : data.rows) {
    row.index.clear();
    row.value.clear();
  }
  const Store store = write_store(folder_, data, 7);
  const double best = reference(loss(), dense(data, 1, 2));
  EXPECT_NEAR(solved(problem_for(store, loss(), 1, 2)).total().primal, best, 1e-8 * best);
}

TEST_P(NewtonOn, TwoRowsAndOneFeature) {
  const Data data = make_data(2, 1, 8, 1);
  const Store store = write_store(folder_, data, 1);
  const double best = reference(loss(), dense(data, 5, -1));
  EXPECT_NEAR(solved(problem_for(store, loss(), 5)).total().primal, best, 1e-8 * best);
}

INSTANTIATE_TEST_SUITE_P(Losses, NewtonOn, testing::Values("squared-hinge", "logistic", "huber-hinge"),
                         [](const auto& one) { return loss_title(one.param); });

TEST(Newton, RefusesALossWithACorner) {
  const MemoryFolder folder;
  const Store store = write_store(folder, make_data(10, 2, 1), 10);
  std::vector<Solution> solutions;
  EXPECT_THAT([&] { solve(problem_for(store, "hinge", 1), kTight, solutions); },
              fails_with(ErrorKind::usage, "newton needs a smooth loss, and hinge is none"));
}

TEST(Newton, RefusesTooLittleMemoryWithTheNumbers) {
  const MemoryFolder folder;
  const Store store = write_store(folder, make_data(1000, 2, 1), 100);
  std::vector<Solution> solutions;
  EXPECT_THAT([&] { solve(problem_for(store, "logistic", 1), kTight, solutions, {.memory_bytes = 6 << 20}); },
              fails_with(ErrorKind::memory, "margins of 1,000 rows"));
}

// One accumulator where two would not leave room for the rows.
TEST(Newton, PrefersRowsInMemoryToSumsSideBySide) {
  const MemoryFolder folder;
  const Store store = write_streamed_store(folder / "store");
  const Problem problem = problem_for(store, "logistic", 1);
  const auto plan_in = [&](uint64_t memory) { return make_plan(problem, Newton{}, {.memory_bytes = memory}); };
  uint64_t memory = kStreamedMemory;
  while (plan_in(memory).rows == RowsHeld::streamed) memory += 4096;
  EXPECT_LT(plan_in(memory).accumulators, plan_in(uint64_t{1} << 30).accumulators);
}

}  // namespace
}  // namespace linblock
