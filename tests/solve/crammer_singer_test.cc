// All classes at once: the optimum of an independent solver, and what every method promises.
#include <gtest/gtest.h>

#include <cmath>

#include "objective/class_certificate.h"
#include "solve/solve.h"
#include "support/class_problems.h"
#include "support/errors.h"
#include "support/stopping.h"
#include "support/tight_memory.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

constexpr double kTolerance = 1e-6;

SolveOptions exactly(int inner = 1) {
  return {.method = CrammerSinger{.inner = inner}, .tolerance = kTolerance, .max_passes = 50000};
}

// Every certificate on the way is one, and the last says where the optimum is.
Summary expect_optimum(const Problem& problem, const ClassOptimum& reference, const SolveOptions& options = exactly(),
                       Context context = {}) {
  EXPECT_LE(reference.primal - reference.dual, 1e-7 * reference.dual) << "the reference itself";
  context.observer.pass = [&](const PassReport& pass) {
    if (pass.certified) {
      EXPECT_LE(pass.certified->dual, pass.certified->primal);
      EXPECT_LE(pass.certified->dual, reference.primal * (1 + 1e-7));
      EXPECT_GE(pass.certified->primal, reference.dual * (1 - 1e-7));
    }
  };
  std::vector<Solution> solutions;
  Summary summary = solve(problem, options, solutions, context);
  const Certificate& certificate = summary.certificates.at(0);
  EXPECT_EQ(summary.termination, Termination::converged);
  EXPECT_LE(certificate.gap(), options.tolerance);
  EXPECT_NEAR(certificate.primal, reference.primal, 2 * options.tolerance * reference.primal);
  EXPECT_EQ(solutions[0].weights.size(), problem.weights() * problem.classes());
  return summary;
}

class AllClasses : public testing::TestWithParam<uint32_t> {};

TEST_P(AllClasses, ReachTheReferenceOptimumWithBlocksOfAnySize) {
  const Data data = make_class_data(42, 6, GetParam(), 1);
  const ClassOptimum reference = class_optimum(data, 0.5, -1);
  for (const size_t rows_per_chunk : {1, 7, 42}) {
    for (const int inner : {1, 3}) {
      SCOPED_TRACE(testing::Message() << rows_per_chunk << " rows a chunk, " << inner << " rounds");
      const Folder folder;
      const Store store = write_store(folder, data, rows_per_chunk);
      SolveOptions options = exactly(inner);
      options.chunks_per_block = 3;
      expect_optimum(class_problem(store, 0.5), reference, options);
    }
  }
}

TEST_P(AllClasses, TakeABiasClassWeightsAndRowWeightsIntoAccount) {
  const Folder folder;
  Data data = make_class_data(50, 4, GetParam(), 3);
  for (size_t i = 0; i < data.rows.size(); ++i) data.rows[i].weight = static_cast<float>(i % 4);
  const Store store = write_store(folder, data, 10);
  Problem problem = class_problem(store, 0.7, 2.0);
  problem.class_weights = {{10, 3.0}, {20, 0.5}};
  expect_optimum(problem, class_optimum(data, 0.7, 2.0, problem.class_weights));
}

TEST_P(AllClasses, AreFoundByTheirLargestScore) {
  const Folder folder;
  const Data data = make_class_data(200, 30, GetParam(), 5);
  const Store store = write_store(folder, data, 50);
  std::vector<Solution> solutions;
  const Problem problem = class_problem(store, 10);
  solve(problem, {.method = CrammerSinger{}, .tolerance = 0.01}, solutions);
  const size_t classes = problem.classes();
  size_t right = 0;
  for (const OwnedRow& row : rows_in_order(store)) {
    std::vector<double> scores(classes, 0);
    for (size_t k = 0; k < row.index.size(); ++k)
      for (size_t m = 0; m < classes; ++m)
        scores[m] += double{row.value[k]} * double{solutions[0].weights[row.index[k] * classes + m]};
    const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
    right += row.label == 10 * (static_cast<int32_t>(best) + 1) ? 1 : 0;
  }
  EXPECT_GE(right, 160U);
}

INSTANTIATE_TEST_SUITE_P(Some, AllClasses, testing::Values(2, 3, 7));

TEST(CrammerSinger, ARowOfWeightTwoIsTheRowTwiceAndOneOfWeightZeroIsAbsent) {
  Data weighted = make_class_data(40, 5, 3, 4);
  Data repeated = weighted;
  weighted.rows[5].weight = 2;
  repeated.rows.push_back(repeated.rows[5]);
  weighted.rows[9].weight = 0;
  repeated.rows.erase(repeated.rows.begin() + 9);
  const Folder folder;
  const Store store = write_store(folder, weighted, 8);
  expect_optimum(class_problem(store, 1), class_optimum(repeated, 1, -1));
}

TEST(CrammerSinger, HeldOutRowsAreAsGoodAsAbsent) {
  const Data data = make_class_data(60, 5, 3, 6);
  const Folder folder;
  const Store store = write_store(folder, data, 9);
  Problem problem = class_problem(store, 1);
  problem.tasks[0].held_out = {.seed = 1, .parts = 4, .first = 1, .last = 2};
  Data learned = data;
  for (size_t i = 0; i < data.rows.size(); ++i)
    if (problem.tasks[0].held_out.holds(i)) learned.rows[i].weight = 0;
  const auto left = std::count_if(learned.rows.begin(), learned.rows.end(), [](auto& row) { return row.weight != 0; });
  ASSERT_LT(left, 60);
  ASSERT_GT(left, 20);
  expect_optimum(problem, class_optimum(learned, 1, -1));
}

Problem several_tasks(const Store& store) {
  Problem problem = class_problem(store, 1, 1);
  problem.tasks.clear();
  for (uint32_t fold = 0; fold < 3; ++fold)
    problem.tasks.push_back(
        {.cost = fold == 2 ? 0.01 : 1, .held_out = {.seed = 1, .parts = 3, .first = fold, .last = fold + 1}});
  return problem;
}

TEST(CrammerSinger, TasksSolvedTogetherAreTheTasksSolvedAlone) {
  const Folder folder;
  const Store store = write_store(folder, make_class_data(120, 8, 4, 7), 10);
  const Problem problem = several_tasks(store);
  SolveOptions options = exactly();
  options.tolerance = 1e-4;
  std::vector<Solution> together;
  const Summary all = solve(problem, options, together);
  for (size_t i = 0; i < problem.tasks.size(); ++i) {
    Problem one = problem;
    one.tasks = {problem.tasks[i]};
    std::vector<Solution> alone;
    const Summary summary = solve(one, options, alone);
    EXPECT_EQ(summary.certificates[0].primal, all.certificates[i].primal);
    EXPECT_EQ(summary.certificates[0].dual, all.certificates[i].dual);
    EXPECT_EQ(alone[0].weights, together[i].weights);
  }
}

TEST(CrammerSinger, GivesTheSameBitsForAnyNumberOfThreads) {
  const Folder folder;
  const Store store = write_store(folder, make_class_data(150, 8, 5, 8), 10);
  const Problem problem = several_tasks(store);
  std::vector<Solution> expected;
  for (const size_t threads : {1, 2, 3, 7}) {
    std::vector<Solution> solutions;
    solve(problem, {.method = CrammerSinger{.inner = 2}, .tolerance = 1e-4, .chunks_per_block = 4}, solutions,
          {.team = threads});
    ASSERT_EQ(solutions.size(), 3U);
    if (threads == 1) expected = std::move(solutions);
    for (size_t i = 0; i < solutions.size(); ++i)
      EXPECT_EQ(solutions[i].weights, expected[i].weights) << threads << " threads";
  }
}

// Rows that rested when it was found are looked at again.
TEST(CrammerSinger, GoesOnFromAnEarlierAnswer) {
  const Folder folder;
  const Store store = write_store(folder, make_class_data(100, 6, 4, 9), 10);
  std::vector<Solution> solutions;
  const Problem problem = class_problem(store, 1);
  const Summary first = solve(problem, exactly(), solutions);
  const Summary again = solve(problem, exactly(), solutions);
  EXPECT_GT(first.passes, 5);
  EXPECT_LT(again.passes, first.passes / 2 + 1);
  EXPECT_EQ(again.termination, Termination::converged);
  Problem cheaper = problem;  // many duals are above what they may be now
  cheaper.tasks[0].cost = 0.1;
  const Summary lower = solve(cheaper, exactly(), solutions);
  EXPECT_EQ(lower.termination, Termination::converged);
  EXPECT_LT(lower.certificates[0].primal, 0.5 * first.certificates[0].primal);
}

// Blocks of a few of many chunks, in so little memory that rows are read each pass.
class CrammerSingerInLittleMemory : public testing::Test {
 protected:
  static Store write(const std::string& path, const Data& data) {
    StoreWriter writer(path);
    writer.begin({.buckets = 60, .chunk_bytes = 4096});
    for (const OwnedRow& row : data.rows) writer.add(row.view());
    writer.commit();
    return Store::open(path);
  }
  uint64_t streaming(const Problem& problem) const {
    const AnyMethod method = CrammerSinger{};
    const uint64_t least = least_memory(problem, method);
    const uint64_t enough =
        least_memory_where(problem, method, "", [](const Plan& plan) { return plan.rows != RowsHeld::streamed; });
    return least + (enough - least) / 2;
  }

  const MemoryFolder folder_;
  const Data data_ = make_class_data(300, 24, 5, 10);
  const Store store_ = write(folder_ / "store", data_);
};

TEST_F(CrammerSingerInLittleMemory, ReachesTheReferenceOptimum) {
  const Problem problem = class_problem(store_, 0.1, 1);
  const Summary summary =
      expect_optimum(problem, class_optimum(data_, 0.1, 1), exactly(), context_with(streaming(problem)));
  EXPECT_EQ(summary.plan.rows, RowsHeld::streamed);
}

// v is made in ranges of features.
TEST_F(CrammerSingerInLittleMemory, CertifiesTheSameInSeveralPasses) {
  const Problem problem = class_problem(store_, 0.1, 1);
  SolveOptions options = exactly();
  options.max_passes = 3;
  std::vector<Solution> whole;
  const Summary once = solve(problem, options, whole, context_with(streaming(problem)));
  for (const size_t features : {1, 7, 24}) {
    ClassCertifier one(problem, problem.tasks[0]);
    ClassCertifier several(problem, problem.tasks[0], features * problem.classes() + 2);
    EXPECT_EQ(several.passes(), (problem.weights() + features - 1) / features);
    for (ClassCertifier* certifier : {&one, &several}) {
      for (size_t pass = 0; pass < certifier->passes(); ++pass) {
        certifier->begin_pass(pass);
        for (size_t number = 0; number < store_.chunks().size(); ++number) {
          Chunk chunk;
          store_.read(number, chunk);
          if (pass == 0) certifier->add_losses(chunk, whole[0].class_duals.page(number), whole[0].weights);
          certifier->add_duals(chunk, whole[0].class_duals.page(number));
        }
        certifier->end_pass(whole[0].weights);
      }
    }
    EXPECT_EQ(one.finish(whole[0].weights).primal, several.finish(whole[0].weights).primal);
    EXPECT_NEAR(one.finish(whole[0].weights).dual, several.finish(whole[0].weights).dual, 1e-12 * once.total().dual);
    EXPECT_NEAR(one.finish(whole[0].weights).dual, once.total().dual, 1e-12 * once.total().dual);
    EXPECT_NEAR(one.drift(), several.drift(), 1e-9 * one.drift() + 1e-300);
  }
}

class CrammerSingerStopped : public CrammerSingerInLittleMemory, public testing::WithParamInterface<bool> {};

TEST_P(CrammerSingerStopped, AtEveryBlockItEndsWithTheSameBits) {
  const Problem problem = several_tasks(store_);
  const uint64_t memory = GetParam() ? streaming(problem) : uint64_t{1} << 30;
  const SolveOptions options{.method = CrammerSinger{.inner = 2}, .tolerance = 1e-4, .max_passes = 40};
  std::vector<Solution> whole;
  int blocks = 0;
  double last_estimate = 0;
  Context unstopped = context_with(memory, folder_ / "WHOLE");
  unstopped.observer.block = [&](const BlockReport&) { ++blocks; };
  unstopped.observer.pass = [&](const PassReport& pass) { last_estimate = pass.primal_estimate; };
  const Summary expected = solve(problem, options, whole, unstopped);
  EXPECT_EQ(expected.plan.rows == RowsHeld::streamed, GetParam());
  EXPECT_GT(blocks, expected.passes) << "one block a pass is no test";
  Context stopping = context_with(memory, folder_ / "STOPPED");
  stopping.team = 3;
  const StoppedRun found = run_with_stops(problem, options, stopping);
  EXPECT_EQ(found.stops, blocks);
  EXPECT_EQ(found.last_estimate, last_estimate);
  EXPECT_EQ(found.summary.passes, expected.passes);
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(found.summary.certificates[i].primal, expected.certificates[i].primal);
    EXPECT_EQ(found.summary.certificates[i].dual, expected.certificates[i].dual);
    EXPECT_EQ(found.solutions[i].weights, whole[i].weights);
  }
}

INSTANTIATE_TEST_SUITE_P(Where, CrammerSingerStopped, testing::Bool(),
                         [](const auto& where) { return where.param ? "streamed" : "resident"; });

TEST(CrammerSinger, IsForTheHingeLoss) {
  const Folder folder;
  const Store store = write_store(folder, make_class_data(20, 3, 3, 11), 10);
  Problem problem = class_problem(store, 1);
  problem.loss = Logistic{};
  std::vector<Solution> solutions;
  expect_error(ErrorKind::usage, {"crammer-singer", "hinge", "logistic"},
               [&] { solve(problem, exactly(), solutions); });
}

TEST(CrammerSinger, RefusesAMemoryThatCannotHoldTheWeightsOfAllClasses) {
  const Folder folder;
  Data data = make_class_data(20, 3, 5, 12);
  data.rows[0].index.push_back(4'000'000);
  data.rows[0].value.push_back(1);
  const Store store = write_store(folder, data, 10);
  const Problem problem = class_problem(store, 1);
  std::vector<Solution> solutions;
  expect_error(ErrorKind::memory, {"weights of 4,000,001 features for each of 5 classes 76 MB"},
               [&] { solve(problem, exactly(), solutions, {.memory_bytes = uint64_t{64} << 20}); });
  EXPECT_EQ(make_plan(problem, exactly(), {.memory_bytes = uint64_t{128} << 20}).bytes("weights"), 5 * 4'000'001U * 4);
}

// Rows ask for more classes at first than they keep.
TEST(CrammerSinger, StaysWithinTheMemoryForDualsAndReachesTheOptimumAllTheSame) {
  const Folder folder;
  const Data data = make_class_data(400, 20, 40, 13);
  const Store store = write_store(folder, data, 20);
  const Problem problem = class_problem(store, 0.02);
  const uint64_t least = least_memory(problem, CrammerSinger{});
  const auto primal = [&](uint64_t memory, uint64_t& most_bytes) {
    Context context{.memory_bytes = memory};
    std::vector<Solution> solutions;
    context.observer.pass = [&](const PassReport&) {
      most_bytes = std::max(most_bytes, solutions.at(0).class_duals.bytes());
    };
    const Summary summary = solve(problem, {.method = CrammerSinger{}, .tolerance = 1e-3}, solutions, context);
    EXPECT_EQ(summary.termination, Termination::converged);
    EXPECT_LE(most_bytes, summary.plan.bytes("duals"));
    return summary.certificates[0].primal;
  };
  uint64_t tight = 0;
  uint64_t free = 0;
  const double with_little = primal(least, tight);
  EXPECT_NEAR(with_little, primal(uint64_t{1} << 30, free), 1e-3 * with_little);
  EXPECT_LT(tight, free) << "memory was not short: no test";
}

TEST(CrammerSinger, NeverMakesANumberThatIsNotFinite) {
  for (const double scale : {1e30, 1e-30}) {
    for (const double cost : {1e-8, 1.0, 1e8}) {
      const Folder folder;
      Data data = make_class_data(30, 4, 3, 14);
      for (OwnedRow& row : data.rows)
        for (float& value : row.value) value = static_cast<float>(value * scale);
      data.rows.push_back({.label = 10});  // rows without features
      data.rows.push_back({.label = 30});
      const Store store = write_store(folder, data, 32);
      std::vector<Solution> solutions;
      const Summary summary = solve(class_problem(store, cost),
                                    {.method = CrammerSinger{}, .tolerance = 0.01, .max_passes = 50}, solutions);
      for (const float weight : solutions[0].weights) EXPECT_TRUE(std::isfinite(weight)) << scale << " " << cost;
      EXPECT_TRUE(std::isfinite(summary.certificates[0].primal)) << scale << " " << cost;
      EXPECT_LE(summary.certificates[0].dual, summary.certificates[0].primal);
    }
  }
}

}  // namespace
}  // namespace linblock
