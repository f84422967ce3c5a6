// What certificates of solvers say, against the same sums made independently, in long double, from the rows.
#include <gtest/gtest.h>

#include "objective/certificate.h"
#include "solve/solve.h"
#include "support/memory_folder.h"
#include "support/small_problems.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

long double exact_loss(const std::string& loss, long double margin) {
  const long double slack = std::max(0.0L, 1 - margin);
  if (loss == "hinge") return slack;
  if (loss == "squared-hinge") return slack * slack;
  if (loss == "huber-hinge") {
    const long double beyond = std::max(0.0L, 1.5L - margin);
    return beyond >= 1 ? 1 - margin : beyond * beyond / 2;
  }
  return margin > 0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin)) - margin;
}

long double exact_dual_term(const std::string& loss, long double alpha, long double cost) {
  if (loss == "hinge") return alpha;
  if (loss == "squared-hinge") return alpha - alpha * alpha / (4 * cost);
  if (loss == "huber-hinge") return 1.5L * alpha - alpha * alpha / (2 * cost);
  const long double small = std::min(alpha, cost - alpha);
  return small <= 0 ? 0.0L : -small * std::log(small / cost) - (cost - small) * std::log1p(-small / cost);
}

struct Exact {
  long double primal = 0;
  long double dual = 0;
};

// The only place that knows how a solution keeps its duals.
std::vector<double> duals_by_row(const Store& store, const Solution& solution) {
  std::vector<double> alpha(store.info().rows);
  Chunk chunk;
  for (size_t number = 0; number < store.chunks().size(); ++number) {
    store.read(number, chunk);
    for (size_t row = 0; row < chunk.rows(); ++row) alpha[chunk.id(row)] = solution.duals.page(number)[row];
  }
  return alpha;
}

Exact exact_sums(const Data& data, const Problem& problem, const Solution& solution) {
  const std::string loss(name_of(problem.loss));
  const FeatureMap& features = problem.store->features();
  const std::vector<double> alpha = duals_by_row(*problem.store, solution);
  const std::vector<DenseRow> costs = dense(data, problem.tasks[0].cost, problem.bias, problem.class_weights);
  std::vector<long double> v(solution.weights.size(), 0);
  Exact sums;
  for (size_t i = 0; i < data.rows.size(); ++i) {
    const OwnedRow& row = data.rows[i];
    const long double y = costs[i].y;
    long double score = 0;
    for (size_t k = 0; k < row.index.size(); ++k) {
      const uint32_t number = features.number(row.index[k]);
      score += static_cast<long double>(solution.weights[number]) * row.value[k];
      v[number] += alpha[i] * y * row.value[k];
    }
    if (problem.has_bias()) {
      score += problem.bias * static_cast<long double>(solution.weights.back());
      v.back() += alpha[i] * y * problem.bias;
    }
    if (costs[i].cost == 0) continue;
    sums.primal += costs[i].cost * exact_loss(loss, y * score);
    sums.dual += exact_dual_term(loss, alpha[i], costs[i].cost);
  }
  for (const float weight : solution.weights) sums.primal += 0.5L * weight * weight;
  for (const long double weight : v) sums.dual -= 0.5L * weight * weight;
  return sums;
}

// Trains and holds what is certified against the sums; far from the optimum as near it.
void expect_true_certificate(const Data& data, const Problem& problem, const SolveOptions& options) {
  std::vector<Solution> solutions;
  const Summary summary = solve(problem, options, solutions);
  const Certificate& said = summary.certificates.front();
  const Exact exact = exact_sums(data, problem, solutions.front());
  const auto size = static_cast<double>(exact.primal);
  EXPECT_NEAR(said.primal, static_cast<double>(exact.primal), 1e-10 * size);
  // Never above the truth; below it by the bound on the drift, which is a tenth of the tolerance at most.
  EXPECT_LE(said.dual, static_cast<double>(exact.dual) + 1e-10 * size);
  EXPECT_GE(said.dual, static_cast<double>(exact.dual) * (1 - 0.11 * options.tolerance) - 1e-10 * size);
  EXPECT_LE(said.dual, said.primal);
  EXPECT_LE(exact.dual, exact.primal * (1 + 1e-12L));
}

class Certificates : public testing::TestWithParam<const char*> {
 protected:
  const Folder folder_;
};

TEST_P(Certificates, AreTheSumsOverAllRowsAfterAnyNumberOfPasses) {
  const Data data = make_data(90, 7, 1);
  const Store store = write_store(folder_, data, 20);
  for (const int passes : {1, 2, 5, 50, 1000}) {
    SCOPED_TRACE(testing::Message() << passes << " passes");
    expect_true_certificate(data, problem_for(store, GetParam(), 1), {.tolerance = 1e-7, .max_passes = passes});
  }
}

TEST_P(Certificates, CountTheBiasClassWeightsAndRowWeights) {
  Data data = make_data(60, 5, 2);
  for (size_t i = 0; i < data.rows.size(); ++i) data.rows[i].weight = static_cast<float>(i % 3);
  const Store store = write_store(folder_, data, 13);
  Problem problem = problem_for(store, GetParam(), 0.4, 3.0);
  problem.class_weights = {{1, 5.0}, {-1, 0.25}};
  for (const int passes : {1, 100}) expect_true_certificate(data, problem, {.tolerance = 1e-6, .max_passes = passes});
}

TEST_P(Certificates, HoldForEveryMethodThatGivesThem) {
  const Data data = make_data(100, 6, 3);
  const Store store = write_store(folder_, data, 11);
  const std::vector<AnyMethod> methods = {
      Dual{.schedule = Schedule::fixed, .blocks = 3, .inner = InnerIterations::until_solved()}, Dual{.inner = 7},
      Average{}, Subsample{.share = 0.4}};
  for (const AnyMethod& method : methods) {
    SCOPED_TRACE(name_of(method));
    expect_true_certificate(data, problem_for(store, GetParam(), 2), {.method = method, .max_passes = 20});
  }
}

// Long runs in float drift; the certificate must not.
TEST_P(Certificates, AreOfTheSavedWeightsHoweverTheyDrifted) {
  Data data = make_data(80, 4, 4);
  for (OwnedRow& row : data.rows)
    for (float& value : row.value) value *= 1000;
  const Store store = write_store(folder_, data, 80);
  expect_true_certificate(data, problem_for(store, GetParam(), 100), {.tolerance = 1e-9, .max_passes = 300});
}

TEST_P(Certificates, SeenOnTheWayAreBoundsToo) {
  const Data data = make_data(70, 5, 5);
  const Store store = write_store(folder_, data, 9);
  const ReferenceOptimum best = reference_optimum(GetParam(), dense(data, 1, -1));
  Context context;
  int seen = 0;
  context.observer.pass = [&](const PassReport& pass) {
    if (!pass.certified) return;
    ++seen;
    EXPECT_LE(pass.certified->dual, best.primal * (1 + 1e-9));
    EXPECT_GE(pass.certified->primal, best.dual * (1 - 1e-9));
  };
  std::vector<Solution> solutions;
  solve(problem_for(store, GetParam(), 1), {.tolerance = 1e-6, .max_passes = 5000}, solutions, context);
  EXPECT_GE(seen, 1);
}

// A certificate without v is cheaper; a caller who wants v gets one in each.
TEST_P(Certificates, AreCountedByWhatTheyTook) {
  const Data data = make_data(300, 8, 6);
  const Store store = write_store(folder_, data, 30);
  const auto made = [&](bool wants_v) {
    uint64_t seen = 0;
    Context context{.wants_v = wants_v};
    context.observer.pass = [&](const PassReport& pass) { seen += pass.certified ? 1 : 0; };
    std::vector<Solution> solutions;
    const Summary summary =
        solve(problem_for(store, GetParam(), 1), {.method = Dual{.inner = 1}, .tolerance = 1e-3, .max_passes = 500},
              solutions, context);
    EXPECT_EQ(summary.certificates_made.all, seen);
    return summary.certificates_made;
  };
  const CertificatesMade with = made(true);
  EXPECT_GE(with.all, 1U);
  EXPECT_EQ(with.without_v, 0U);
  const CertificatesMade without = made(false);
  EXPECT_GE(without.without_v, 1U);
  EXPECT_LE(without.without_v, without.all);
}

// Where the dual is a small difference of huge sums, rounding must not make the gap look smaller than it is.
TEST_P(Certificates, NeverPromiseMoreThanIsTrueAtAnyCost) {
  int finite = 0;
  for (int power = -10; power <= 16; ++power)
    for (const float scale : {0.001F, 1.0F, 1000.0F}) {
      Data data = make_data(40, 4, static_cast<uint32_t>(power + 20));
      for (OwnedRow& row : data.rows)
        for (float& value : row.value) value *= scale;
      const MemoryFolder folder;
      const Store store = write_store(folder, data, 16);
      const Problem problem = problem_for(store, GetParam(), std::pow(10.0, power), power % 2 == 0 ? 1.0 : -1.0);
      for (const AnyMethod& method : std::vector<AnyMethod>{Dual{.inner = 3}, Average{}})
        for (const int passes : {1, 30}) {
          SCOPED_TRACE(testing::Message() << "cost 1e" << power << ", scale " << scale << ", " << passes << " passes");
          std::vector<Solution> solutions;
          const Summary summary =
              solve(problem, {.method = method, .tolerance = 1e-12, .max_passes = passes}, solutions);
          const Certificate& said = summary.certificates.front();
          // Duals belong to the weights, except where others were kept for them.
          const Exact exact = exact_sums(data, problem, solutions.front());
          EXPECT_LE(said.dual, exact.dual);
          EXPECT_GE(said.primal - said.dual, exact.primal - exact.dual);
          EXPECT_NEAR(said.primal, static_cast<double>(exact.primal), static_cast<double>(exact.dual - said.dual));
          EXPECT_EQ(summary.certified(), std::isfinite(said.gap()));
          if (said.gap() < 10) ++finite;
        }
    }
  EXPECT_GT(finite, 50) << "bounds are so wide that they say nothing";
}

INSTANTIATE_TEST_SUITE_P(Losses, Certificates, testing::Values("hinge", "squared-hinge", "logistic", "huber-hinge"));

}  // namespace
}  // namespace linblock
