// Newton's method with a bias that is not penalized: the reference optimum to 1e-8 in both of its ways, bounds that are
// never above the optimum, the same bits however it was run, and a refusal where the bias would grow without end.
#include <gtest/gtest.h>

#include "solve/solve.h"
#include "support/errors.h"
#include "support/memory_folder.h"
#include "support/small_problems.h"
#include "support/stopping.h"
#include "support/streamed.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

const SolveOptions kTight{.method = Newton{}, .tolerance = 1e-9};

Problem free_problem(const Store& store, const std::string& loss, double cost, double bias = 1) {
  Problem problem = problem_for(store, loss, cost, bias);
  problem.free_bias = true;
  return problem;
}

// Few rows for each feature: smooth losses take a trust region. Many: models.
Data few_rows() { return make_data(40, 6, 3); }
Data many_rows() { return make_data(130, 4, 4); }

std::string loss_title(const std::string& loss) {
  return loss == "hinge"         ? "Hinge"
         : loss == "logistic"    ? "Logistic"
         : loss == "huber-hinge" ? "HuberHinge"
                                 : "SquaredHinge";
}

template <class Work>
std::string sentence_of(Work&& work) {
  const std::optional<Error> error = error_of(work);
  return error ? words_of(*error) : "no error";
}

// How exact the reference is, it says itself.
double reference(const std::string& loss, std::vector<DenseRow> rows) {
  const ReferenceOptimum optimum = reference_free_optimum(loss, std::move(rows));
  EXPECT_NEAR(optimum.dual, optimum.primal, 1e-9 * optimum.primal);
  return optimum.primal;
}

class FreeBias : public testing::TestWithParam<const char*> {
 protected:
  static std::string loss() { return GetParam(); }
  // Weights are saved as floats: at its corner the hinge shows that.
  static double floats() { return loss() == "hinge" ? 5e-8 : 1e-8; }
  Summary solved(const Problem& problem, const SolveOptions& options = kTight, const Context& context = {}) {
    return solve(problem, options, solutions_, context);
  }
  void expect_optimum(const Problem& problem, const std::vector<DenseRow>& rows) {
    solutions_.clear();
    const Summary summary = solved(problem);
    const double best = reference(loss(), rows);
    EXPECT_NEAR(summary.total().primal, best, floats() * best);
    EXPECT_LE(summary.total().dual, best * (1 + 1e-9));
    EXPECT_GE(summary.total().dual, best * (1 - 3e-8));
  }
  const MemoryFolder folder_;
  std::vector<Solution> solutions_;
};

TEST_P(FreeBias, ReachesTheReferenceOptimumWhateverTheBlocks) {
  for (const Data& data : {few_rows(), many_rows()}) {
    const double best = reference(loss(), dense(data, 0.7, -1));
    for (const size_t rows_per_chunk : {1U, 7U, 1000U}) {
      const MemoryFolder folder;
      const Store store = write_store(folder, data, rows_per_chunk);
      solutions_.clear();
      SolveOptions options = kTight;
      options.chunks_per_block = 1;
      const Summary summary = solved(free_problem(store, loss(), 0.7), options);
      EXPECT_NEAR(summary.total().primal, best, floats() * best) << rows_per_chunk;
      EXPECT_LE(summary.total().dual, best * (1 + 1e-9)) << rows_per_chunk;
      EXPECT_GE(summary.total().dual, best * (1 - 3e-8)) << rows_per_chunk;
    }
  }
}

TEST_P(FreeBias, DoesNotDependOnTheValueOfTheFeature) {
  const Data data = few_rows();
  const Store store = write_store(folder_, data, 7);
  const double best = reference(loss(), dense(data, 2, -1));
  for (const double bias : {0.01, 1.0, 300.0}) {
    solutions_.clear();
    EXPECT_NEAR(solved(free_problem(store, loss(), 2, bias)).total().primal, best, 2 * floats() * best) << bias;
  }
}

TEST_P(FreeBias, RowsWithWeightsOfTheirOwnAndOfTheirClassFewOfThemPositive) {
  Data data = make_data(60, 4, 4);
  for (size_t i = 0; i < data.rows.size(); ++i) {
    data.rows[i].weight = static_cast<float>(i % 4) / 2;
    if (i % 3 != 0) data.rows[i].label = -1;
  }
  const Store store = write_store(folder_, data, 7);
  Problem problem = free_problem(store, loss(), 3);
  problem.class_weights = {{1, 0.5}};
  expect_optimum(problem, dense(data, 3, -1, {{1, 0.5}}));
}

TEST_P(FreeBias, SeveralTasksReachTheirOptima) {
  const Data data = make_classes(42, 5, 3, 1);
  const Store store = write_store(folder_, data, 7);
  const std::vector<double> costs = {0.5, 0.05, 20};
  Problem problem = tasks_for(store, loss(), costs, 1);
  problem.free_bias = true;
  const Summary summary = solved(problem);
  for (size_t i = 0; i < costs.size(); ++i) {
    const double best = reference(loss(), dense(data, costs[i], -1, {}, static_cast<int32_t>(i) + 1));
    EXPECT_NEAR(summary.certificates[i].primal, best, floats() * best) << "task " << i;
    EXPECT_LE(summary.certificates[i].dual, best * (1 + 1e-9)) << "task " << i;
  }
}

TEST_P(FreeBias, HasNoPenaltyWhereThereIsNothingElse) {
  Data data = make_data(30, 1, 8);
  for (OwnedRow& row : data.rows) {
    row.index.clear();
    row.value.clear();
  }
  const Store store = write_store(folder_, data, 7);
  expect_optimum(free_problem(store, loss(), 1), dense(data, 1, -1));
}

TEST_P(FreeBias, IsTheLimitOfLargeConstantFeatures) {
  const Data data = few_rows();
  const Store store = write_store(folder_, data, 7);
  const double free = solved(free_problem(store, loss(), 1)).total().primal;
  const double bias = solutions_[0].weights.back();
  ASSERT_GT(std::abs(bias), 0.01);
  for (const double value : {1.0, 10.0, 40.0}) {
    solutions_.clear();
    const double penalized = solved(problem_for(store, loss(), 1, value)).total().primal;
    EXPECT_GE(penalized, free * (1 - 1e-7)) << value;
    EXPECT_LE(penalized, free * (1 + 1e-7) + 0.5 * bias * bias / (value * value)) << value;
  }
}

// Readings at weights far from the optimum and near it, and at costs where sums lose their digits.
TEST_P(FreeBias, NeverCertifiesABoundAboveTheOptimum) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const Data& data : {few_rows(), many_rows()}) {
    const MemoryFolder folder;
    const Store store = write_store(folder, data, 7);
    for (const double cost : {1e-6, 0.5, 1e3}) {
      const Problem problem = free_problem(store, loss(), cost);
      solutions_.clear();
      const Summary best = solved(problem);
      const std::vector<float> optimum = solutions_[0].weights;
      for (const float noise : {0.0F, 1e-6F, 1e-3F, 0.03F, 1.0F, 100.0F, 1e6F}) {
        solutions_[0].weights = optimum;
        for (float& weight : solutions_[0].weights) weight += noise * normal(random);
        SolveOptions options = kTight;
        options.max_passes = 1;
        const Certificate certificate = solved(problem, options).total();
        // The best primal and dual are known to 1e-8 of each other: nothing true is beyond either.
        EXPECT_LE(certificate.dual, best.total().primal) << "cost " << cost << ", noise " << noise;
        EXPECT_GE(certificate.primal, best.total().dual) << "cost " << cost << ", noise " << noise;
      }
    }
  }
}

TEST_P(FreeBias, CertifiesAsMuchAsTheSquareOfWhatIsMissing) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  const Store store = write_store(folder_, few_rows(), 7);
  const Problem problem = free_problem(store, loss(), 0.7);
  solved(problem);
  const std::vector<float> optimum = solutions_[0].weights;
  if (loss() == "hinge") return;  // the alphas of a reading are not those of its weights alone
  double last = std::numeric_limits<double>::infinity();
  for (const float noise : {1e-1F, 1e-2F, 1e-3F}) {
    double gap = 0;
    for (int draw = 0; draw < 8; ++draw) {
      solutions_[0].weights = optimum;
      for (float& weight : solutions_[0].weights) weight += noise * normal(random);
      SolveOptions options = kTight;
      options.max_passes = 1;
      gap = std::max(gap, solved(problem, options).total().gap());
    }
    EXPECT_LE(gap, 0.2 * last) << noise;
    last = gap;
  }
  EXPECT_LE(last, 1e-3);
}

TEST_P(FreeBias, ExtremeCostsAndRowsStillConvergeOrSayThatTheyDoNot) {
  Data data = many_rows();
  for (OwnedRow& row : data.rows)
    for (float& value : row.value) value *= 1e4F;
  const Store store = write_store(folder_, data, 50);
  for (const double cost : {1e-12, 1e9}) {
    solutions_.clear();
    const Summary summary = solved(free_problem(store, loss(), cost), {.method = Newton{}, .max_passes = 200});
    EXPECT_FALSE(summary.total().contradicts_itself()) << cost;
    EXPECT_GE(summary.total().primal, 0) << cost;
  }
}

TEST_P(FreeBias, TakenUpAfterEveryBlockEndsWithTheSameBits) {
  for (const size_t rows : {60U, 200U}) {
    const MemoryFolder folder;
    const Store store = write_store(folder, make_classes(rows, 6, 3, 2), 10);
    Problem problem = tasks_for(store, loss(), {1, 0.1, 5}, 1);
    problem.free_bias = true;
    SolveOptions options = kTight;
    options.chunks_per_block = 4;
    solutions_.clear();
    const Summary whole = solved(problem, options);
    Context context;
    context.checkpoint = {.path = folder / "STATE"};
    const StoppedRun stopped = run_with_stops(problem, options, context);
    EXPECT_GT(stopped.stops, whole.passes);
    EXPECT_EQ(stopped.summary.passes, whole.passes);
    for (size_t i = 0; i < solutions_.size(); ++i) {
      EXPECT_EQ(stopped.solutions[i].weights, solutions_[i].weights) << "task " << i;
      EXPECT_EQ(stopped.summary.certificates[i].primal, whole.certificates[i].primal);
      EXPECT_EQ(stopped.summary.certificates[i].dual, whole.certificates[i].dual);
    }
  }
}

TEST_P(FreeBias, HasTheSameBitsForAnyNumberOfThreads) {
  // Few features, and as many as rows.
  for (const uint32_t features : {20U, 300U}) {
    const MemoryFolder folder;
    const Store store = write_store(folder, make_data(1000, features, 6, 0.2), 50);
    const Problem problem = free_problem(store, loss(), 1);
    std::vector<float> weights;
    Certificate certificate;
    for (const size_t threads : {1, 2, 3, 7, 16}) {
      solutions_.clear();
      const Summary summary = solved(problem, {.method = Newton{}, .tolerance = 1e-5}, {.team = threads});
      EXPECT_GT(summary.plan.accumulators, 1U);
      if (threads == 1) {
        weights = solutions_[0].weights;
        certificate = summary.total();
      }
      EXPECT_EQ(solutions_[0].weights, weights) << threads << " threads";
      EXPECT_EQ(summary.total().primal, certificate.primal) << threads << " threads";
      EXPECT_EQ(summary.total().dual, certificate.dual) << threads << " threads";
    }
  }
}

TEST_P(FreeBias, RowsThatAreReadEachPassEndWhereRowsInMemoryDo) {
  const Store store = write_streamed_store(folder_ / "store");
  const Problem problem = free_problem(store, loss(), 1);
  const Summary streamed = solved(problem, {.method = Newton{}, .tolerance = 1e-6}, {.memory_bytes = kStreamedMemory});
  ASSERT_EQ(streamed.plan.rows, RowsHeld::streamed);
  solutions_.clear();
  const Summary resident = solved(problem, {.method = Newton{}, .tolerance = 1e-7});
  ASSERT_NE(resident.plan.rows, RowsHeld::streamed);
  EXPECT_NEAR(streamed.total().primal, resident.total().primal, 1e-6 * resident.total().primal);
}

TEST_P(FreeBias, BeginsWithTheWeightsItIsGiven) {
  const Store store = write_store(folder_, make_data(200, 12, 5), 50);
  const Problem problem = free_problem(store, loss(), 1);
  const int cold = solved(problem).passes;
  const int warm = solved(problem, {.method = Newton{}, .tolerance = 1e-6}).passes;
  if (loss() == "hinge")
    EXPECT_LT(warm, cold);
  else
    EXPECT_EQ(warm, 1);
}

TEST_P(FreeBias, IsLeftOutOfTheNormWhereLossesAreTruncated) {
  if (loss() == "logistic") return;
  const Data data = few_rows();
  const Store store = write_store(folder_, data, 7);
  Problem problem = free_problem(store, loss(), 1);
  problem.truncate = 1;
  const Summary summary = solved(problem, {.method = Newton{}, .tolerance = 1e-6});
  const std::vector<float>& weights = solutions_[0].weights;
  double objective = 0;
  for (size_t j = 0; j + 1 < weights.size(); ++j) objective += 0.5 * double{weights[j]} * double{weights[j]};
  uint64_t outliers = 0;
  std::vector<DenseRow> inside = dense(data, 1, -1);
  for (DenseRow& row : inside) {
    double score = weights.back();
    for (uint32_t j = 0; j < row.x.size(); ++j) score += row.x[j] * double{weights[store.features().number(j + 1)]};
    const double value = reference_loss(loss(), row.y * score);
    objective += row.cost * std::min(value, 2.0);
    if (value <= 2) continue;
    row.cost = 0;
    ++outliers;
  }
  ASSERT_EQ(summary.truncated.size(), 1U);
  EXPECT_NEAR(summary.truncated[0].objective, objective, 1e-6 * objective);
  EXPECT_EQ(summary.truncated[0].outliers, outliers);
  // The convex problem of the rows that are left.
  const double best = reference(loss(), inside);
  EXPECT_NEAR(summary.certificates[0].primal, best, 1e-5 * best);
  EXPECT_LE(summary.certificates[0].dual, best * (1 + 1e-9));
}

TEST_P(FreeBias, RefusesATaskWithRowsOfOneSide) {
  for (Data data : {few_rows(), many_rows()}) {
    for (OwnedRow& row : data.rows) row.label = 2;
    data.rows[3].label = 1;
    const MemoryFolder folder;
    const Store store = write_store(folder, data, 7);
    Problem problem = free_problem(store, loss(), 1);
    problem.class_weights = {{1, 0}};
    solutions_.clear();
    EXPECT_THAT(sentence_of([&] { solved(problem); }), testing::HasSubstr("no row with the label 1 is left"));
    problem.class_weights = {{2, 0}};
    solutions_.clear();
    EXPECT_THAT(sentence_of([&] { solved(problem); }), testing::HasSubstr("no row without the label 1 is left"));
    // The only row of its class is in a fold.
    problem.class_weights = {};
    const uint32_t part = HeldOut::part_of(1, 3, 3);
    problem.tasks[0].held_out = {.seed = 1, .parts = 3, .first = part, .last = part + 1};
    solutions_.clear();
    EXPECT_THAT(sentence_of([&] { solved(problem); }), testing::HasSubstr("in one of the folds"));
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, FreeBias, testing::Values("hinge", "squared-hinge", "logistic", "huber-hinge"),
                         [](const auto& one) { return loss_title(one.param); });

TEST(PenalizedBias, IsRefusedByMethodsThatPenalizeEveryWeight) {
  const MemoryFolder folder;
  const Store store = write_store(folder, few_rows(), 7);
  std::vector<Solution> solutions;
  const Problem problem = free_problem(store, "hinge", 1);
  expect_error(ErrorKind::usage, {"cannot leave a bias of 1 out of the penalty"},
               [&] { solve(problem, {.method = Dual{}}, solutions); });
}

}  // namespace
}  // namespace linblock
