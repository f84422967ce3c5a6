// train --calibrate: probabilities from rows that were held out.
#include <gtest/gtest.h>

#include "base/json.h"
#include "learn/evaluate.h"
#include "support/learning.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

constexpr uint64_t kMemory = uint64_t{64} << 20;

class CalibratedTraining : public testing::Test {
 protected:
  void pack(const std::vector<OwnedRow>& rows, const std::string& name = "store") {
    std::filesystem::remove_all(folder_ / name);
    pack_rows(rows, folder_ / name, small_options());
    options_.inputs = {folder_ / name};
  }
  Model trained(const Context& context = {}) {
    TrainReport report = train(options_, context, {}, false);
    groups_ = report.groups;
    save_trained(folder_ / "model", options_, report, 1);
    return load_model(folder_ / "model");
  }
  Evaluation evaluated(const Model& model, const std::vector<OwnedRow>& rows) {
    write_file(folder_ / "test.svm", text_of(rows));
    return evaluate(model, {folder_ / "test.svm"}, kMemory);
  }
  // Of always saying how frequent each label is: what knows nothing of the features.
  static double constant_log_loss(const std::vector<OwnedRow>& rows) {
    std::map<int32_t, double> labels;
    for (const OwnedRow& row : rows) labels[row.label] += 1;
    double loss = 0;
    for (const auto& [label, count] : labels)
      loss -= count * std::log(count / static_cast<double>(rows.size())) / static_cast<double>(rows.size());
    return loss;
  }

  const Folder folder_;
  TrainOptions options_{.pack = small_options(), .loss = Hinge{}, .cost = 0.1, .calibrate = 0.25};
  size_t groups_ = 0;
};

TEST_F(CalibratedTraining, ProbabilitiesAreBetterThanAConstant) {
  for (const int32_t classes : {2, 4}) {
    const std::vector<OwnedRow> test = class_rows(500, 8, classes, 2);
    pack(class_rows(2000, 8, classes, 1));
    for (const char* loss : {"hinge", "squared-hinge"}) {
      options_.loss = loss_of(loss);
      const Model model = trained();
      ASSERT_TRUE(model.has_probability());
      EXPECT_EQ(model.calibration.size(), model.columns());
      const Evaluation result = evaluated(model, test);
      ASSERT_TRUE(result.log_loss.has_value());
      EXPECT_LT(*result.log_loss, 0.9 * constant_log_loss(test)) << classes << " classes, " << loss;
    }
  }
}

TEST_F(CalibratedTraining, AHigherDecisionIsMoreLikely) {
  for (const int32_t classes : {2, 3}) {
    pack(class_rows(1500, 8, classes, 3));
    const Model model = trained();
    for (const Sigmoid& sigmoid : model.calibration) {
      double last = 0;
      for (double decision = -3; decision <= 3; decision += 0.25) {
        EXPECT_GT(sigmoid.probability(decision), last);
        last = sigmoid.probability(decision);
      }
    }
  }
}

TEST_F(CalibratedTraining, SaysHowOftenItIsRight) {
  const std::vector<OwnedRow> test = two_classes(4000, 8, 5);
  pack(two_classes(4000, 8, 4));
  const Model model = trained();
  // Among rows that are said to be positive with about the same probability, about that share is.
  std::vector<std::pair<double, double>> tenths(10);  // positives, rows
  write_file(folder_ / "test.svm", text_of(test));
  std::vector<double> shares(2);
  apply_model(model, {folder_ / "test.svm"}, kMemory, [&](const Decision& decision) {
    model.probabilities(decision.decisions, shares);
    auto& tenth = tenths[std::min<size_t>(9, static_cast<size_t>(shares[0] * 10))];
    tenth.first += *decision.label == model.labels[0] ? 1 : 0;
    tenth.second += 1;
  });
  for (size_t i = 0; i < tenths.size(); ++i) {
    if (tenths[i].second < 100) continue;
    EXPECT_NEAR(tenths[i].first / tenths[i].second, 0.1 * static_cast<double>(i) + 0.05, 0.15) << i;
  }
}

TEST_F(CalibratedTraining, RowsThatAreHeldOutDoNotInfluenceTheWeights) {
  std::vector<OwnedRow> rows = two_classes(600, 8, 6);
  pack(rows);
  const Model model = trained();
  const auto last = static_cast<uint32_t>(std::ceil(options_.calibrate * 1e6));
  const HeldOut held{.seed = options_.solve.seed, .parts = 1'000'000, .first = 0, .last = last};
  size_t changed = 0;
  for (OwnedRow& row : rows) {
    if (!held.holds(row.id)) continue;
    row.label = -row.label;
    ++changed;
  }
  EXPECT_NEAR(static_cast<double>(changed), 150, 40);
  pack(rows);
  const Model other = trained();
  EXPECT_EQ(model.weights, other.weights);
  EXPECT_LT(model.calibration[0].slope, 0);
  EXPECT_GT(other.calibration[0].slope, 0) << "all of its labels are the wrong way round";
}

TEST_F(CalibratedTraining, NorWhereAWarmStartBroughtTheirDuals) {
  const std::vector<OwnedRow> rows = two_classes(600, 8, 7);
  pack(rows);
  options_.solve.tolerance = 1e-6;
  options_.solve.max_passes = 20000;
  const Model cold = trained();
  options_.calibrate = 0;
  options_.keep_state = folder_ / "all.state";
  train(options_, {}, {}, false);
  options_.keep_state.clear();
  options_.calibrate = 0.25;
  options_.warm = folder_ / "all";
  const Model warm = trained();
  for (size_t i = 0; i < cold.weights.size(); ++i) EXPECT_NEAR(warm.weights[i], cold.weights[i], 2e-3);
}

TEST_F(CalibratedTraining, GroupsInLittleMemoryGiveTheSameProbabilities) {
  std::vector<OwnedRow> rows = class_rows(600, 8, 4, 8);
  rows[0].index.push_back(300'000);
  rows[0].value.push_back(1);
  pack(rows);
  options_.solve.tolerance = 1e-6;
  options_.solve.max_passes = 20000;
  const Model together = trained();
  EXPECT_EQ(groups_, 1U);
  const Store store = Store::open(folder_ / "store");
  const Problem problem = make_problem(store, options_, choose_classes(store.info(), options_));
  Context context;
  context.checkpoint.path = folder_ / "STATE";
  context.memory_bytes = memory_for_tasks(problem, options_.solve, 2, context.checkpoint.path, 5400);
  const Model apart = trained(context);
  EXPECT_GT(groups_, 1U);
  ASSERT_EQ(apart.calibration.size(), 4U);
  for (size_t c = 0; c < 4; ++c) {
    EXPECT_NEAR(apart.calibration[c].slope, together.calibration[c].slope, 0.02);
    EXPECT_NEAR(apart.calibration[c].offset, together.calibration[c].offset, 0.02);
  }
}

TEST_F(CalibratedTraining, StoppedAnywhereEndsWithTheSameProbabilities) {
  pack(class_rows(400, 8, 3, 9));
  options_.solve = {.method = Dual{.inner = 1}, .tolerance = 1e-3, .chunks_per_block = 1};
  const TrainReport whole = train(options_, {}, {}, false);
  Context context;
  context.checkpoint.path = folder_ / "STATE";
  TrainReport result;
  const int stops = with_stops(
      context, {StopAt::block, StopAt::reading, StopAt::pass},
      [&](const Context& life, const TrainObserver& observer) { result = train(options_, life, observer, false); });
  EXPECT_GE(stops, 3);
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(result.model.calibration[c].slope, whole.model.calibration[c].slope);
    EXPECT_EQ(result.model.calibration[c].offset, whole.model.calibration[c].offset);
  }
}

TEST_F(CalibratedTraining, AShareThatHoldsOutNoRowIsRefused) {
  pack(two_classes(20, 4, 10));
  options_.calibrate = 1e-6;
  EXPECT_THAT([&] { trained(); }, fails_with(ErrorKind::input, "no row is held out"));
}

TEST_F(CalibratedTraining, AModelOfSeveralClassesSaysWhatIsCertifiedOfEach) {
  pack(class_rows(300, 6, 3, 11));
  TrainReport report = train(options_, {}, {}, false);
  const auto json = Json::parse(describe_model(options_, report));
  ASSERT_EQ(json.at("tasks").size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(json.at("tasks").items()[i].at("label"), report.model.labels[i]);
    EXPECT_LE(json.at("tasks").items()[i].at("certified_gap").number(), 0.01);
    EXPECT_EQ(json.at("tasks").items()[i].at("primal"), report.summary.certificates[i].primal);
  }
}

}  // namespace
}  // namespace linblock
