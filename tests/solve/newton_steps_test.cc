// What Newton's steps are made of: sums against finite differences, models against what they stand for, and the hinge
// with a penalty that is much too high.
#include <gtest/gtest.h>

#include "base/memory.h"
#include "objective/double_weights.h"
#include "solve/newton/newton_task.h"
#include "solve/solve.h"
#include "support/memory_folder.h"
#include "support/small_problems.h"
#include "support/streamed.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

constexpr const char* kLosses[] = {"hinge", "squared-hinge", "logistic", "huber-hinge"};

// A problem of one task, planned as by the program, and its rows.
class Readings {
 public:
  Readings(const Problem& problem, double tolerance, const Context& context = {})
      : problem_(problem),
        options_({.method = Newton{}, .tolerance = tolerance}),
        context_(context),
        plan_(make_plan(problem, options_, context)),
        order_(BlockOrder::all(*problem.store, plan_.chunks_per_block)),
        solutions_(1) {
    rows_.hold(rows_of(problem_, context_, plan_));
  }
  const Plan& plan() const { return plan_; }
  Setup setup() { return {problem_, options_, solutions_, context_, plan_, rows_.resident()}; }
  void for_each(const std::function<void(const Block&)>& work) {
    rows_.for_each(order_, [&](const Block& block, size_t) {
      work(block);
      return true;
    });
  }
  void read(NewtonEvaluation& evaluation, RowSample& sample) {
    for_each([&](const Block& block) {
      for (size_t i = 0; i < plan_.accumulators; ++i) evaluation.add(block, i);
      evaluation.collect(block, sample);
    });
  }

 private:
  const Problem problem_;
  const SolveOptions options_;
  const Context context_;
  Plan plan_;
  const BlockOrder order_;
  std::vector<Solution> solutions_;
  Rows rows_;
};

struct TaskRun {
  int passes = 0;
  Certificate certificate = {};
  NewtonTask::State state = NewtonTask::State::working;
  uint64_t least_sampled = std::numeric_limits<uint64_t>::max();
};

// One task from its first reading to its last, with a first penalty of so many costs.
TaskRun run_task(Readings& readings, double first_penalty, int most_passes = 300) {
  const Setup setup = readings.setup();
  NewtonTask task(setup, 0, first_penalty);
  FactorPool factors(1, setup.problem.weights());
  TaskRun run;
  while (task.state() == NewtonTask::State::working && run.passes < most_passes) {
    task.begin_pass();
    readings.for_each([&](const Block& block) {
      for (size_t i = 0; i < setup.plan.accumulators; ++i) task.add(block, i);
      task.collect(block);
    });
    run.least_sampled = std::min(run.least_sampled, task.sampled());
    task.end_pass(factors);
    ++run.passes;
  }
  run.certificate = task.certificate();
  run.state = task.state();
  return run;
}

std::vector<double> some_weights(size_t count, double size, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> weights(count);
  for (double& weight : weights) weight = size * normal(random);
  return weights;
}

class NewtonSteps : public testing::TestWithParam<const char*> {
 protected:
  static std::string loss() { return GetParam(); }
  static bool has_centres() { return loss() == "hinge"; }
  const MemoryFolder folder_;
};

TEST_P(NewtonSteps, ReadingsHaveTheGradientAndTheDiagonalOfFiniteDifferences) {
  const Store store = write_store(folder_, make_data(300, 6, 3), 40);
  const Problem problem = problem_for(store, loss(), 2, 0.7);
  Readings readings(problem, 1e-3);
  NewtonEvaluation evaluation(problem, problem.tasks[0], readings.plan().accumulators, 1);
  RowSample sample(store, uint64_t{1} << 20, std::numeric_limits<uint64_t>::max(), nullptr);
  evaluation.set_penalty(3);
  uint64_t number = 0;
  const auto read = [&](std::span<const double> weights) {
    sample.clear();
    evaluation.begin(weights, {}, {.number = ++number});
    readings.read(evaluation, sample);
    return 0.5 * squared(weights) + evaluation.sums().smoothed;
  };
  const std::vector<double> elsewhere = some_weights(problem.weights(), 0.3, 2);
  read(elsewhere);
  evaluation.move_centres();  // somewhere between the bounds
  const std::vector<double> at = some_weights(problem.weights(), 0.3, 1);
  read(at);
  std::vector<double> gradient(at.size());
  std::vector<double> diagonal(at.size());
  for (size_t j = 0; j < at.size(); ++j) {
    gradient[j] = at[j] - evaluation.v(j);
    diagonal[j] = evaluation.diagonal(j);
  }
  constexpr double kStep = 1e-6;
  for (size_t j = 0; j < at.size(); ++j) {
    std::vector<double> higher = at;
    std::vector<double> lower = at;
    higher[j] += kStep;
    lower[j] -= kStep;
    const double above = read(higher);
    const double slope_above = higher[j] - evaluation.v(j);
    const double below = read(lower);
    const double slope_below = lower[j] - evaluation.v(j);
    EXPECT_NEAR(gradient[j], (above - below) / (2 * kStep), 1e-5 * (1 + std::abs(gradient[j]))) << "weight " << j;
    EXPECT_NEAR(1 + diagonal[j], (slope_above - slope_below) / (2 * kStep), 1e-3 * (1 + diagonal[j])) << "weight " << j;
  }
  EXPECT_GT(*std::max_element(diagonal.begin(), diagonal.end()), 1);
}

// Where every row that may move is in the sample, the model is the function itself: its minimum has no gradient.
TEST_P(NewtonSteps, ModelsOfAllRowsEndWhereTheGradientVanishes) {
  const Store store = write_store(folder_, make_data(400, 6, 3), 40);
  const Problem problem = problem_for(store, loss(), 1, 0.7);
  Readings readings(problem, 1e-3);
  for (const bool factors : {false, true}) {
    for (const bool moved : {false, true}) {
      NewtonEvaluation evaluation(problem, problem.tasks[0], readings.plan().accumulators, 1);
      RowSample sample(store, uint64_t{1} << 24, std::numeric_limits<uint64_t>::max(), nullptr);
      evaluation.set_penalty(0.5);
      std::vector<double> at(problem.weights());
      std::vector<double> v(at.size());
      std::vector<float> diagonal(at.size());
      uint64_t number = 0;
      const auto read = [&] {
        sample.clear();
        evaluation.begin(at, {}, {.number = ++number});
        readings.read(evaluation, sample);
        double squares = 0;
        for (size_t j = 0; j < at.size(); ++j) {
          v[j] = evaluation.v(j);
          diagonal[j] = static_cast<float>(evaluation.diagonal(j));
          squares += (at[j] - v[j]) * (at[j] - v[j]);
        }
        return squares;
      };
      const double first = read();
      ASSERT_TRUE(sample.complete());
      const bool moves = moved && evaluation.has_centres();
      if (moves) {
        evaluation.move_centres();
        evaluation.set_penalty(1);
      }
      LocalModel model(problem, sample, 1);
      FactorPool pool(factors ? 1 : 0, problem.weights());
      double products = factors ? 1e6 : 0;  // so many that a factorization is worth it
      const double w2 = squared(at);
      const double linear = evaluation.sums().linear;
      model.minimize(
          {.weights = at, .v = v, .diagonal = diagonal, .penalty = evaluation.penalty(), .centres_moved = moves}, pool,
          0, products, [] { return false; });
      const double rise = model.rise();
      if (moves) {
        read();  // at the same weights: what the model says of the new centres
        EXPECT_NEAR(0.5 * w2 + linear + rise, 0.5 * w2 + evaluation.sums().smoothed, 1e-9 * linear);
      }
      at.assign(model.weights().begin(), model.weights().end());
      EXPECT_LT(read(), 0.02 * first) << factors << moves;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, NewtonSteps, testing::ValuesIn(kLosses), [](const auto& one) {
  std::string name;
  for (const char letter : std::string(one.param))
    if (letter != '-') name += letter;
  return name;
});

// Without the guard these take hundreds of passes, or do not end.
TEST(NewtonPenalty, TooHighAtFirstCostsFewPasses) {
  const MemoryFolder folder;
  const Store store = write_store(folder, make_data(4000, 20, 6), 100);
  const Problem problem = problem_for(store, "hinge", 1, 1);
  Readings readings(problem, 1e-5);
  const TaskRun usual = run_task(readings, NewtonTask::kFirstPenalty);
  ASSERT_EQ(usual.state, NewtonTask::State::converged);
  EXPECT_LE(usual.passes, 20);
  for (const double first : {50.0, 1000.0, 1e6}) {
    const TaskRun run = run_task(readings, first);
    EXPECT_EQ(run.state, NewtonTask::State::converged) << first;
    EXPECT_LE(run.passes, 2 * usual.passes + 10) << first;
    EXPECT_NEAR(run.certificate.primal, usual.certificate.primal, 2e-5 * usual.certificate.primal) << first;
  }
}

// So high that no row is in the zone of the first step, which is then v - w.
TEST(NewtonPenalty, StepsWithoutAnyFreeRow) {
  const MemoryFolder folder;
  const Store store = write_store(folder, make_data(300, 4, 6), 50);
  const Problem problem = problem_for(store, "hinge", 1);
  Readings readings(problem, 1e-6);
  const TaskRun run = run_task(readings, 1e9);
  EXPECT_EQ(run.least_sampled, 0U);
  EXPECT_EQ(run.state, NewtonTask::State::converged);
  const double best = reference_optimum("hinge", dense(make_data(300, 4, 6), 1, -1), 1e-10, 100000).primal;
  EXPECT_NEAR(run.certificate.primal, best, 2e-6 * best);
}

// Rows whose alphas are free in the first readings are several times those that the sample holds.
TEST(NewtonPenalty, MoreFreeRowsThanTheMemoryHolds) {
  const MemoryFolder folder;
  const Store store = write_streamed_store(folder / "store");
  const Problem problem = problem_for(store, "hinge", 1, 1);
  Readings readings(problem, 1e-4, {.memory_bytes = kStreamedMemory});
  ASSERT_EQ(readings.plan().rows, RowsHeld::streamed);
  Readings whole(problem, 1e-4);
  const TaskRun all = run_task(whole, NewtonTask::kFirstPenalty);
  for (const double first : {NewtonTask::kFirstPenalty, 100.0}) {
    const TaskRun run = run_task(readings, first);
    EXPECT_LT(run.least_sampled, store.info().rows / 4);
    EXPECT_EQ(run.state, NewtonTask::State::converged) << first;
    EXPECT_LE(run.passes, 40) << first;
    EXPECT_NEAR(run.certificate.primal, all.certificate.primal, 2e-4 * all.certificate.primal) << first;
  }
}

}  // namespace
}  // namespace linblock
