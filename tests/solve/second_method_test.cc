// Dual descent gives way to newton where it is too slow, and nowhere else.
#include "solve/second_method.h"

#include <gtest/gtest.h>

#include <cmath>

#include "solve/solve.h"
#include "support/memory_folder.h"
#include "support/small_problems.h"
#include "support/stopping.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

// Columns whose scales differ: thousands of passes of dual descent.
Data slow_data(size_t rows = 150, uint32_t features = 60) {
  Data data = make_classes(rows, features, 3, 3);
  for (OwnedRow& row : data.rows)
    for (size_t k = 0; k < row.index.size(); ++k)
      row.value[k] *= std::pow(10.0F, static_cast<float>(row.index[k] % 7) / 2 - 1);
  return data;
}

SolveOptions changing() {
  return {.method = Dual{.inner = 1}, .tolerance = 0.01, .max_passes = 2000, .may_change = true};
}

class SecondMethod : public testing::TestWithParam<const char*> {
 protected:
  const MemoryFolder folder_;
};

TEST_P(SecondMethod, TakesOverWhatIsTooSlow) {
  const Data data = slow_data();
  const Store store = write_store(folder_, data, 30);
  // The last task is easy: dual descent certifies it, and newton has only the others.
  const Problem problem = tasks_for(store, GetParam(), {1, 1, 1e-6}, 1);
  std::vector<Solution> solutions;
  std::vector<std::string> notes;
  Context context;
  context.observer.note = [&](const std::string& note) { notes.push_back(note); };
  const Summary summary = solve(problem, changing(), solutions, context);
  EXPECT_EQ(summary.termination, Termination::converged);
  EXPECT_EQ(summary.plan.method_name(), Newton::kName);
  EXPECT_GT(summary.changed_after, Slowness::kFirstCheck);
  EXPECT_LE(summary.passes, summary.changed_after + 30);
  EXPECT_EQ(notes.size(), 1U);
  ASSERT_EQ(summary.certificates.size(), 3U);
  // Newton's own tests compare it with the reference solver, which takes minutes on such data.
  std::vector<Solution> exact;
  const Summary best = solve(problem, {.method = Newton{}, .tolerance = 1e-7}, exact);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_LE(summary.certificates[i].gap(), 0.01) << i;
    EXPECT_GE(summary.certificates[i].primal, best.certificates[i].dual) << i;
    EXPECT_LE(summary.certificates[i].primal, best.certificates[i].primal * 1.0101) << i;
    EXPECT_LE(summary.certificates[i].dual, best.certificates[i].primal) << i;
    EXPECT_EQ(solutions[i].weights.size(), problem.weights());
  }
}

TEST_P(SecondMethod, IsResumedAfterEveryBlockWithTheSameBits) {
  const Store store = write_store(folder_, slow_data(60, 30), 20);
  const Problem problem = tasks_for(store, GetParam(), {100, 1e-6}, 1);
  std::vector<Solution> whole;
  const Summary summary = solve(problem, changing(), whole);
  ASSERT_GT(summary.changed_after, 0);
  Context context;
  context.checkpoint = {.path = folder_ / "STATE"};
  const SolveOptions options = changing();
  const StoppedRun stopped = run_with_stops(problem, options, context);
  EXPECT_GT(stopped.stops, summary.passes / 2);
  EXPECT_EQ(stopped.summary.changed_after, summary.changed_after);
  EXPECT_EQ(stopped.summary.passes, summary.passes);
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(stopped.solutions[i].weights, whole[i].weights) << "task " << i;
    EXPECT_EQ(stopped.summary.certificates[i].primal, summary.certificates[i].primal);
    EXPECT_EQ(stopped.summary.certificates[i].dual, summary.certificates[i].dual);
  }
}

TEST_P(SecondMethod, HasTheSameBitsForAnyNumberOfThreads) {
  const Store store = write_store(folder_, slow_data(), 30);
  const Problem problem = tasks_for(store, GetParam(), {1, 0.5, 1e-6}, 1);
  std::vector<std::vector<float>> weights;
  for (const size_t threads : {1, 2, 7}) {
    std::vector<Solution> solutions;
    const Summary summary = solve(problem, changing(), solutions, {.team = threads});
    EXPECT_GT(summary.changed_after, 0);
    weights.resize(solutions.size());
    for (size_t i = 0; i < solutions.size(); ++i) {
      if (threads == 1) weights[i] = solutions[i].weights;
      EXPECT_EQ(solutions[i].weights, weights[i]) << threads << " threads, task " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, SecondMethod, testing::Values("hinge", "squared-hinge"),
                         [](const auto& one) { return std::string(one.param) == "hinge" ? "Hinge" : "SquaredHinge"; });

TEST(SecondMethodFor, NothingWhereDualArrives) {
  const MemoryFolder folder;
  const Store store = write_store(folder, make_classes(300, 40, 3, 1), 50);
  const Problem problem = tasks_for(store, "squared-hinge", {0.1, 0.1, 0.1});
  SolveOptions options = changing();
  std::vector<Solution> with;
  const Summary summary = solve(problem, options, with);
  EXPECT_EQ(summary.changed_after, 0);
  EXPECT_EQ(summary.plan.method_name(), Dual::kName);
  options.may_change = false;
  std::vector<Solution> without;
  EXPECT_EQ(solve(problem, options, without).passes, summary.passes);
  for (size_t i = 0; i < with.size(); ++i) EXPECT_EQ(with[i].weights, without[i].weights);
}

TEST(SecondMethodFor, NothingWhereNoPassIsLeft) {
  const MemoryFolder folder;
  const Store store = write_store(folder, slow_data(), 30);
  SolveOptions options = changing();
  options.max_passes = Slowness::kFirstCheck;
  std::vector<Solution> solutions;
  const Summary summary = solve(tasks_for(store, "hinge", {1, 1, 1}, 1), options, solutions);
  EXPECT_EQ(summary.termination, Termination::pass_limit);
  EXPECT_EQ(summary.changed_after, 0);
  EXPECT_EQ(summary.plan.method_name(), Dual::kName);
}

TEST(Slowness, FollowsFromTheRateOfTheSecondHalf) {
  const auto slow = [](double fall_per_pass, double first, int passes) {
    Slowness slowness;
    for (int pass = 1; pass <= passes; ++pass) slowness.see(pass, first * std::exp(-fall_per_pass * pass), 0.01);
    return slowness.is_too_slow();
  };
  EXPECT_FALSE(slow(0.1, 100, 64));
  EXPECT_FALSE(slow(0.0001, 100, 63)) << "too early to tell";
  EXPECT_TRUE(slow(0.0001, 100, 64));
  EXPECT_TRUE(slow(0, 100, 64));
  EXPECT_FALSE(slow(0.0001, 0.00999, 64)) << "within the tolerance";
  // 500 passes ahead at 64: ln(gap / tolerance) = 500 x the fall of a pass.
  const double fall = 0.01;
  EXPECT_FALSE(slow(fall, 0.01 * std::exp(fall * (64 + 490)), 64));
  EXPECT_TRUE(slow(fall, 0.01 * std::exp(fall * (64 + 510)), 64));
  EXPECT_FALSE(slow(fall, 0.01 * std::exp(fall * (64 + 490)), 128));
}

}  // namespace
}  // namespace linblock
