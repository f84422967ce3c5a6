// Several tasks, some of them done long before others: stopped after every block, or killed anywhere, and taken up
// again, they end with the same bits.
#include <gtest/gtest.h>

#include "base/random.h"
#include "support/stopping.h"
#include "support/tight_memory.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

enum class Where { streamed, encoded, decoded, duals_in_file };

struct Way {
  const char* name;
  AnyMethod method;
  Where where = Where::streamed;
};

std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.name; }

const std::vector<Way> kWays = {
    {"streamed_kept_rows", Dual{.inner = 1}},
    {"streamed_fixed", Dual{.schedule = Schedule::fixed, .inner = 2}},
    {"encoded_kept_rows", Dual{}, Where::encoded},
    {"decoded_kept_rows", Dual{}, Where::decoded},
    {"decoded_fixed", Dual{.schedule = Schedule::fixed, .blocks = 6, .inner = 1}, Where::decoded},
    {"duals_in_file", Dual{.inner = 1}, Where::duals_in_file},
    {"duals_in_file_fixed", Dual{.schedule = Schedule::fixed, .inner = 1}, Where::duals_in_file},
    {"pegasos", Pegasos{}},
    {"average", Average{}},
    {"average_duals_in_file", Average{}, Where::duals_in_file},
    {"subsample", Subsample{.share = 0.7}, Where::decoded},
    {"subsample_duals_in_file", Subsample{}, Where::duals_in_file},
};

class TasksStopped : public testing::TestWithParam<Way> {
 protected:
  Context context(const std::string& name) const {
    const std::string checkpoint = rows_.folder / name;
    const AnyMethod& method = GetParam().method;
    switch (GetParam().where) {
      case Where::streamed: return context_with(streaming_memory(problem_), checkpoint);
      case Where::encoded: return context_with(memory_for_encoded_rows(problem_, method, "somewhere"), checkpoint);
      case Where::decoded: return context_with(uint64_t{1} << 30, checkpoint);
      case Where::duals_in_file: return context_with(least_memory(problem_, method, "somewhere"), checkpoint);
    }
    return {};
  }
  struct Whole {
    Summary summary;
    std::vector<Solution> solutions;
    int blocks = 0;
    size_t most_left_apart = 0;  // how many tasks were still in work when another was done
  };
  Whole unstopped() const {
    Whole whole;
    Context alive = context("WHOLE");
    alive.observer.block = [&](const BlockReport&) { ++whole.blocks; };
    alive.observer.pass = [&](const PassReport& pass) {
      if (pass.tasks_left < problem_.tasks.size())
        whole.most_left_apart = std::max(whole.most_left_apart, pass.tasks_left);
    };
    whole.summary = solve(problem_, options(), whole.solutions, alive);
    EXPECT_EQ(whole.summary.plan.duals_in_file, GetParam().where == Where::duals_in_file);
    if (std::holds_alternative<Dual>(GetParam().method)) {
      EXPECT_GE(whole.most_left_apart, 1U) << "tasks that are all done at once are no test";
      EXPECT_EQ(whole.summary.termination, Termination::converged);
    }
    return whole;
  }
  static SolveOptions options() {
    const bool certified = !std::holds_alternative<Pegasos>(GetParam().method);
    return {.method = GetParam().method, .tolerance = 0.01, .max_passes = certified ? 1000 : 3};
  }
  // All of them, wherever they are; of a task that was done early, as it left them.
  std::vector<double> duals_of(Solution& solution) const {
    std::vector<double> all;
    if (solution.duals.empty()) return all;
    for (uint32_t chunk = 0; chunk < rows_.store.chunks().size(); ++chunk) {
      solution.duals.fetch({&chunk, 1});
      const std::span<const double> page = solution.duals.page(chunk);
      all.insert(all.end(), page.begin(), page.end());
    }
    return all;
  }
  void expect_same_end(StoppedRun& found, Whole& whole) const {
    EXPECT_EQ(found.summary.passes, whole.summary.passes);
    EXPECT_EQ(found.summary.termination, whole.summary.termination);
    ASSERT_EQ(found.solutions.size(), problem_.tasks.size());
    for (size_t i = 0; i < problem_.tasks.size(); ++i) {
      EXPECT_EQ(found.summary.certificates[i].primal, whole.summary.certificates[i].primal) << "task " << i;
      EXPECT_EQ(found.summary.certificates[i].dual, whole.summary.certificates[i].dual) << "task " << i;
      EXPECT_EQ(found.solutions[i].weights, whole.solutions[i].weights) << "task " << i;
      EXPECT_EQ(duals_of(found.solutions[i]), duals_of(whole.solutions[i])) << "task " << i;
    }
  }

  const ManyChunks rows_{make_classes(300, 24, 4, 1)};
  const Problem problem_ = tasks_for(rows_.store, "squared-hinge", {0.003, 0.1, 0.02, 0.5}, 1);
};

TEST_P(TasksStopped, AfterEveryBlockEndWithTheSameBits) {
  Whole whole = unstopped();
  Context stopped = context("STOPPED");
  stopped.team = 3;
  StoppedRun found = run_with_stops(problem_, options(), stopped);
  EXPECT_EQ(found.stops, whole.blocks);
  expect_same_end(found, whole);
}

TEST_P(TasksStopped, AnywhereEndWithTheSameBits) {
  Whole whole = unstopped();
  Context dying = context("DYING");
  Random random(3);
  StoppedRun found;
  for (int round = 0; round < 8; ++round) {
    std::filesystem::remove(dying.checkpoint.path);
    dying.checkpoint.every_seconds = round % 2 == 0 ? 0 : 1e9;
    Death death = Death::stop;
    uint64_t most = static_cast<uint64_t>(whole.blocks) / 4 + 1;  // later lives are longer, so that it ends
    while (!live(problem_, options(), dying, 1 + static_cast<int>(random.below(most)), found, death)) {
      death = random.below(3) == 0 ? Death::stop : Death::crash;
      most += most / 8 + 1;
    }
    expect_same_end(found, whole);
  }
  EXPECT_GE(found.stops, 6);
}

INSTANTIATE_TEST_SUITE_P(Ways, TasksStopped, testing::ValuesIn(kWays),
                         [](const auto& way) { return std::string(way.param.name); });

}  // namespace
}  // namespace linblock
