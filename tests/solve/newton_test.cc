// Newton's method: the reference optimum to 1e-8, whatever the blocks, tasks, costs and starts.
#include <gtest/gtest.h>

#include <set>

#include "base/memory.h"
#include "solve/newton/factor.h"
#include "solve/solve.h"
#include "support/errors.h"
#include "support/stopping.h"
#include "support/streamed.h"
#include "support/tight_memory.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

const SolveOptions kTight{.method = Newton{}, .tolerance = 1e-9};

// With more features than a factorization takes, newton has its trust region. The features in between are in no row, so
// the optimum is that of the narrow data.
Data spread(Data data) {
  const uint32_t apart = static_cast<uint32_t>(Factor::kMostWeights) / data.features + 1;
  for (OwnedRow& row : data.rows)
    for (uint32_t& index : row.index) index *= apart;
  data.features *= apart;
  return data;
}

double reference(const std::string& loss, const std::vector<DenseRow>& rows) {
  return reference_optimum(loss, rows, 1e-10, 100000).primal;
}

struct Way {
  const char* loss;
  bool wide = false;  // trust region
};
const std::vector<Way> kWays = {
    {"hinge"},          {"squared-hinge"},    {"logistic"}, {"huber-hinge"}, {"squared-hinge", true},
    {"logistic", true}, {"huber-hinge", true}};

// "squared-hinge" as a part of a test's name.
std::string title(const Way& way) {
  const std::string loss = way.loss;
  return (loss == "hinge"         ? "Hinge"
          : loss == "logistic"    ? "Logistic"
          : loss == "huber-hinge" ? "HuberHinge"
                                  : "SquaredHinge") +
         std::string(way.wide ? "Wide" : "");
}

class NewtonWith : public testing::TestWithParam<std::tuple<Way, size_t>> {
 protected:
  static std::string loss() { return std::get<0>(GetParam()).loss; }
  Store written(const Data& data) const {
    return write_store(folder_, std::get<0>(GetParam()).wide ? spread(data) : data, std::get<1>(GetParam()));
  }
  const MemoryFolder folder_;
};

TEST_P(NewtonWith, ReachesTheReferenceOptimumOfEveryTask) {
  const Data data = make_classes(42, 6, 3, 1);
  const Store store = written(data);
  const std::vector<double> costs = {0.5, 0.05, 20};
  std::vector<Solution> solutions;
  SolveOptions options = kTight;
  options.chunks_per_block = 1;
  const Summary summary = solve(tasks_for(store, loss(), costs, 1), options, solutions);
  EXPECT_EQ(summary.termination, Termination::converged);
  for (size_t i = 0; i < costs.size(); ++i) {
    const double best = reference(loss(), dense(data, costs[i], 1, {}, static_cast<int32_t>(i) + 1));
    // Weights are saved as floats: at its corner the hinge shows that. Its dual values are not rounded.
    const double floats = loss() == "hinge" ? 5e-8 : 1e-8;
    EXPECT_NEAR(summary.certificates[i].primal, best, floats * best) << "task " << i;
    EXPECT_LE(summary.certificates[i].dual, best * (1 + 1e-9)) << "task " << i;
    EXPECT_GE(summary.certificates[i].dual, best * (1 - 1e-8)) << "task " << i;
    EXPECT_LE(summary.certificates[i].gap(), floats) << "task " << i;
  }
}

TEST_P(NewtonWith, ComesToTheSameOptimumAsTheDualMethod) {
  const Data data = make_data(120, 10, 7);
  const Store store = written(data);
  const Problem problem = problem_for(store, loss(), 2, 1);
  std::vector<Solution> ours;
  std::vector<Solution> theirs;
  const Summary newton = solve(problem, kTight, ours);
  const Summary dual = solve(problem, {.tolerance = 1e-7, .max_passes = 20000}, theirs);
  EXPECT_NEAR(newton.total().primal, dual.total().primal, 1e-6 * dual.total().primal);
  for (size_t j = 0; j < ours[0].weights.size(); ++j)
    EXPECT_NEAR(ours[0].weights[j], theirs[0].weights[j], 2e-3) << "weight " << j;
}

INSTANTIATE_TEST_SUITE_P(Chunks, NewtonWith, testing::Combine(testing::ValuesIn(kWays), testing::Values(1U, 7U, 1000U)),
                         [](const auto& one) {
                           return title(std::get<0>(one.param)) + std::to_string(std::get<1>(one.param));
                         });

class NewtonOn : public testing::TestWithParam<Way> {
 protected:
  static std::string loss() { return GetParam().loss; }
  Store written(const Data& data, size_t rows_per_chunk) const {
    return write_store(folder_, GetParam().wide ? spread(data) : data, rows_per_chunk);
  }
  Summary solved(const Problem& problem, const SolveOptions& options = kTight, const Context& context = {}) {
    return solve(problem, options, solutions_, context);
  }
  const MemoryFolder folder_;
  std::vector<Solution> solutions_;
};

TEST_P(NewtonOn, RowsWithWeightsOfTheirOwnAndOfTheirClass) {
  Data data = make_data(60, 5, 4);
  for (size_t i = 0; i < data.rows.size(); ++i) data.rows[i].weight = static_cast<float>(i % 4) / 2;
  const Store store = written(data, 7);
  Problem problem = problem_for(store, loss(), 3);
  problem.class_weights = {{1, 0.5}};
  const double best = reference(loss(), dense(data, 3, -1, {{1, 0.5}}));
  EXPECT_NEAR(solved(problem).total().primal, best, 1e-8 * best);
}

TEST_P(NewtonOn, RowsOfWhichSomeAreHeldOut) {
  Data data = make_data(90, 5, 4);
  const Store store = written(data, 7);
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
  const Store store = written(data, 20);
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
      // The last one is of the weights as floats, which at the corner of the hinge says more.
      const double floats = loss() == "hinge" ? 1e-7 : 1e-9;
      EXPECT_LE(report.primal_estimate, last * (1 + (report.certified ? floats : 1e-12)));
      last = report.primal_estimate;
    };
    EXPECT_NEAR(solved(problem, kTight, context).total().primal, best, 1e-8 * best) << "from a start of size " << size;
  }
}

TEST_P(NewtonOn, BeginsWithTheWeightsItIsGiven) {
  const Data data = make_data(200, 12, 5);
  const Store store = written(data, 50);
  const Problem problem = problem_for(store, loss(), 1);
  const int cold = solved(problem).passes;
  const int warm = solved(problem, {.method = Newton{}, .tolerance = 1e-6}).passes;
  EXPECT_GT(cold, 3);
  // What the duals were is not in the weights of the hinge: its bound takes some more readings.
  if (loss() == "hinge")
    EXPECT_LE(warm, cold / 2);
  else
    EXPECT_EQ(warm, 1);
}

TEST_P(NewtonOn, FinishesWhatTheDualMethodBegan) {
  const Data data = make_data(200, 12, 5);
  const Store store = written(data, 50);
  const Problem problem = problem_for(store, loss(), 100);
  const Summary begun = solved(problem, {.tolerance = 1e-9, .max_passes = 3});
  ASSERT_EQ(begun.termination, Termination::pass_limit);
  // At its corner the hinge cannot be told more closely from weights that are floats.
  const double tolerance = loss() == "hinge" ? 1e-7 : 1e-9;
  const Summary finished = solved(problem, {.method = Newton{}, .tolerance = tolerance});
  EXPECT_EQ(finished.termination, Termination::converged);
  EXPECT_LE(finished.largest_gap(), tolerance);
}

TEST_P(NewtonOn, TakenUpAfterEveryBlockEndsWithTheSameBits) {
  const Store store = written(make_classes(60, 6, 3, 2), 10);
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
  const Store store = written(make_data(3000, 20, 6), 100);
  const Problem problem = problem_for(store, loss(), 1, 1);
  std::vector<float> weights;
  for (const size_t threads : {1, 2, 4}) {
    solutions_.clear();
    const Summary summary = solved(problem, kTight, {.team = threads});
    EXPECT_GT(summary.plan.accumulators, GetParam().wide ? 1U : 2U);
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
  const Store store = written(data, 10);
  const Problem problem = problem_for(store, loss(), 1);
  const double best = reference(loss(), dense(data, 1, -1));
  for (const int blocks : {1, 7, 13, 18}) {
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
  const Store store = written(data, 7);
  const double best = reference(loss(), dense(data, 1, -1));
  EXPECT_NEAR(solved(problem_for(store, loss(), 1)).total().primal, best, 1e-8 * best);
}

TEST_P(NewtonOn, NothingButABias) {
  Data data = make_data(30, 1, 8);
  for (OwnedRow& row : data.rows) {
    row.index.clear();
    row.value.clear();
  }
  const Store store = written(data, 7);
  const double best = reference(loss(), dense(data, 1, 2));
  EXPECT_NEAR(solved(problem_for(store, loss(), 1, 2)).total().primal, best, 1e-8 * best);
}

TEST_P(NewtonOn, TwoRowsAndOneFeature) {
  const Data data = make_data(2, 1, 8, 1);
  const Store store = written(data, 1);
  const double best = reference(loss(), dense(data, 5, -1));
  EXPECT_NEAR(solved(problem_for(store, loss(), 5)).total().primal, best, 1e-8 * best);
}

INSTANTIATE_TEST_SUITE_P(Losses, NewtonOn, testing::ValuesIn(kWays), [](const auto& one) { return title(one.param); });

TEST(Newton, RefusesTooLittleMemoryWithTheNumbers) {
  const MemoryFolder folder;
  std::vector<Solution> solutions;
  const Store few_rows = write_store(folder, make_data(1000, 200, 1), 100);
  EXPECT_THAT([&] { solve(problem_for(few_rows, "logistic", 1), kTight, solutions, {.memory_bytes = 6 << 20}); },
              fails_with(ErrorKind::memory, "margins of 1,000 rows"));
  const MemoryFolder other;
  const Store many_rows = write_store(other, make_data(1000, 2, 1), 100);
  EXPECT_THAT([&] { solve(problem_for(many_rows, "hinge", 1), kTight, solutions, {.memory_bytes = 6 << 20}); },
              fails_with(ErrorKind::memory, "centres of 1,000 rows"));
}

// Where features are many, the order of sums follows from the data alone.
TEST(Newton, GivesTheSameBitsInAnyMemoryAndForTasksAloneOrTogether) {
  const MemoryFolder folder;
  const Store store = write_store(folder, spread(make_classes(4000, 400, 3, 3)), 100);
  for (const char* loss : {"logistic", "squared-hinge"}) {
    const Problem all = tasks_for(store, loss, {0.1, 0.1, 0.1});  // rows are not long for it
    std::vector<Solution> together;
    const SolveOptions options{.method = Newton{}, .tolerance = 1e-5};
    const Summary summary = solve(all, options, together);
    EXPECT_EQ(summary.termination, Termination::converged);
    EXPECT_GE(summary.plan.accumulators, 2U);
    for (size_t i = 0; i < together.size(); ++i) {
      const Problem one = only_task(all, i);
      uint64_t least = kProgramBytes;
      const auto fits = [&] {
        try {
          make_plan(one, Newton{}, {.memory_bytes = least});
          return true;
        } catch (const Error&) {
          return false;
        }
      };
      while (!fits()) least += uint64_t{64} << 10;
      for (const uint64_t memory : {least, uint64_t{1} << 30}) {
        std::vector<Solution> alone;
        const Summary found = solve(one, options, alone, {.memory_bytes = memory, .team = memory == least ? 3U : 1U});
        EXPECT_EQ(found.plan.rows == RowsHeld::streamed, memory == least);
        EXPECT_EQ(found.plan.accumulators, summary.plan.accumulators);
        EXPECT_EQ(alone[0].weights, together[i].weights) << loss << ", task " << i << ", memory " << memory;
      }
    }
  }
}

// Every alpha is at its bound, and no row is free: what is minimized is quadratic plus linear.
TEST(Newton, NeedsNoFreeRow) {
  const MemoryFolder folder;
  const Data data = make_data(200, 8, 3);
  const Store store = write_store(folder, data, 50);
  const double cost = 1e-7;
  std::vector<Solution> solutions;
  const Summary summary = solve(problem_for(store, "hinge", cost), kTight, solutions);
  EXPECT_EQ(summary.termination, Termination::converged);
  double primal = 0;
  for (const float weight : solutions[0].weights) primal += 0.5 * double{weight} * double{weight};
  for (const DenseRow& row : dense(data, cost, -1)) {
    double margin = 0;
    for (size_t j = 0; j < row.x.size(); ++j) margin += row.y * row.x[j] * double{solutions[0].weights[j + 1]};
    EXPECT_LT(margin, 1);
    primal += cost * (1 - margin);
  }
  EXPECT_NEAR(summary.certificates[0].primal, primal, 1e-9 * primal);
}

// Rows that may move and do not fit are a sample: the same optimum, and the same bits for any number of threads.
TEST(Newton, ReachesTheOptimumFromASampleInLittleMemory) {
  const MemoryFolder folder;
  const Store store = write_streamed_store(folder / "store");
  for (const char* loss : {"hinge", "squared-hinge", "logistic"}) {
    const Problem problem = problem_for(store, loss, 1, 1);
    std::vector<Solution> whole;
    const Summary resident = solve(problem, {.method = Newton{}, .tolerance = 1e-5}, whole);
    std::vector<float> weights;
    for (const size_t threads : {1, 2, 3, 7, 16}) {
      std::vector<Solution> solutions;
      const Summary summary = solve(problem, {.method = Newton{}, .tolerance = 1e-5}, solutions,
                                    {.memory_bytes = kStreamedMemory, .team = threads});
      EXPECT_EQ(summary.plan.rows, RowsHeld::streamed);
      EXPECT_EQ(summary.termination, Termination::converged) << loss;
      EXPECT_NEAR(summary.total().primal, resident.total().primal, 1e-5 * resident.total().primal) << loss;
      if (threads == 1) weights = solutions[0].weights;
      EXPECT_EQ(solutions[0].weights, weights) << loss << ", " << threads << " threads";
    }
  }
}

// A sample comes before rows that stay in memory: more memory never costs many passes, whatever it is enough for.
TEST(Newton, MoreMemoryNeverCostsPasses) {
  const MemoryFolder folder;
  const Store store = write_streamed_store(folder / "store");
  for (const char* loss : {"hinge", "logistic"}) {
    Problem problem = problem_for(store, loss, 1, 1);
    for (const double cost : {0.1, 10.0}) problem.tasks.push_back({.positive = 1, .cost = cost});
    int fewest = 1000;
    std::set<RowsHeld> held;
    for (uint64_t memory = uint64_t{12} << 20; memory <= uint64_t{64} << 20; memory = memory * 3 / 2) {
      const Context context{.memory_bytes = memory};
      const size_t at_once = tasks_at_once(problem, {.method = Newton{}}, context);
      int passes = 0;
      for (size_t first = 0; first < problem.tasks.size(); first += at_once) {
        Problem part = problem;
        part.tasks.assign(
            problem.tasks.begin() + static_cast<ptrdiff_t>(first),
            problem.tasks.begin() + static_cast<ptrdiff_t>(std::min(problem.tasks.size(), first + at_once)));
        std::vector<Solution> solutions;
        const Summary summary = solve(part, {.method = Newton{}, .tolerance = 0.01}, solutions, context);
        EXPECT_EQ(summary.termination, Termination::converged);
        EXPECT_FALSE(summary.plan.crowded);
        held.insert(summary.plan.rows);
        passes += summary.passes;
      }
      EXPECT_LE(passes, fewest + fewest / 4 + 2) << loss << " in " << memory << " bytes, " << at_once << " at once";
      fewest = std::min(fewest, passes);
    }
    EXPECT_EQ(held.size(), 3U) << "the memory should lead to every way of holding rows";
  }
}

// Columns whose scales differ by a million, which dual descent does not solve in any number of passes.
TEST(Newton, SolvesAnUnscaledTable) {
  const MemoryFolder folder;
  Data data = make_data(2000, 8, 5);
  for (OwnedRow& row : data.rows)
    for (size_t k = 0; k < row.index.size(); ++k) row.value[k] *= std::pow(10.0F, static_cast<float>(row.index[k]) - 2);
  const Store store = write_store(folder, data, 100);
  for (const char* loss : {"hinge", "squared-hinge", "logistic"}) {
    std::vector<Solution> solutions;
    const Summary summary =
        solve(problem_for(store, loss, 1), {.method = Newton{}, .tolerance = 1e-3, .max_passes = 100}, solutions);
    EXPECT_EQ(summary.termination, Termination::converged) << loss << " " << summary.largest_gap();
  }
}

// Nor does a trust region, where rows are few for each feature and losses nearly vanish.
TEST(Newton, SolvesLongRowsOfManyFeatures) {
  const MemoryFolder folder;
  Data data = make_data(300, 100, 5);
  for (OwnedRow& row : data.rows)
    for (float& value : row.value) value *= 10;
  const Store store = write_store(folder, spread(data), 100);
  for (const char* loss : {"hinge", "squared-hinge", "logistic", "huber-hinge"}) {
    std::vector<Solution> solutions;
    const Summary summary =
        solve(problem_for(store, loss, 1), {.method = Newton{}, .tolerance = 1e-3, .max_passes = 30}, solutions);
    EXPECT_EQ(summary.termination, Termination::converged) << loss << " " << summary.largest_gap();
    const double best = reference(loss, dense(data, 1, -1));
    EXPECT_NEAR(summary.total().primal, best, 1e-3 * best) << loss;
  }
}

}  // namespace
}  // namespace linblock
