#include <gtest/gtest.h>

#include "solve/solve.h"
#include "support/small_problems.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

double primal_at(const std::string& loss, const std::vector<DenseRow>& rows, const std::vector<float>& weights,
                 uint32_t first) {
  double sum = 0;
  for (const float weight : weights) sum += 0.5 * weight * weight;
  for (const DenseRow& row : rows) {
    double margin = 0;
    for (size_t j = 0; j < row.x.size(); ++j) margin += row.x[j] * double{weights[j + first]};
    sum += row.cost * reference_loss(loss, row.y * margin);
  }
  return sum;
}

TEST(Pegasos, ComesCloseToTheOptimumWithEveryKindOfStep) {
  const Folder folder;
  const Data data = make_data(200, 5, 1);
  const Store store = write_store(folder, data, 50);
  for (const char* loss : {"hinge", "squared-hinge", "huber-hinge"}) {
    const ReferenceOptimum reference = reference_optimum(loss, dense(data, 0.05, -1));
    for (const size_t step : {0, 1, 10}) {
      std::vector<Solution> solutions;
      const Summary summary =
          solve(problem_for(store, loss, 0.05), {.method = Pegasos{.step = step}, .max_passes = 2000}, solutions);
      EXPECT_FALSE(summary.certified());
      EXPECT_EQ(summary.passes, 2000);
      EXPECT_GE(summary.certificates[0].primal, reference.dual * (1 - 1e-9));
      EXPECT_LE(summary.certificates[0].primal, reference.primal * 1.05) << loss << ", step " << step;
      // The primal that is said is that of the weights that are given. (Feature numbers here are original indices.)
      EXPECT_NEAR(summary.certificates[0].primal, primal_at(loss, dense(data, 0.05, -1), solutions[0].weights, 1),
                  1e-6);
    }
  }
}

TEST(Pegasos, FollowsTheEquationsOfThePaperStepByStep) {
  const Folder folder;
  const Data data = make_data(12, 3, 2);
  const Store store = write_store(folder, data, 12);
  const double cost = 0.5;
  const std::vector<DenseRow> rows = dense(data, cost, -1);
  const double size = 12 * cost;
  // One block, the whole of it a step: no order to guess.
  std::vector<double> w(3, 0);
  for (int t = 1; t <= 5; ++t) {
    std::vector<double> gradient(3, 0);
    for (const DenseRow& row : rows) {
      double margin = 0;
      for (size_t j = 0; j < 3; ++j) margin += row.y * row.x[j] * w[j];
      if (margin < 1)
        for (size_t j = 0; j < 3; ++j) gradient[j] += row.y * row.x[j] / 12;
    }
    double length = 0;
    for (size_t j = 0; j < 3; ++j) {
      w[j] -= size / t * (w[j] / size - gradient[j]);
      length += w[j] * w[j];
    }
    const double shrink = std::min(1.0, std::sqrt(size) / std::sqrt(length));
    for (double& weight : w) weight *= shrink;
  }
  std::vector<Solution> solutions;
  solve(problem_for(store, "hinge", cost), {.method = Pegasos{.step = 0}, .max_passes = 5}, solutions);
  for (size_t j = 0; j < 3; ++j) EXPECT_NEAR(solutions[0].weights[j + 1], w[j], 1e-5);
}

TEST(Pegasos, RefusesTheLogisticLoss) {
  const Folder folder;
  const Store store = write_store(folder, make_data(20, 3, 3), 20);
  std::vector<Solution> solutions;
  EXPECT_THROW(solve(problem_for(store, "logistic", 1), {.method = Pegasos{}}, solutions), Error);
}

// What is certified must be true, however far from the optimum.
void expect_true_certificate(const AnyMethod& method, const char* loss) {
  const Folder folder;
  const Data data = make_data(120, 5, 4);
  const Store store = write_store(folder, data, 20);
  const ReferenceOptimum reference = reference_optimum(loss, dense(data, 1, -1));
  std::vector<Solution> solutions;
  const Summary summary = solve(problem_for(store, loss, 1), {.method = method, .tolerance = 1e-3}, solutions);
  const Certificate& certificate = summary.certificates[0];
  EXPECT_TRUE(summary.certified());
  EXPECT_LE(certificate.dual, reference.primal * (1 + 1e-9)) << loss;
  EXPECT_GE(certificate.primal, reference.dual * (1 - 1e-9)) << loss;
  EXPECT_NEAR(certificate.primal, primal_at(loss, dense(data, 1, -1), solutions[0].weights, 1), 1e-5);
}

TEST(Average, IsCertifiedByItsDualsDividedByTheNumberOfBlocks) {
  for (const char* loss : {"hinge", "squared-hinge", "logistic"}) expect_true_certificate(Average{}, loss);
}

TEST(Average, OfOneBlockIsThatBlocksModel) {
  const Folder folder;
  const Data data = make_data(60, 4, 5);
  const Store store = write_store(folder, data, 60);
  const ReferenceOptimum reference = reference_optimum("hinge", dense(data, 0.1, -1));
  std::vector<Solution> solutions;
  const Summary summary = solve(problem_for(store, "hinge", 0.1), {.method = Average{}}, solutions);
  EXPECT_NEAR(summary.certificates[0].primal, reference.primal, 0.1 * reference.primal);
}

TEST(Subsample, IsCertifiedForTheWholeProblem) {
  for (const char* loss : {"hinge", "squared-hinge", "logistic"})
    for (const double share : {0.3, 1.0}) expect_true_certificate(Subsample{.share = share}, loss);
}

TEST(Subsample, OfEverythingIsTheOptimum) {
  const Folder folder;
  const Data data = make_data(80, 5, 6);
  const Store store = write_store(folder, data, 10);
  std::vector<Solution> solutions;
  const Summary summary = solve(problem_for(store, "hinge", 1),
                                {.method = Subsample{.share = 1}, .tolerance = 1e-4, .max_passes = 5000}, solutions);
  EXPECT_LE(summary.certificates[0].gap(), 1e-3);
}

}  // namespace
}  // namespace linblock
