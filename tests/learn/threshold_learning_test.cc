// train --threshold: the threshold is chosen on rows that the model has not seen, and is part of the model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "learn/evaluate.h"
#include "learn/model_weights.h"
#include "learn/request.h"
#include "support/learning.h"
#include "support/models.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

constexpr uint64_t kMemory = uint64_t{64} << 20;

class ThresholdLearning : public testing::Test {
 protected:
  // One in twenty rows is positive, and hard to tell.
  static std::vector<OwnedRow> rare_rows(size_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<OwnedRow> rows(count);
    for (size_t i = 0; i < count; ++i) {
      rows[i].id = i;
      rows[i].label = i % 20 == 0 ? 1 : -1;
      rows[i].index = {1, 2, 3};
      rows[i].value = {normal(random) + (rows[i].label == 1 ? 1.5F : 0.0F), normal(random), 1};
    }
    return rows;
  }
  void pack(const std::vector<OwnedRow>& rows) {
    std::filesystem::remove_all(folder_ / "store");
    pack_rows(rows, folder_ / "store", small_options());
    options_.inputs = {folder_ / "store"};
  }
  Model trained(const Context& context = {}) {
    report_ = train(options_, context, {}, false);
    save_trained(folder_ / "model", options_, report_, 1);
    return load_model(folder_ / "model");
  }
  Evaluation evaluated(const Model& model, const std::vector<OwnedRow>& rows) {
    write_file(folder_ / "test.svm", text_of(rows));
    return evaluate(model, {folder_ / "test.svm"}, kMemory);
  }

  const Folder folder_;
  TrainOptions options_{.pack = small_options(), .loss = Logistic{}, .cost = 1, .threshold = Metric::f1};
  TrainReport report_;
};

TEST_F(ThresholdLearning, RaisesF1OfRarePositives) {
  pack(rare_rows(4000, 1));
  const std::vector<OwnedRow> test = rare_rows(4000, 2);
  for (const char* loss : {"logistic", "hinge", "squared-hinge", "huber-hinge"}) {
    options_.loss = loss_of(loss);
    Model model = trained();
    ASSERT_TRUE(model.threshold.has_value());
    ASSERT_TRUE(report_.threshold.has_value());
    EXPECT_EQ(*model.threshold, report_.threshold->threshold);
    EXPECT_GT(report_.threshold->value, report_.threshold->at_zero);
    const double with = evaluated(model, test).classes[1].f1();
    model.threshold.reset();
    const double without = evaluated(model, test).classes[1].f1();
    EXPECT_GT(with, without + 0.05) << loss;
  }
}

// The reference: each held-out row scored by the model that was saved.
TEST_F(ThresholdLearning, IsTheBestOfThoseOnTheHeldOutRows) {
  const std::vector<OwnedRow> rows = rare_rows(2000, 3);
  pack(rows);
  for (const Metric metric : {Metric::accuracy, Metric::balanced_accuracy, Metric::f1}) {
    options_.threshold = metric;
    options_.hold_out = 0.3;
    const Model model = trained();
    const HeldOut held{.seed = options_.solve.seed, .parts = 1'000'000, .first = 0, .last = 300'000};
    std::vector<double> decisions;
    std::vector<int32_t> labels;
    for (const OwnedRow& row : rows) {
      if (!held.holds(row.id)) continue;
      std::vector<double> decision(1);
      uint64_t unknown = 0;
      model.decide(row.index, row.value, decision, unknown);
      decisions.push_back(decision[0]);
      labels.push_back(row.label);
    }
    EXPECT_EQ(report_.threshold->rows, labels.size());
    EXPECT_NEAR(static_cast<double>(labels.size()), 600, 80);
    const auto value_at = [&](double threshold) {
      ClassCounts counts;
      for (size_t i = 0; i < labels.size(); ++i) counts.add(labels[i], decisions[i] > threshold ? 1 : -1);
      return *counts.value(metric, 1);
    };
    EXPECT_NEAR(value_at(*model.threshold), report_.threshold->value, 1e-12);
    EXPECT_NEAR(value_at(0), report_.threshold->at_zero, 1e-12);
    for (const double threshold : decisions) EXPECT_LE(value_at(threshold), report_.threshold->value + 1e-12);
  }
}

TEST_F(ThresholdLearning, HeldOutRowsAreNotLearnedFromAndTheShareIsThatOfCalibration) {
  pack(rare_rows(1000, 4));
  options_.loss = Hinge{};
  options_.calibrate = 0.25;
  const Model both = trained();
  EXPECT_EQ(both.calibration.size(), 1U);
  ASSERT_TRUE(both.threshold.has_value());
  options_.threshold.reset();
  const Model calibrated = trained();
  EXPECT_EQ(calibrated.weights, both.weights);
  EXPECT_EQ(calibrated.calibration[0].slope, both.calibration[0].slope);
  EXPECT_EQ(calibrated.threshold, std::nullopt);
  options_.threshold = Metric::f1;
  options_.calibrate = 0;
  options_.hold_out = 0.25;
  const Model alone = trained();
  EXPECT_EQ(alone.weights, both.weights) << "the same rows are held out";
  EXPECT_EQ(alone.threshold, both.threshold);
  EXPECT_NE(alone.calibration.size(), 1U);
}

TEST_F(ThresholdLearning, DoesNotChangeProbabilities) {
  pack(rare_rows(2000, 5));
  Model model = trained();
  ASSERT_NE(*model.threshold, 0);
  const std::vector<OwnedRow> test = rare_rows(500, 6);
  const Evaluation with = evaluated(model, test);
  model.threshold.reset();
  const Evaluation without = evaluated(model, test);
  EXPECT_EQ(with.log_loss, without.log_loss);
  EXPECT_EQ(with.auc, without.auc);
  EXPECT_NE(with.correct, without.correct);
}

TEST_F(ThresholdLearning, WorksWhereEachOfTwoClassesHasAColumnOrBothShareOne) {
  pack(rare_rows(2000, 7));
  const std::vector<OwnedRow> test = rare_rows(2000, 8);
  options_.loss = Hinge{};
  options_.solve.method = CrammerSinger{};
  Model model = trained();
  ASSERT_EQ(model.columns(), 2U);
  const double with = evaluated(model, test).classes[1].f1();
  model.threshold.reset();
  EXPECT_GT(with, evaluated(model, test).classes[1].f1());
  options_.loss = Logistic{};
  options_.solve.method = Softmax{};
  Model softmax = trained();
  ASSERT_EQ(softmax.columns(), 1U);
  const double with_softmax = evaluated(softmax, test).classes[1].f1();
  EXPECT_NEAR(with_softmax, with, 0.1);
  softmax.threshold.reset();
  EXPECT_GT(with_softmax, evaluated(softmax, test).classes[1].f1());
}

TEST_F(ThresholdLearning, IsUsedByTheTestAtTheEnd) {
  pack(rare_rows(2000, 9));
  options_.threshold = Metric::balanced_accuracy;
  write_file(folder_ / "rows.svm", text_of(rare_rows(600, 10)));
  options_.test = {folder_ / "rows.svm"};
  Context context;
  context.checkpoint.path = folder_ / "STATE";
  const Model model = trained(context);
  ASSERT_NE(*model.threshold, 0);
  EXPECT_EQ(report_.test->correct, evaluate(model, options_.test, kMemory).correct);
}

TEST_F(ThresholdLearning, ThatIsResumedIsTheSame) {
  pack(rare_rows(600, 11));
  options_.loss = Hinge{};
  options_.solve = {.method = Dual{.inner = 1}, .tolerance = 1e-3, .max_passes = 5000};
  const Model whole = trained();
  Context context;
  context.checkpoint.path = folder_ / "STATE";
  Model found;
  EXPECT_GT(with_stops(context, {StopAt::block, StopAt::reading},
                       [&](const Context& life, const TrainObserver& observer) {
                         found = train(options_, life, observer, false).model;
                       }),
            0);
  EXPECT_EQ(found.threshold, whole.threshold);
  EXPECT_EQ(found.weights, whole.weights);
}

TEST_F(ThresholdLearning, OfAnotherMetricIsAnotherRun) {
  pack(rare_rows(600, 12));
  Context context;
  context.checkpoint.path = folder_ / "STATE";
  const std::atomic<bool> stop = true;
  Context stopped = context;
  stopped.stop = &stop;
  options_.solve.method = Dual{.inner = 1};
  expect_error(ErrorKind::interrupted, {}, [&] { train(options_, stopped, {}, false); });
  options_.threshold = Metric::accuracy;
  expect_error(ErrorKind::usage, {"threshold: f1 then, accuracy now"}, [&] { train(options_, context, {}, false); });
  options_.threshold.reset();
  expect_error(ErrorKind::usage, {"threshold: f1 then, not there now"}, [&] { train(options_, context, {}, false); });
}

TEST_F(ThresholdLearning, IsRefusedWhereItCannotBe) {
  pack(class_rows(100, 4, 3, 13));
  expect_error(ErrorKind::usage, {"threshold is for two classes, and there are 3 labels", "choose one label"},
               [&] { train(options_, {}, {}, false); });
  options_.positive = 2;
  EXPECT_TRUE(trained().threshold.has_value());
  std::vector<OwnedRow> rows = rare_rows(100, 14);
  for (OwnedRow& row : rows) row.label = row.id == 50 ? 1 : -1;
  options_.positive.reset();
  options_.hold_out = 0.01;
  pack(rows);
  expect_error(ErrorKind::input, {"and not of both classes", "hold out more rows"},
               [&] { train(options_, {}, {}, false); });
}

TEST(ThresholdOptions, ThatWouldBeIgnoredAreRefused) {
  LearnRequest request;
  request.options.hold_out = 0.1;
  expect_error(ErrorKind::usage, {"hold_out is for a threshold"}, [&] { resolve(request); });
  request.options.threshold = Metric::f1;
  request.options.calibrate = 0.1;
  request.loss = "hinge";
  expect_error(ErrorKind::usage, {"calibrate and hold_out both say"}, [&] { resolve(request); });
  EXPECT_EQ(CountedMetric::read("auc"), std::nullopt) << "no threshold changes it";
  EXPECT_EQ(CountedMetric::read("log-loss"), std::nullopt);
  EXPECT_EQ(CountedMetric::read("balanced-accuracy")->metric, Metric::balanced_accuracy);
}

class ThresholdInAModel : public testing::Test {
 protected:
  static Model model() {
    Model model = two_class_model({0.5F, -2, 1});
    model.threshold = -0.123456789012345678;
    return model;
  }
  const Folder folder_;
  const std::string path_ = folder_ / "model";
};

TEST_F(ThresholdInAModel, ComesBackWithTheSameBitsInEitherForm) {
  for (const ModelFormat form : {ModelFormat::text, ModelFormat::binary}) {
    save_model(path_, model(), kPlainMetadata, 1, form);
    EXPECT_EQ(load_model(path_).threshold, model().threshold);
    const ModelFormat other = form == ModelFormat::text ? ModelFormat::binary : ModelFormat::text;
    convert_model(path_, folder_ / "converted", other, 1);
    EXPECT_EQ(load_model(folder_ / "converted").threshold, model().threshold);
  }
}

TEST_F(ThresholdInAModel, DecidesTheLabelAndNothingElse) {
  const std::vector<double> below = {-0.2};
  const std::vector<double> between = {-0.1};
  EXPECT_EQ(model().label_of(below), -1);
  EXPECT_EQ(model().label_of(between), 1);
  EXPECT_EQ(two_class_model({1}).label_of(between), -1);
  const std::vector<double> exactly = {*model().threshold};
  EXPECT_EQ(model().label_of(exactly), -1) << "above it, not at it";
}

TEST_F(ThresholdInAModel, OfTwoColumnsIsThatOfTheirDifference) {
  Model two = model();
  two.solver_type = "MCSVM_CS";
  two.threshold = 0.5;
  ASSERT_EQ(two.columns(), 2U);
  EXPECT_EQ(two.label_of(std::vector<double>{1, 0.4}), 1);
  EXPECT_EQ(two.label_of(std::vector<double>{1, 0.6}), -1);
}

TEST_F(ThresholdInAModel, ThatIsDamagedIsRefused) {
  for (const ModelFormat form : {ModelFormat::text, ModelFormat::binary}) {
    save_model(path_, model(), kPlainMetadata, 1, form);
    const std::string whole = read_file(path_);
    const size_t begin = whole.find("\"threshold\":");
    ASSERT_NE(begin, std::string::npos);
    for (size_t at = begin; at < whole.find_first_of(",}", begin); ++at) {
      std::string changed = whole;
      changed[at] = changed[at] == '7' ? '8' : '7';
      write_file(path_, changed);
      EXPECT_THAT([&] { load_model(path_); }, fails_with(ErrorKind::damaged, "")) << at;
    }
  }
}

TEST_F(ThresholdInAModel, OfSeveralClassesOrNoNumberIsRefused) {
  Model three = model();
  three.labels = {1, 2, 3};
  three.weights.assign(9, 1);
  save_model(path_, three, kPlainMetadata, 1);
  EXPECT_THAT([&] { load_model(path_); }, fails_with(ErrorKind::damaged, "a decision threshold that cannot be"));
}

TEST_F(ThresholdInAModel, IsComparedByDiff) {
  save_model(path_, two_class_model({0.5F, -2, 1}), kPlainMetadata, 1);
  save_model(folder_ / "newer", model(), kPlainMetadata, 1);
  const std::vector<ColumnDifference> columns = difference_of(path_, folder_ / "newer", 5);
  ASSERT_EQ(columns.size(), 1U);
  EXPECT_EQ(columns[0].threshold_before, 0);
  EXPECT_EQ(columns[0].threshold_after, *model().threshold);
  write_file(folder_ / "rows.svm", "1 2:0.05\n-1 2:0.1\n");  // decisions -0.1 and -0.2
  EXPECT_EQ(label_changes(path_, folder_ / "newer", {folder_ / "rows.svm"}, kMemory).changed, 1U);
}

}  // namespace
}  // namespace linblock
