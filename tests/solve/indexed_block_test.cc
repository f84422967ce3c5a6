// Indexed block descent: the optimum, whatever the index answers.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "support/errors.h"
#include "support/indexed_problems.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

struct Case {
  const char* name;
  const char* loss;
  BlockSolver block_solver;
  double bias;
};
std::ostream& operator<<(std::ostream& out, const Case& setting) { return out << setting.name; }

class IndexedWith : public testing::TestWithParam<Case> {
 protected:
  SolveOptions options(size_t query, double tolerance) const {
    return {.method = Indexed{.query = query, .block_solver = GetParam().block_solver},
            .tolerance = tolerance,
            .max_passes = 20000};
  }
  Problem problem(const Store& store, double cost) const {
    return problem_for(store, GetParam().loss, cost, GetParam().bias);
  }
  // Of the convex problem. The reference solver takes minutes for squared hinge, which newton has down to 1e-9.
  double optimum(const Store& store, const Data& data, double cost) const {
    if (GetParam().loss == std::string("hinge"))
      return reference_optimum("hinge", dense(data, cost, GetParam().bias), 1e-9).primal;
    std::vector<Solution> solutions;
    return solve(problem(store, cost), {.method = Newton{}, .tolerance = 1e-9}, solutions).total().primal;
  }

  const MemoryFolder folder_;
};

TEST_P(IndexedWith, ReachesTheOptimumOfTheConvexProblem) {
  const Data data = make_data(600, 8, 3);
  const Store store = write_store(folder_, data, 100);
  build_index(store, GetParam().bias);
  const auto rows = dense(data, 0.5, GetParam().bias);
  const double best = optimum(store, data, 0.5);
  for (const size_t query : {1, 7, 1000}) {
    std::vector<Solution> solutions;
    const Summary summary = solve(problem(store, 0.5), options(query, 1e-6), solutions);
    EXPECT_EQ(summary.termination, Termination::converged) << query;
    EXPECT_NEAR(summary.total().primal, best, 2e-6 * best) << query;
    EXPECT_LE(summary.total().dual, best * (1 + 1e-8)) << query;
    EXPECT_NEAR(summary.total().primal, objective_at(GetParam().loss, rows, dense_weights(solutions[0].weights)),
                1e-9 * best)
        << query;
  }
}

TEST_P(IndexedWith, ThatCutsNothingGivesTheConvexOptimum) {
  const Data data = make_clusters(500, 5, 1);
  const Store store = write_store(folder_, data, 100);
  build_index(store, GetParam().bias);
  const double best = optimum(store, data, 0.2);
  Problem cut = problem(store, 0.2);
  cut.truncate = 1e9;
  std::vector<Solution> solutions;
  const Summary summary = solve(cut, options(20, 1e-6), solutions);
  EXPECT_NEAR(summary.total().primal, best, 2e-6 * best);
  EXPECT_NEAR(summary.truncated.at(0).objective, best, 2e-6 * best);
  EXPECT_EQ(summary.truncated.at(0).outliers, 0U);
}

TEST_P(IndexedWith, EndsWhereTheConvexProblemOfItsInsidersIsSolved) {
  const Data data = make_clusters(800, 5, 2, 0.15);
  const Store store = write_store(folder_, data, 100);
  build_index(store, GetParam().bias);
  const auto rows = dense(data, 0.2, GetParam().bias);
  for (const double s : {0.0, 0.5, 1.0, 3.0}) {
    Problem cut = problem(store, 0.2);
    cut.truncate = s;
    std::vector<Solution> solutions;
    const Summary summary = solve(cut, options(30, 1e-5), solutions);
    ASSERT_EQ(summary.termination, Termination::converged) << s;
    const std::vector<double> weights = dense_weights(solutions[0].weights);
    const double objective = objective_at(GetParam().loss, rows, weights, 1 + s);
    EXPECT_NEAR(summary.truncated.at(0).objective, objective, 1e-9 * objective) << s;
    const Data inside = insiders(data, GetParam().loss, rows, weights, s);
    EXPECT_EQ(summary.truncated.at(0).outliers, rows.size() - inside.rows.size()) << s;
    const MemoryFolder folder;
    const double best = optimum(write_store(folder, inside, 1000), inside, 0.2);
    // No further outer step lowers the objective by more than it was told to look for.
    EXPECT_LE(objective_at(GetParam().loss, dense(inside, 0.2, GetParam().bias), weights), best * (1 + 1e-4)) << s;
  }
}

TEST_P(IndexedWith, ReachesTheOptimumWhateverTheIndexAnswers) {
  const Data data = make_clusters(400, 5, 5, 0.05);
  const Store store = write_store(folder_, data, 50);
  build_index(store, GetParam().bias);
  const Problem own = problem(store, 0.3);
  const double best = optimum(store, data, 0.3);
  const MetricForest forest = MetricForest::open(store);
  for (const auto order : {StubbornSearch::Order::random, StubbornSearch::Order::backward}) {
    PageCache cache(forest, uint64_t{1} << 20);
    IndexedTask task(
        own, own.tasks[0], forest, cache,
        {.query = 1,
         .tolerance = 1e-7,
         .descent = {.newton = GetParam().block_solver == BlockSolver::newton, .bytes = uint64_t{1} << 20}},
        std::make_unique<StubbornSearch>(forest.pages().chunks().size(), order));
    for (int step = 0; step < 20000 && !task.done(); ++step) task.step();
    ASSERT_TRUE(task.done());
    EXPECT_NEAR(task.certificate().primal, best, 1e-6 * best);
    EXPECT_LE(task.certificate().gap(), 1e-7);
  }
}

TEST_P(IndexedWith, NeverRaisesTheTrueObjective) {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    const MemoryFolder folder;
    const Data data = make_clusters(600, 4, seed, 0.2);
    const Store store = write_store(folder, data, 100);
    build_index(store, GetParam().bias);
    Problem cut = problem(store, 1);
    cut.truncate = 0.5;
    const auto rows = dense(data, 1, GetParam().bias);
    const MetricForest forest = MetricForest::open(store);
    PageCache cache(forest, uint64_t{1} << 20);
    IndexedTask task(
        cut, cut.tasks[0], forest, cache,
        {.query = 50,
         .tolerance = 1e-4,
         .descent = {.newton = GetParam().block_solver == BlockSolver::newton, .bytes = uint64_t{1} << 20}});
    for (int step = 0; step < 20000 && !task.done(); ++step) task.step();
    ASSERT_TRUE(task.done());
    ASSERT_FALSE(task.objectives().empty());
    for (size_t i = 1; i < task.objectives().size(); ++i) EXPECT_LT(task.objectives()[i], task.objectives()[i - 1]);
    EXPECT_NEAR(task.objectives().back(),
                objective_at(GetParam().loss, rows, {task.weights().begin() + 1, task.weights().end()}, 1.5),
                1e-9 * task.objectives().back());
  }
}

TEST_P(IndexedWith, TakesOnlyRowsThatViolateAndAreNoOutliers) {
  const Data data = make_clusters(800, 5, 9, 0.2);
  const Store store = write_store(folder_, data, 100);
  build_index(store, GetParam().bias);
  Problem cut = problem(store, 1);
  cut.truncate = 0.5;
  const MetricForest forest = MetricForest::open(store);
  PageCache cache(forest, uint64_t{1} << 20);
  IndexedTask task(cut, cut.tasks[0], forest, cache,
                   {.query = 10,
                    .tolerance = 1e-4,
                    .descent = {.newton = GetParam().block_solver == BlockSolver::newton, .bytes = uint64_t{1} << 20}});
  const auto margin = [&](const Row& row, const std::vector<double>& weights) {
    double sum = cut.has_bias() ? cut.bias * weights.back() : 0;
    for (size_t k = 0; k < row.index.size(); ++k) sum += double{row.value[k]} * weights[row.index[k]];
    return (row.label == 1 ? 1 : -1) * sum;
  };
  size_t taken = 0;
  RowBuffer buffer;
  // Until the first check, after which rows are looked at elsewhere than at w.
  for (int step = 0; step < 200 && !task.is_checking(); ++step) {
    const std::vector<double> w = task.weights();
    const std::vector<double> anchor = task.anchor();
    const size_t before = task.active().size();
    task.step();
    for (size_t i = before; i < task.active().size(); ++i, ++taken) {
      const Row row = task.active().row(i, buffer);
      EXPECT_LT(margin(row, w), (std::visit([](const auto& loss) { return loss.flat_from(); }, cut.loss)));
      EXPECT_GE(margin(row, anchor), outlier_margin(cut.loss, 0.5));
    }
  }
  EXPECT_GT(taken, 20U);
}

TEST_P(IndexedWith, SaysNothingOfTheObjectiveBeforeItHasLookedAtAllRows) {
  const Data data = make_clusters(5000, 5, 9);  // more than the sample that it starts with
  const Store store = write_store(folder_, data, 500);
  build_index(store, GetParam().bias, 1000);
  std::vector<PassReport> reports;
  Context context;
  context.observer.pass = [&](const PassReport& report) { reports.push_back(report); };
  std::vector<Solution> solutions;
  const Summary summary = solve(problem(store, 0.5), options(50, 1e-5), solutions, context);
  ASSERT_GT(reports.size(), 5U);
  EXPECT_EQ(reports[0].gap_estimate(), std::numeric_limits<double>::infinity());
  for (const PassReport& report : reports) {
    EXPECT_GT(report.active_rows, 0U) << report.pass;
    // The problem of some rows alone has a smaller optimum.
    EXPECT_GE(report.primal_estimate, summary.total().dual) << report.pass;
  }
  EXPECT_GT(reports.back().active_rows, reports[0].active_rows);
  EXPECT_LE(reports.back().gap_estimate(), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Settings, IndexedWith,
                         testing::Values(Case{"hinge", "hinge", BlockSolver::dual, -1},
                                         Case{"hinge_bias", "hinge", BlockSolver::dual, 1},
                                         Case{"huber", "huber-hinge", BlockSolver::dual, 1},
                                         Case{"squared", "squared-hinge", BlockSolver::dual, -1},
                                         Case{"squared_bias", "squared-hinge", BlockSolver::dual, 2},
                                         Case{"newton", "squared-hinge", BlockSolver::newton, -1},
                                         Case{"newton_bias", "squared-hinge", BlockSolver::newton, 1}),
                         [](const auto& one) { return one.param.name; });

// Whatever was left unread: the certificate is that of ALL rows.
RC_GTEST_PROP(Indexed, CertifiesWhatAllRowsSay, ()) {
  const auto rows = *rc::gen::inRange<size_t>(2, 400);
  const auto features = *rc::gen::inRange<uint32_t>(1, 8);
  const auto seed = *rc::gen::inRange<uint32_t>(1, 1000000);
  const bool clusters = *rc::gen::arbitrary<bool>();
  const double bias = *rc::gen::element(-1.0, 0.5);
  const double cost = *rc::gen::element(0.01, 0.3, 5.0);
  const auto query = *rc::gen::element<size_t>(1, 5, 100);
  const std::string loss = *rc::gen::element<std::string>("hinge", "squared-hinge", "huber-hinge");
  const double stretch = *rc::gen::element(1.0, 30.0);
  Data data = clusters ? make_clusters(rows, features, seed) : make_data(rows, features, seed);
  std::mt19937 random(seed);
  // Rows of very different lengths, zero rows, and equal ones.
  for (OwnedRow& row : data.rows) {
    const double scale = std::pow(stretch, std::uniform_real_distribution<double>(-1, 1)(random));
    for (float& value : row.value) value *= static_cast<float>(scale);
    if (random() % 20 == 0) row.index.clear(), row.value.clear();
  }
  for (size_t i = 2; i < rows; ++i)
    if (random() % 10 == 0) {
      data.rows[i].index = data.rows[0].index;
      data.rows[i].value = data.rows[0].value;
    }
  const MemoryFolder folder;
  const Store store = write_store(folder, data, 100);
  build_index(store, bias, 50, 3);
  std::vector<Solution> solutions;
  const Summary summary = solve(problem_for(store, loss, cost, bias),
                                {.method = Indexed{.query = query}, .tolerance = 1e-3, .max_passes = 3000}, solutions);
  const auto all = dense(data, cost, bias);
  std::vector<double> weights = dense_weights(solutions[0].weights);
  // The last features may occur in no row, and have no weight then; the bias follows the last one that has.
  if (bias >= 0 && !weights.empty()) weights.pop_back();
  weights.resize(all[0].x.size());
  if (bias >= 0) weights.back() = double{solutions[0].weights.back()};
  const double primal = objective_at(loss, all, weights);
  RC_ASSERT(std::abs(summary.total().primal - primal) <= 1e-8 * (1 + primal));
  RC_ASSERT(summary.total().dual <= reference_optimum(loss, all, 1e-3, 200).primal * (1 + 1e-9) + 1e-9);
}

TEST(Indexed, GivesTheSameBitsForAnyNumberOfThreads) {
  const MemoryFolder folder;
  const Data data = make_classes(600, 6, 4, 1);
  const Store store = write_store(folder, data, 100);
  build_index(store);
  Problem problem = tasks_for(store, "hinge", {1, 0.5, 0.1, 2});
  problem.truncate = 1;
  std::vector<Solution> one;
  std::vector<Solution> four;
  const SolveOptions options{.method = Indexed{.query = 20}, .tolerance = 1e-3, .max_passes = 5000};
  solve(problem, options, one, {.team = 1});
  solve(problem, options, four, {.team = 4});
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(one[i].weights, four[i].weights) << i;
}

TEST(Indexed, LearnsNothingFromRowsThatAreHeldOut) {
  const MemoryFolder folder;
  const Data data = make_data(500, 6, 4);
  const Store store = write_store(folder, data, 100);
  build_index(store);
  Problem problem = problem_for(store, "hinge", 0.5);
  problem.tasks[0].held_out = {.seed = 3, .parts = 5, .first = 1, .last = 2};
  std::vector<Solution> solutions;
  const Summary summary =
      solve(problem, {.method = Indexed{.query = 20}, .tolerance = 1e-6, .max_passes = 5000}, solutions);
  Data part = data;
  part.rows.clear();
  for (size_t i = 0; i < data.rows.size(); ++i)
    if (!problem.tasks[0].held_out.holds(i)) part.rows.push_back(data.rows[i]);
  const double best = reference_optimum("hinge", dense(part, 0.5, -1), 1e-9).primal;
  EXPECT_NEAR(summary.total().primal, best, 2e-6 * best);
}

TEST(Indexed, RefusesWhatItCannotDo) {
  const MemoryFolder folder;
  const Store store = write_store(folder, make_data(100, 6, 4), 100);
  std::vector<Solution> solutions;
  const auto run = [&](const std::string& loss, Indexed method, double bias = -1) {
    solve(problem_for(store, loss, 1, bias), {.method = method}, solutions);
  };
  EXPECT_THAT([&] { run("hinge", {}); }, fails_with(ErrorKind::input, "linblock index"));
  build_index(store);
  EXPECT_THAT([&] { run("logistic", {}); },
              fails_with(ErrorKind::usage, "indexed needs a loss that is zero beyond the margin"));
  EXPECT_THAT([&] { run("hinge", {.block_solver = BlockSolver::newton}); },
              fails_with(ErrorKind::usage, "block_solver newton needs loss squared-hinge"));
  EXPECT_THAT([&] { run("hinge", {}, 1); }, fails_with(ErrorKind::usage, "was built without a bias"));
}

TEST(Indexed, SaysSoWhereTheIndexDoesNotHelpAndAnswersTheSame) {
  const MemoryFolder folder;
  // Every row its own features: no two rows are alike.
  Data data = make_data(2000, 200, 4, 0.05);
  const Store store = write_store(folder, data, 200);
  build_index(store);
  std::vector<std::string> notes;
  Context context;
  context.observer.note = [&](const std::string& note) { notes.push_back(note); };
  std::vector<Solution> solutions;
  const Summary summary =
      solve(problem_for(store, "squared-hinge", 1),
            {.method = Indexed{.query = 50}, .tolerance = 1e-4, .max_passes = 5000}, solutions, context);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0], testing::HasSubstr("the index does not help"));
  std::vector<Solution> dual;
  const Summary reference =
      solve(problem_for(store, "squared-hinge", 1), {.tolerance = 1e-6, .max_passes = 5000}, dual);
  EXPECT_NEAR(summary.total().primal, reference.total().primal, 2e-4 * reference.total().primal);
}

}  // namespace
}  // namespace linblock
