// Truncated losses in little memory; stopped after every block, or killed anywhere, and taken up again: the same bits.
#include <gtest/gtest.h>

#include "base/random.h"
#include "support/column_problems.h"
#include "support/stopping.h"
#include "support/streamed.h"
#include "support/tight_memory.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

enum class Where { streamed, decoded, duals_in_file };

struct Way {
  const char* name;
  AnyMethod method;
  Where where = Where::streamed;
};
std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.name; }

class TruncatedStopped : public testing::TestWithParam<Way> {
 protected:
  static Data noisy_classes() {
    Data data = make_classes(300, 24, 3, 3);
    for (size_t i = 3; i < data.rows.size(); i += 8) data.rows[i].label = data.rows[i].label % 3 + 1;
    return data;
  }
  Problem truncated() const {
    Problem problem = tasks_for(rows_.store, "squared-hinge", {0.02, 0.1, 1}, 1);
    problem.truncate = 0.25;
    return problem;
  }
  uint64_t memory() const {
    switch (GetParam().where) {
      case Where::streamed:
        return std::holds_alternative<Newton>(GetParam().method)
                   ? least_memory(problem_, GetParam().method) + (uint64_t{8} << 10)
                   : streaming_memory(problem_);
      case Where::decoded: return uint64_t{1} << 30;
      case Where::duals_in_file: return least_memory(problem_, GetParam().method, "somewhere");
    }
    return 0;
  }
  Context context(const std::string& name) const {
    Context context = context_with(memory(), rows_.folder / name);
    context.checkpoint.identity = "this run\n";
    return context;
  }
  SolveOptions options() const { return {.method = GetParam().method, .tolerance = 0.01, .max_passes = 100000}; }

  static std::vector<double> duals_of(const Store& store, Solution& solution) {
    std::vector<double> all;
    for (uint32_t chunk = 0; chunk < store.chunks().size() && !solution.duals.empty(); ++chunk) {
      solution.duals.fetch({&chunk, 1});
      const auto page = solution.duals.page(chunk);
      all.insert(all.end(), page.begin(), page.end());
    }
    return all;
  }
  void expect_same(const Summary& summary, std::vector<Solution>& solutions, const Summary& other,
                   std::vector<Solution>& others) const {
    EXPECT_EQ(summary.passes, other.passes);
    EXPECT_EQ(summary.termination, other.termination);
    ASSERT_EQ(solutions.size(), others.size());
    for (size_t i = 0; i < solutions.size(); ++i) {
      EXPECT_EQ(solutions[i].weights, others[i].weights) << "task " << i;
      EXPECT_EQ(duals_of(rows_.store, solutions[i]), duals_of(rows_.store, others[i])) << "task " << i;
      EXPECT_EQ(summary.truncated[i].objective, other.truncated[i].objective);
      EXPECT_EQ(summary.truncated[i].outliers, other.truncated[i].outliers);
      EXPECT_EQ(summary.truncated[i].outer_steps, other.truncated[i].outer_steps);
      EXPECT_EQ(summary.support_vectors[i], other.support_vectors[i]);
      EXPECT_EQ(summary.certificates[i].primal, other.certificates[i].primal);
      EXPECT_EQ(summary.certificates[i].dual, other.certificates[i].dual);
    }
  }

  const ManyChunks rows_{noisy_classes()};
  const Problem problem_ = [this] {
    write_columns(rows_.store);
    return truncated();
  }();
};

INSTANTIATE_TEST_SUITE_P(
    Ways, TruncatedStopped,
    testing::Values(Way{"dual_streamed", Dual{.inner = 1}}, Way{"dual_decoded", Dual{}, Where::decoded},
                    Way{"dual_fixed", Dual{.schedule = Schedule::fixed, .inner = 1}},
                    Way{"dual_in_file", Dual{.inner = 1}, Where::duals_in_file}, Way{"newton_streamed", Newton{}},
                    Way{"newton_decoded", Newton{}, Where::decoded}, Way{"primal_decoded", Primal{}, Where::decoded}),
    [](const auto& one) { return one.param.name; });

TEST_P(TruncatedStopped, EndsWithTheSameBits) {
  std::vector<Solution> solutions;
  int blocks = 0;
  uint64_t most_steps = 0;
  size_t fewest = problem_.tasks.size();
  Context whole = context("WHOLE");
  whole.observer.block = [&](const BlockReport&) { ++blocks; };
  whole.observer.pass = [&](const PassReport& report) {
    if (report.truncated && report.tasks_left > 0) fewest = std::min(fewest, report.tasks_left);
  };
  const Summary summary = solve(problem_, options(), solutions, whole);
  for (const TruncatedResult& one : summary.truncated) most_steps = std::max(most_steps, one.outer_steps);
  EXPECT_GE(most_steps, 2U) << "one step is no test";
  EXPECT_LT(fewest, problem_.tasks.size()) << "tasks that are all done at once are no test";
  EXPECT_EQ(summary.plan.duals_in_file, GetParam().where == Where::duals_in_file);
  EXPECT_EQ(summary.plan.rows == RowsHeld::streamed, GetParam().where != Where::decoded);

  StoppedRun stopped = run_with_stops(problem_, options(), context("STOPPED"));
  EXPECT_GE(stopped.stops, 5);
  expect_same(stopped.summary, stopped.solutions, summary, solutions);

  Random random(7);
  Context killed = context("KILLED");
  killed.checkpoint.every_seconds = 0;
  StoppedRun run;
  while (!live(problem_, options(), killed, 1 + static_cast<int>(random.below(static_cast<uint64_t>(blocks) / 3)), run,
               Death::crash))
    ASSERT_LT(run.stops, 1000);
  EXPECT_GE(run.stops, 2);
  expect_same(run.summary, run.solutions, summary, solutions);
}

TEST_P(TruncatedStopped, GoesOnAfterAKillInAReading) {
  std::vector<Solution> solutions;
  int readings = 0;
  Context whole = context("WHOLE");
  whole.observer.reading = [&](std::string_view, double share) { readings += share >= 1 ? 1 : 0; };
  const Summary summary = solve(problem_, options(), solutions, whole);
  struct Crash {};
  // The first ones, and some of all others, which are certificates too.
  for (int death = 0; death < readings; death += death < 4 ? 1 : 1 + readings / 6) {
    Context killed = context(fmt::format("KILLED{}", death));
    int left = death;
    killed.observer.reading = [&](std::string_view, double share) {
      if (share >= 0.5 && left == 0) throw Crash();
      if (share >= 1) --left;
    };
    std::vector<Solution> again;
    EXPECT_THROW(solve(problem_, options(), again, killed), Crash);
    again.clear();
    const Summary second = solve(problem_, options(), again, context(fmt::format("KILLED{}", death)));
    expect_same(second, again, summary, solutions);
  }
}

TEST(TruncatedStreamed, EndsAsInMemory) {
  const Folder folder;
  const Store store = write_streamed_store(folder / "store");
  for (const AnyMethod& method : std::vector<AnyMethod>{Dual{}, Newton{}}) {
    Problem problem = problem_for(store, "squared-hinge", 0.1, 1);
    problem.truncate = 0.5;
    const SolveOptions options{.method = method, .tolerance = 1e-3};
    std::vector<Solution> streamed;
    const Summary little = solve(problem, options, streamed, {.memory_bytes = kStreamedMemory + (uint64_t{1} << 20)});
    ASSERT_EQ(little.plan.rows, RowsHeld::streamed);
    std::vector<Solution> held;
    const Summary much = solve(problem, options, held);
    EXPECT_NEAR(little.truncated[0].objective, much.truncated[0].objective, 1e-2 * much.truncated[0].objective);
    EXPECT_GT(little.costs.bytes, 3 * much.costs.bytes / 2) << "bytes that are read again are counted";
  }
}

}  // namespace
}  // namespace linblock
