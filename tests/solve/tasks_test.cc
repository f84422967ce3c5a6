// Several tasks in one reading: each ends as it would alone, with the same bits for any number of threads.
#include <gtest/gtest.h>

#include <set>

#include "support/tight_memory.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

enum class Where { decoded, encoded, streamed, duals_in_file };
const std::vector<Where> kEverywhere = {Where::decoded, Where::encoded, Where::streamed, Where::duals_in_file};

struct Outcome {
  Summary summary;
  std::vector<Solution> solutions;
  std::vector<size_t> left;                         // of each pass: tasks that are not done
  std::vector<std::vector<std::vector<float>>> at;  // the weights after each pass, by task
};

class Tasks : public testing::Test {
 protected:
  static uint64_t memory(const Problem& problem, const AnyMethod& method, Where where) {
    switch (where) {
      case Where::decoded: return uint64_t{1} << 30;
      case Where::encoded: return memory_for_encoded_rows(problem, method, "somewhere");
      case Where::streamed: return streaming_memory(problem);
      case Where::duals_in_file: return least_memory(problem, method, "somewhere");
    }
    return 0;
  }
  Outcome solved(const Problem& problem, const SolveOptions& options, Where where, size_t threads = 1) const {
    Outcome outcome;
    // With a checkpoint everywhere, though it is needed for duals in a file only.
    Context context = context_with(memory(problem, options.method, where), rows_.folder / "STATE");
    context.checkpoint.every_seconds = 1e9;
    std::filesystem::remove(context.checkpoint.path);
    context.team = threads;
    context.observer.pass = [&](const PassReport& pass) {
      outcome.left.push_back(pass.tasks_left);
      outcome.at.emplace_back();
      for (const auto& weights : pass.weights) outcome.at.back().emplace_back(weights.begin(), weights.end());
    };
    outcome.summary = solve(problem, options, outcome.solutions, context);
    expect_planned(outcome.summary.plan, options.method, where);
    return outcome;
  }
  static void expect_planned(const Plan& plan, const AnyMethod& method, Where where) {
    EXPECT_EQ(plan.duals_in_file, where == Where::duals_in_file);
    if (where == Where::duals_in_file) return;
    EXPECT_EQ(plan.rows == RowsHeld::streamed, where == Where::streamed);
    const auto* dual = std::get_if<Dual>(&method);
    const bool small_blocks = dual != nullptr && dual->schedule == Schedule::recomposed;
    // A block of all rows, decoded for its tasks, takes as much as all rows decoded.
    if (where == Where::encoded && small_blocks) {
      EXPECT_EQ(plan.rows, RowsHeld::encoded);
    }
  }
  static void expect_same(const Certificate& found, const Certificate& expected) {
    EXPECT_EQ(found.primal, expected.primal);
    EXPECT_EQ(found.dual, expected.dual);
  }
  void expect_each_as_alone(const Problem& problem, const SolveOptions& options, Where where) const {
    const Outcome together = solved(problem, options, where, 2);
    ASSERT_EQ(together.solutions.size(), problem.tasks.size());
    int most_passes = 0;
    for (size_t i = 0; i < problem.tasks.size(); ++i) {
      SCOPED_TRACE(testing::Message() << name_of(problem.loss) << ", where " << static_cast<int>(where) << ", task "
                                      << i);
      const Outcome alone = solved(only_task(problem, i), options, where);
      EXPECT_EQ(together.solutions[i].weights, alone.solutions[0].weights);
      if (where != Where::duals_in_file && !together.solutions[i].duals.empty()) {
        const auto all = [](const Solution& solution) {
          return std::vector<double>(solution.duals.all().begin(), solution.duals.all().end());
        };
        EXPECT_EQ(all(together.solutions[i]), all(alone.solutions[0]));
      }
      expect_same(together.summary.certificates[i], alone.summary.certificates[0]);
      most_passes = std::max(most_passes, alone.summary.passes);
    }
    EXPECT_EQ(together.summary.passes, most_passes);
  }

  const ManyChunks rows_{make_classes(300, 24, 4, 1)};
  const std::vector<double> costs_ = {0.003, 0.1, 0.02, 0.5};
};

TEST_F(Tasks, WithFixedBlocksAreTheSameBitsAsEachAlone) {
  for (const char* loss : {"hinge", "squared-hinge", "logistic"})
    for (const Where where : kEverywhere)
      expect_each_as_alone(tasks_for(rows_.store, loss, costs_, 1),
                           {.method = Dual{.schedule = Schedule::fixed, .blocks = 20, .inner = 1, .cache_fraction = 0},
                            .tolerance = 1e-3},
                           where);
}

TEST_F(Tasks, SolvedBlockByBlockAreTheSameBitsAsEachAlone) {
  for (const Where where : kEverywhere)
    expect_each_as_alone(tasks_for(rows_.store, "squared-hinge", costs_),
                         {.method = Dual{.schedule = Schedule::fixed,
                                         .blocks = 30,
                                         .inner = InnerIterations::until_solved(),
                                         .cache_fraction = 0},
                          .tolerance = 1e-3},
                         where);
}

TEST_F(Tasks, OfPegasosAndAveragesAreTheSameBitsAsEachAlone) {
  for (const Where where : {Where::decoded, Where::encoded, Where::streamed}) {
    for (const char* loss : {"hinge", "squared-hinge"})
      for (const size_t step : {0, 1, 3})
        expect_each_as_alone(tasks_for(rows_.store, loss, costs_, 1),
                             {.method = Pegasos{.step = step}, .max_passes = 4, .chunks_per_block = 3}, where);
    for (const char* loss : {"hinge", "squared-hinge", "logistic"})
      expect_each_as_alone(tasks_for(rows_.store, loss, costs_, 1), {.method = Average{}, .chunks_per_block = 3},
                           where);
  }
}

TEST_F(Tasks, WithRecomposedBlocksAreAsGoodAsEachAlone) {
  constexpr double kTolerance = 1e-4;
  for (const char* loss : {"hinge", "squared-hinge", "logistic"}) {
    const Problem problem = tasks_for(rows_.store, loss, costs_, 1);
    for (const Where where : kEverywhere) {
      const SolveOptions options{.method = Dual{.inner = 1}, .tolerance = kTolerance, .max_passes = 5000};
      const Outcome together = solved(problem, options, where);
      EXPECT_EQ(together.summary.termination, Termination::converged);
      for (size_t i = 0; i < problem.tasks.size(); ++i) {
        const Certificate& found = together.summary.certificates[i];
        EXPECT_LE(found.gap(), kTolerance);
        const Outcome alone = solved(only_task(problem, i), options, where);
        EXPECT_NEAR(found.primal, alone.summary.certificates[0].primal, kTolerance * found.primal) << loss << " " << i;
      }
    }
  }
}

const std::vector<Dual> kManyTasksWays = {{.inner = 1}, {.inner = 3}, {.inner = InnerIterations::until_solved()}};

// Folds and costs of each label: more tasks than stand side by side.
Problem many_tasks(const Store& store, const std::string& loss) {
  Problem problem{.store = &store, .loss = loss_of(loss), .bias = 1};
  for (const double cost : {0.02, 0.5})
    for (int32_t label = 1; label <= 3; ++label)
      for (uint32_t fold = 0; fold < 2; ++fold)
        problem.tasks.push_back(
            {.positive = label, .cost = cost, .held_out = {.seed = 1, .parts = 3, .first = fold, .last = fold + 1}});
  return problem;
}

// Steps are made for up to eight tasks at once: which those are shows in no result, nor does a copy of the weights.
TEST_F(Tasks, WithRecomposedBlocksAreTheSameBitsInAnyCompany) {
  for (const char* loss : {"hinge", "squared-hinge", "logistic"}) {
    const Problem all = many_tasks(rows_.store, loss);
    for (const Dual& way : kManyTasksWays) {
      const SolveOptions options{.method = way, .tolerance = 1e-3, .max_passes = 30, .chunks_per_block = 3};
      const Outcome expected = solved(all, options, Where::decoded);
      const Outcome encoded = solved(all, options, Where::encoded);
      EXPECT_GT(expected.summary.plan.bytes(kSideBySide), 0U);
      EXPECT_GT(expected.summary.passes, 2);
      for (size_t i = 0; i < all.tasks.size(); ++i) {
        EXPECT_EQ(encoded.solutions[i].weights, expected.solutions[i].weights);
        expect_same(encoded.summary.certificates[i], expected.summary.certificates[i]);
      }
      for (const auto& some : std::vector<std::vector<size_t>>{{0, 1}, {3, 7, 11}, {2, 4, 5, 6, 8, 9, 10}}) {
        Problem few = all;
        few.tasks.clear();
        for (const size_t i : some) few.tasks.push_back(all.tasks[i]);
        const Outcome found = solved(few, options, Where::decoded);
        for (size_t i = 0; i < some.size(); ++i) {
          SCOPED_TRACE(testing::Message() << loss << ", task " << some[i]);
          EXPECT_EQ(found.solutions[i].weights, expected.solutions[some[i]].weights);
          expect_same(found.summary.certificates[i], expected.summary.certificates[some[i]]);
        }
      }
    }
  }
}

TEST_F(Tasks, WithoutRoomForACopyOfTheirWeightsAreTheSameBits) {
  for (const char* loss : {"squared-hinge", "logistic"}) {
    const Problem problem = many_tasks(rows_.store, loss);
    for (const int inner : {1, 3}) {
      const Dual method{.inner = inner};
      // No certificate before the last, which would wait for others where rows are read again in each pass.
      const SolveOptions options{.method = method, .tolerance = 1e-14, .max_passes = 3, .chunks_per_block = 1};
      const auto with_memory = [&](uint64_t bytes) {
        Outcome outcome;
        outcome.summary = solve(problem, options, outcome.solutions, context_with(bytes));
        return outcome;
      };
      const Outcome roomy = with_memory(uint64_t{1} << 30);
      const Outcome tight = with_memory(least_memory(problem, method));
      EXPECT_GT(roomy.summary.plan.bytes(kSideBySide), 0U);
      EXPECT_EQ(tight.summary.plan.bytes(kSideBySide), 0U);
      for (size_t i = 0; i < problem.tasks.size(); ++i) {
        EXPECT_EQ(tight.solutions[i].weights, roomy.solutions[i].weights);
        expect_same(tight.summary.certificates[i], roomy.summary.certificates[i]);
      }
    }
  }
}

TEST_F(Tasks, SideBySideAreTheSameBitsForAnyNumberOfThreads) {
  const Problem problem = many_tasks(rows_.store, "squared-hinge");
  for (const Dual& way : kManyTasksWays) {
    for (const Where where : kEverywhere) {
      const SolveOptions options{.method = way, .tolerance = 1e-3, .max_passes = 10, .chunks_per_block = 3};
      const Outcome one = solved(problem, options, where, 1);
      for (const size_t threads : {2, 3, 7, 16}) {
        SCOPED_TRACE(testing::Message() << "where " << static_cast<int>(where) << ", " << threads);
        const Outcome found = solved(problem, options, where, threads);
        for (size_t i = 0; i < problem.tasks.size(); ++i) {
          EXPECT_EQ(found.solutions[i].weights, one.solutions[i].weights);
          expect_same(found.summary.certificates[i], one.summary.certificates[i]);
        }
      }
    }
  }
}

TEST_F(Tasks, GiveTheSameBitsForAnyNumberOfThreads) {
  const std::vector<AnyMethod> methods = {Dual{.inner = 1},
                                          Dual{.schedule = Schedule::fixed, .inner = 2},
                                          Dual{.inner = InnerIterations::until_solved(), .cache_fraction = 0.3},
                                          Pegasos{.step = 1},
                                          Average{},
                                          Subsample{.share = 0.6}};
  const Problem problem = tasks_for(rows_.store, "hinge", costs_, 1);
  for (const AnyMethod& method : methods) {
    for (const Where where : kEverywhere) {
      if (where == Where::duals_in_file && std::holds_alternative<Pegasos>(method)) continue;  // it has none
      const SolveOptions options{.method = method, .tolerance = 1e-3, .max_passes = 10, .chunks_per_block = 3};
      const Outcome one = solved(problem, options, where, 1);
      for (const size_t threads : {2, 3, 7}) {
        SCOPED_TRACE(testing::Message() << name_of(method) << ", where " << static_cast<int>(where) << ", " << threads);
        const Outcome found = solved(problem, options, where, threads);
        EXPECT_EQ(found.summary.passes, one.summary.passes);
        for (size_t i = 0; i < problem.tasks.size(); ++i) {
          EXPECT_EQ(found.solutions[i].weights, one.solutions[i].weights);
          expect_same(found.summary.certificates[i], one.summary.certificates[i]);
        }
      }
    }
  }
}

TEST_F(Tasks, ThatAreDoneAreLeftOutOfLaterPasses) {
  const Problem problem = tasks_for(rows_.store, "hinge", costs_, 1);
  for (const Where where : kEverywhere) {
    for (const Schedule schedule : {Schedule::fixed, Schedule::recomposed}) {
      SCOPED_TRACE(testing::Message() << "where " << static_cast<int>(where));
      const Outcome found = solved(
          problem, {.method = Dual{.schedule = schedule, .inner = 1}, .tolerance = 1e-4, .max_passes = 5000}, where);
      EXPECT_EQ(found.summary.termination, Termination::converged);
      ASSERT_GT(found.left.size(), 2U);
      EXPECT_EQ(static_cast<size_t>(found.summary.passes), found.left.size());
      EXPECT_EQ(found.left.back(), 0U);
      std::set<size_t> seen;
      for (size_t pass = 1; pass < found.left.size(); ++pass) {
        ASSERT_GT(found.left[pass - 1], 0U) << "it went on with nothing to do";
        EXPECT_LE(found.left[pass], found.left[pass - 1]);
        seen.insert(found.left[pass - 1]);
        size_t unchanged = 0;
        for (size_t i = 0; i < problem.tasks.size(); ++i)
          if (found.at[pass][i] == found.at[pass - 1][i]) ++unchanged;
        // One that stands still may still wait for its certificate.
        EXPECT_GE(unchanged, problem.tasks.size() - found.left[pass - 1]) << "pass " << pass + 1;
      }
      EXPECT_GE(seen.size(), 3U) << "tasks that are all done at once are no test";
      for (size_t i = 0; i < problem.tasks.size(); ++i) EXPECT_EQ(found.solutions[i].weights, found.at.back()[i]);
    }
  }
}

TEST_F(Tasks, AreAllCertifiedWhereALimitIsReached) {
  const Problem problem = tasks_for(rows_.store, "squared-hinge", costs_, 1);
  for (const Where where : kEverywhere) {
    const Outcome found = solved(problem, {.method = Dual{.inner = 1}, .tolerance = 1e-4, .max_passes = 3}, where);
    EXPECT_EQ(found.summary.termination, Termination::pass_limit);
    ASSERT_EQ(found.summary.certificates.size(), 4U);
    for (const Certificate& certificate : found.summary.certificates) {
      EXPECT_GT(certificate.primal, 0);
      EXPECT_GT(certificate.dual, 0);
      EXPECT_LE(certificate.dual, certificate.primal);
    }
    EXPECT_EQ(found.summary.largest_gap(),
              std::max({found.summary.certificates[0].gap(), found.summary.certificates[1].gap(),
                        found.summary.certificates[2].gap(), found.summary.certificates[3].gap()}));
  }
}

}  // namespace
}  // namespace linblock
