// Models of softmax: probabilities of all classes together, two classes as one column, and what a later run starts
// from.
#include <gtest/gtest.h>

#include <cmath>

#include "learn/cross_validate.h"
#include "learn/evaluate.h"
#include "learn/start_weights.h"
#include "learn/train.h"
#include "support/errors.h"
#include "support/learning.h"
#include "support/memory_folder.h"
#include "support/models.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

class SoftmaxModels : public testing::TestWithParam<bool> {
 protected:
  TrainOptions options_of(int32_t classes, const std::string& name) {
    pack_rows(class_rows(200, 8, classes, 3), folder_ / name, small_options());
    TrainOptions options;
    options.inputs = {folder_ / name};
    options.loss = Logistic{};
    options.bias = 1;
    options.free_bias = GetParam();
    options.solve = {.method = Softmax{}, .tolerance = 1e-6};
    return options;
  }
  Model saved(const TrainOptions& options, TrainReport& report) {
    save_trained(folder_ / "model", options, report, 1);
    return load_model(folder_ / "model");
  }

  const MemoryFolder folder_;
};

TEST_P(SoftmaxModels, AddUpToOneAndAreTheDistributionThatWasFitted) {
  const TrainOptions options = options_of(4, "four");
  TrainReport report = train(options, {}, {}, false, {});
  const Model model = saved(options, report);
  EXPECT_EQ(model.solver_type, "L2R_LR");
  EXPECT_TRUE(model.softmax);
  EXPECT_EQ(model.columns(), 4U);
  double losses = 0;
  double rows = 0;
  apply_model(model, options.inputs, uint64_t{1} << 30, [&](const Decision& decision) {
    std::vector<double> shares(4);
    model.probabilities(decision.decisions, shares);
    double total = 0;
    for (const double score : decision.decisions) total += std::exp(score);
    for (size_t c = 0; c < 4; ++c) EXPECT_NEAR(shares[c], std::exp(decision.decisions[c]) / total, 1e-12);
    losses -= std::log(shares[static_cast<size_t>(*decision.label) - 1]);
    ++rows;
  });
  double w2 = 0;
  for (size_t i = 0; i < model.weights.size() - (GetParam() ? 4 : 0); ++i)
    w2 += double{model.weights[i]} * double{model.weights[i]};
  const double primal = report.summary.certificates[0].primal;
  EXPECT_NEAR(0.5 * w2 + losses, primal, 1e-9 * primal);
  EXPECT_NEAR(*evaluate(model, options.inputs, uint64_t{1} << 30).log_loss, losses / rows, 1e-12);
}

TEST_P(SoftmaxModels, OfTwoClassesAreOneColumn) {
  const TrainOptions options = options_of(2, "two");
  TrainReport report = train(options, {}, {}, false, {});
  const Model model = saved(options, report);
  EXPECT_EQ(model.columns(), 1U);
  EXPECT_EQ(model.labels, (std::vector<int32_t>{1, 2}));
  EXPECT_FALSE(model.softmax) << "the logistic function of the one decision is the same";
  double losses = 0;
  apply_model(model, options.inputs, uint64_t{1} << 30, [&](const Decision& decision) {
    std::vector<double> shares(2);
    model.probabilities(decision.decisions, shares);
    losses -= std::log(shares[static_cast<size_t>(*decision.label) - 1]);
  });
  // The two columns were a half of it and its opposite.
  double w2 = 0;
  for (size_t i = 0; i < model.weights.size() - (GetParam() ? 1 : 0); ++i)
    w2 += 0.5 * double{model.weights[i]} * double{model.weights[i]};
  const double primal = report.summary.certificates[0].primal;
  EXPECT_NEAR(0.5 * w2 + losses, primal, 1e-6 * primal);
}

TEST_P(SoftmaxModels, AreAStartForAnotherTraining) {
  for (const int32_t classes : {2, 3}) {
    TrainOptions options = options_of(classes, "warm" + std::to_string(classes));
    TrainReport report = train(options, {}, {}, false, {});
    EXPECT_GT(report.summary.passes, 5);
    saved(options, report);
    options.warm = folder_ / "model";
    options.solve.tolerance = 1e-5;
    const TrainReport again = train(options, {}, {}, false, {});
    EXPECT_TRUE(again.summary.converged());
    EXPECT_LE(again.summary.passes, 2);
  }
}

TEST_P(SoftmaxModels, KeepWhichKindTheyAre) {
  const TrainOptions options = options_of(3, "other");
  TrainReport report = train(options, {}, {}, false, {});
  report.model.softmax = false;
  save_trained(folder_ / "model", options, report, 1);
  EXPECT_FALSE(load_model(folder_ / "model").softmax);
  Model model = two_class_model({1, 2, 3, 4, 5, 6}, -1, "L2R_LR");
  model.labels = {1, 2, 3};
  model.features = 2;
  std::vector<double> together(3);
  std::vector<double> apart(3);
  model.probabilities(std::vector<double>{1, 2, 3}, apart);
  model.softmax = true;
  model.probabilities(std::vector<double>{1, 2, 3}, together);
  EXPECT_GT(together[2], apart[2]);
}

INSTANTIATE_TEST_SUITE_P(Bias, SoftmaxModels, testing::Bool(),
                         [](const auto& bias) { return bias.param ? "free" : "penalized"; });

}  // namespace
}  // namespace linblock
