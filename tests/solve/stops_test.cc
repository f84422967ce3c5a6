// Stopped after every block and taken up again, by any method and wherever its rows and duals are: the same bits.
#include <gtest/gtest.h>

#include "base/random.h"
#include "support/file_hooks.h"
#include "support/stopping.h"
#include "support/tight_memory.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

enum class Where { streamed, resident, duals_in_file };

struct Way {
  const char* name;
  AnyMethod method;
  Where where = Where::streamed;
  bool few_features = false;
  bool several = false;  // tasks
};

std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.name; }

const std::vector<Way> kWays = {
    {"streamed_kept_rows", Dual{.inner = 2, .cache_fraction = 0.5}},
    {"streamed_kept_rows_converge", Dual{.inner = InnerIterations::until_solved(), .cache_fraction = 0.3}},
    {"streamed_kept_rows_fixed", Dual{.schedule = Schedule::fixed, .inner = 1, .cache_fraction = 0.5}},
    {"streamed_none_kept", Dual{.inner = 1, .cache_fraction = 0}},
    {"streamed_few_features", Dual{.inner = 1}, Where::streamed, true},
    {"resident_kept_rows", Dual{}, Where::resident},
    {"resident_kept_rows_join", Dual{.inner = 3}, Where::resident},
    {"resident_fixed", Dual{.schedule = Schedule::fixed, .blocks = 4, .inner = 2}, Where::resident},
    {"resident_few_features", Dual{}, Where::resident, true},
    {"resident_batches", Dual{.batch = 16}, Where::resident},
    {"resident_batches_rounds", Dual{.inner = 3, .batch = 5}, Where::resident},
    {"streamed_several_tasks", Dual{.inner = 2}, Where::streamed, false, true},
    {"resident_several_tasks", Dual{}, Where::resident, false, true},
    {"resident_several_tasks_converge", Dual{.inner = InnerIterations::until_solved()}, Where::resident, false, true},
    {"resident_several_tasks_fixed", Dual{.schedule = Schedule::fixed, .blocks = 4, .inner = 2}, Where::resident, false,
     true},
    {"duals_in_file_several_tasks", Dual{.inner = 2}, Where::duals_in_file, false, true},
    {"duals_in_file", Dual{.inner = 2}, Where::duals_in_file},
    {"duals_in_file_fixed", Dual{.schedule = Schedule::fixed, .inner = 1}, Where::duals_in_file},
    {"duals_in_file_few_features", Dual{.inner = 1}, Where::duals_in_file, true},
    {"pegasos_rows", Pegasos{.step = 1}},
    {"pegasos_three_rows", Pegasos{.step = 3}},
    {"pegasos_blocks", Pegasos{.step = 0}},
    {"average_streamed", Average{}},
    {"average_duals_in_file", Average{}, Where::duals_in_file},
    {"subsample_streamed", Subsample{}},
    {"subsample_resident", Subsample{.share = 0.7}, Where::resident},
    {"subsample_duals_in_file", Subsample{}, Where::duals_in_file},
};

class StopsAtEveryBlock : public testing::TestWithParam<Way> {
 protected:
  // With a checkpoint, so that the plan is the same.
  Context context(const Problem& problem, const std::string& name) const {
    const std::string checkpoint = rows_.folder / name;
    switch (GetParam().where) {
      case Where::streamed: return context_with(streaming_memory(problem), checkpoint);
      case Where::resident: return context_with(uint64_t{1} << 30, checkpoint);
      case Where::duals_in_file: return context_with(least_memory(problem, GetParam().method, "somewhere"), checkpoint);
    }
    return {};
  }
  Problem problem_of(const std::string& loss) const {
    Problem problem = problem_for(rows_.store, loss, 0.1, 1);
    if (!GetParam().several) return problem;
    const Task one = problem.tasks.front();
    for (const double cost : {0.02, 0.5}) {
      problem.tasks.push_back(one);
      problem.tasks.back().cost = cost;
      problem.tasks.back().held_out = {.seed = 1, .parts = 4, .first = 1, .last = 2};
    }
    return problem;
  }
  static SolveOptions options() {
    const bool certified = !std::holds_alternative<Pegasos>(GetParam().method);
    return {.method = GetParam().method, .tolerance = 1e-4, .max_passes = certified ? 40 : 4};
  }
  static void expect_planned(const Plan& plan) {
    EXPECT_EQ(plan.duals_in_file, GetParam().where == Where::duals_in_file);
    EXPECT_EQ(plan.rows == RowsHeld::streamed, GetParam().where != Where::resident);
    EXPECT_EQ(plan.few_features, GetParam().few_features);
    const auto* dual = std::get_if<Dual>(&GetParam().method);
    if (dual == nullptr || plan.duals_in_file) return;
    const bool by_itself = dual->schedule == Schedule::recomposed && !GetParam().several;
    EXPECT_EQ(plan.cache_bytes > 0, dual->cache_fraction ? *dual->cache_fraction > 0 : by_itself);
  }
  static void expect_same_end(const StoppedRun& found, const Summary& summary, const std::vector<Solution>& solutions) {
    EXPECT_EQ(found.summary.passes, summary.passes);
    EXPECT_EQ(found.summary.termination, summary.termination);
    EXPECT_EQ(found.summary.certificates_made.all, summary.certificates_made.all);
    EXPECT_EQ(found.summary.certificates_made.without_v, summary.certificates_made.without_v);
    ASSERT_EQ(found.solutions.size(), solutions.size());
    for (size_t i = 0; i < solutions.size(); ++i) {
      EXPECT_EQ(found.summary.certificates[i].primal, summary.certificates[i].primal);
      EXPECT_EQ(found.summary.certificates[i].dual, summary.certificates[i].dual);
      EXPECT_EQ(found.solutions[i].weights, solutions[i].weights);
    }
  }

  const ManyChunks rows_ = GetParam().few_features ? ManyChunks::with_few_features() : ManyChunks(24);
};

TEST_P(StopsAtEveryBlock, ChangeNoBitOfTheWeights) {
  for (const char* loss : {"hinge", "squared-hinge", "logistic"}) {
    if (std::holds_alternative<Pegasos>(GetParam().method) && std::string(loss) == "logistic") continue;
    SCOPED_TRACE(loss);
    const Problem problem = problem_of(loss);
    std::vector<Solution> whole;
    int blocks = 0;
    Context unstopped = context(problem, std::string("WHOLE-") + loss);
    double last_estimate = 0;
    unstopped.observer.block = [&](const BlockReport&) { ++blocks; };
    unstopped.observer.pass = [&](const PassReport& pass) { last_estimate = pass.primal_estimate; };
    const Summary expected = solve(problem, options(), whole, unstopped);
    expect_planned(expected.plan);
    Context stopped = context(problem, std::string("STOPPED-") + loss);
    stopped.team = 3;  // which changes no bit either
    const StoppedRun found = run_with_stops(problem, options(), stopped);
    EXPECT_EQ(found.stops, blocks);
    EXPECT_EQ(found.last_estimate, last_estimate);
    if (GetParam().where != Where::duals_in_file || !std::holds_alternative<Subsample>(GetParam().method)) {
      EXPECT_GT(blocks, expected.passes) << "one block a pass is no test";
    }
    expect_same_end(found, expected, whole);
  }
}

// A crash loses what was done since the last checkpoint, which may be passes ago.
TEST_P(StopsAtEveryBlock, OrCrashesBetweenThemChangeNoBitOfTheWeights) {
  const Problem problem = problem_of("squared-hinge");
  std::vector<Solution> whole;
  uint64_t blocks = 0;
  Context unstopped = context(problem, "WHOLE");
  unstopped.observer.block = [&](const BlockReport&) { ++blocks; };
  const Summary expected = solve(problem, options(), whole, unstopped);
  const Context dying = context(problem, "STOPPED");
  Random random(9);
  StoppedRun found;
  for (int round = 0; round < 5; ++round) {
    std::filesystem::remove(dying.checkpoint.path);
    Death death = Death::stop;
    int most = static_cast<int>(blocks / 4 + 1);  // later lives are longer, so that it ends
    while (!live(problem, options(), dying, 1 + static_cast<int>(random.below(static_cast<uint64_t>(most))), found,
                 death)) {
      death = random.below(3) == 0 ? Death::stop : Death::crash;
      most += most / 8 + 1;
    }
    expect_same_end(found, expected, whole);
  }
  EXPECT_GE(found.stops, 5);
}

// Wherever it reads, a certificate's pass included; stops between blocks and half-way lose nothing but time.
TEST_P(StopsAtEveryBlock, OrAtAnyReadChangeNoBitOfTheWeights) {
  const Problem problem = problem_of("hinge");
  std::atomic<int64_t> reads = 0;
  std::atomic<bool> stop = false;
  const ScopedHook hook([&](const FileCall& call) {
    if (call.kind == FileCall::Kind::read && call.path.ends_with(".rows") && --reads == 0) stop = true;
    return FileVerdict{};
  });
  std::vector<Solution> whole;
  const Summary expected = solve(problem, options(), whole, context(problem, "WHOLE"));
  const auto all_reads = static_cast<uint64_t>(-reads);
  Context stopping = context(problem, "STOPPED");
  stopping.stop = &stop;
  Random random(8);
  StoppedRun found;
  for (int round = 0; round < 5; ++round) {
    std::filesystem::remove(stopping.checkpoint.path);
    for (bool done = false; !done;) {
      ASSERT_LT(found.stops, 5000) << "it does not come any farther";
      stop = false;
      reads = static_cast<int64_t>(1 + random.below(2 * all_reads));  // or not at all
      found.solutions.clear();
      try {
        found.summary = solve(problem, options(), found.solutions, stopping);
        done = true;
      } catch (const Error& error) {
        ASSERT_EQ(error.kind(), ErrorKind::interrupted) << error.what();
        ++found.stops;
      }
    }
    expect_same_end(found, expected, whole);
  }
  EXPECT_GE(found.stops, 2);
}

INSTANTIATE_TEST_SUITE_P(Ways, StopsAtEveryBlock, testing::ValuesIn(kWays),
                         [](const auto& way) { return std::string(way.param.name); });

// Not only the weights: everything that later decisions are made from.
TEST(States, AfterManyStopsAreTheStatesAfterOne) {
  const ManyChunks rows(24);
  const Problem problem = problem_for(rows.store, "squared-hinge", 1, 1);
  const SolveOptions options{.tolerance = 1e-12, .max_passes = 1000};
  const Context once = context_with(uint64_t{1} << 30, rows.folder / "ONCE");
  const Context often = context_with(uint64_t{1} << 30, rows.folder / "OFTEN");
  for (const int blocks : {1, 3, 4, 10, 41}) {
    StoppedRun run;
    std::filesystem::remove(rows.folder / "ONCE");
    std::filesystem::remove(rows.folder / "OFTEN");
    ASSERT_FALSE(live(problem, options, once, blocks, run));
    for (int i = 0; i < blocks; ++i) ASSERT_FALSE(live(problem, options, often, 1, run));
    const SnapshotReader one(rows.folder / "ONCE");
    const SnapshotReader other(rows.folder / "OFTEN");
    ASSERT_EQ(one.names(), other.names());
    for (const std::string& name : one.names()) {
      if (name.find("seconds") != std::string::npos || name == "position.costs.bytes") continue;  // rows are read anew
      EXPECT_TRUE(one.bytes(name) == other.bytes(name)) << "'" << name << "' after " << blocks << " blocks";
    }
  }
}

}  // namespace
}  // namespace linblock
