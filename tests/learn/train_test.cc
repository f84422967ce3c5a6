// From text to a model: when text is packed again, which labels count, what a weight means.
#include "learn/train.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "learn/evaluate.h"
#include "support/errors.h"
#include "support/packing.h"
#include "support/small_problems.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

class Train : public testing::Test {
 protected:
  TrainOptions options_for(const std::string& text) {
    write_file(input_, text);
    TrainOptions options;
    options.inputs = {input_};
    options.pack = small_options();
    options.solve = {.tolerance = 1e-6, .max_passes = 20000};
    return options;
  }
  TrainReport trained(const TrainOptions& options, const Context& context = {}) {
    said_.clear();
    TrainObserver observer;
    observer.say = [&](const std::string& sentence) { said_ += sentence + "\n"; };
    return train(options, context, observer, false);
  }
  double primal(const TrainOptions& options) { return trained(options).summary.certificates.at(0).primal; }

  const Folder folder_;
  const std::string input_ = folder_ / "data.svm";
  std::string said_;
};

std::string some_text(uint32_t seed = 1) { return text_of(make_data(60, 4, seed).rows); }

TEST_F(Train, PacksTextBesideItAndUsesThatStoreAgain) {
  const TrainOptions options = options_for(some_text());
  const TrainReport first = trained(options);
  EXPECT_TRUE(first.packed);
  EXPECT_EQ(first.store, input_ + ".linblock");
  EXPECT_EQ(first.info.rows, 60U);
  const TrainReport second = trained(options);
  EXPECT_FALSE(second.packed);
  EXPECT_TRUE(contains(said_, "made from this text before")) << said_;
  EXPECT_EQ(second.model.weights, first.model.weights);
}

TEST_F(Train, PacksAgainWhenTheTextHasAnotherSize) {
  TrainOptions options = options_for(some_text());
  trained(options);
  options = options_for(some_text() + "1 1:1\n");
  const TrainReport again = trained(options);
  EXPECT_TRUE(again.packed);
  EXPECT_EQ(again.info.rows, 61U);
  EXPECT_TRUE(contains(said_, "packing anew")) << said_;
}

TEST_F(Train, PacksAgainWhenTheTextIsOfAnotherTime) {
  const TrainOptions options = options_for(some_text());
  trained(options);
  const auto time = std::filesystem::last_write_time(input_);
  std::filesystem::last_write_time(input_, time + std::chrono::seconds(1));
  EXPECT_TRUE(trained(options).packed);
  EXPECT_FALSE(trained(options).packed);
}

TEST_F(Train, PacksAgainWhenAnOptionOfPackingHasChanged) {
  const TrainOptions same = options_for(some_text());
  const std::vector<std::function<void(PackOptions&)>> changes = {
      [](PackOptions& pack) { pack.normalize = true; }, [](PackOptions& pack) { pack.seed = 2; },
      [](PackOptions& pack) { pack.codec = "lz4"; },    [](PackOptions& pack) { pack.shuffle = false; },
      [](PackOptions& pack) { pack.index_base = 0; },   [](PackOptions& pack) { pack.chunk_bytes = 8192; }};
  for (size_t i = 0; i < changes.size(); ++i) {
    trained(same);
    TrainOptions other = same;
    changes[i](other.pack);
    EXPECT_TRUE(trained(other).packed) << "change " << i;
    EXPECT_FALSE(trained(other).packed) << "change " << i;
  }
}

TEST_F(Train, DoesNotPackAgainForWhatDoesNotChangeTheStore) {
  TrainOptions options = options_for(some_text());
  trained(options);
  options.cost = 3;
  options.pack.memory_bytes *= 2;
  EXPECT_FALSE(trained(options).packed);
}

TEST_F(Train, PutsTheStoreWhereItIsAskedTo) {
  TrainOptions options = options_for(some_text());
  options.store = folder_ / "elsewhere";
  EXPECT_EQ(trained(options).store, folder_ / "elsewhere");
  EXPECT_FALSE(std::filesystem::exists(input_ + ".linblock"));
}

TEST_F(Train, NeverReplacesAStoreThatItDidNotMake) {
  const TrainOptions options = options_for(some_text());
  pack_rows(sample_rows(20), input_ + ".linblock", small_options());
  EXPECT_THAT([&] { trained(options); }, fails_with(ErrorKind::usage, "was not made by train"));
  EXPECT_EQ(verified_rows(input_ + ".linblock").size(), 20U);
}

TEST_F(Train, TakesAStoreAsItIs) {
  pack_rows(make_data(40, 3, 2).rows, folder_ / "store", small_options());
  TrainOptions options;
  options.inputs = {folder_ / "store"};
  const TrainReport report = trained(options);
  EXPECT_FALSE(report.packed);
  EXPECT_EQ(report.store, folder_ / "store");
  EXPECT_EQ(report.info.rows, 40U);
}

TEST_F(Train, OneClassIsRefusedAsInput) {
  EXPECT_THAT([&] { trained(options_for("1 1:1\n1 2:1\n")); }, fails_with(ErrorKind::input, "two classes"));
  TrainOptions options = options_for("1 1:1\n1 2:1\n");
  options.positive = 1;
  EXPECT_THAT([&] { trained(options); }, fails_with(ErrorKind::input, "two classes"));
}

TEST_F(Train, OneOfManyClassesMayBeTrainedAlone) {
  TrainOptions options = options_for("1 1:1\n2 2:1\n3 3:1\n");
  options.positive = 7;
  EXPECT_THAT([&] { trained(options); }, fails_with(ErrorKind::input, "no row has this label"));
  options.positive = 2;
  const Model model = trained(options).model;
  EXPECT_EQ(model.labels[0], 2);
  EXPECT_TRUE(model.against_rest);
  EXPECT_EQ(model.own_label(3), model.own_label(1));
  EXPECT_GT(model.weights.at(1), 0);  // of the feature of label 2
  EXPECT_LT(model.weights.at(2), 0);
}

TEST_F(Train, TheOtherLabelIsNeverTheOneThatIsPositive) {
  for (const int32_t positive : {-1, 1, 5}) {
    TrainOptions options = options_for("-1 1:1\n1 2:1\n5 3:1\n");
    options.positive = positive;
    const Model model = trained(options).model;
    EXPECT_EQ(model.labels.at(0), positive);
    EXPECT_NE(model.labels.at(1), positive);
  }
}

TEST_F(Train, OfTwoLabelsTheLargerIsPositiveUnlessAskedOtherwise) {
  TrainOptions options = options_for("3 1:1\n8 2:1\n");
  EXPECT_EQ(trained(options).model.labels, (std::vector<int32_t>{8, 3}));
  options.positive = 3;
  const Model model = trained(options).model;
  EXPECT_EQ(model.labels, (std::vector<int32_t>{3, 8}));
  EXPECT_FALSE(model.against_rest);
}

TEST_F(Train, AClassWeightIsAsManyCopiesOfTheRows) {
  const std::vector<OwnedRow> rows = make_data(60, 4, 3).rows;
  std::vector<OwnedRow> copied = rows;
  for (const OwnedRow& row : rows)
    if (row.label == 1) copied.insert(copied.end(), 2, row);
  for (const char* loss : {"hinge", "squared-hinge", "logistic", "huber-hinge"}) {
    TrainOptions options = options_for(text_of(rows));
    options.loss = loss_of(loss);
    options.class_weight.factors = {{1, 3.0}};
    const double weighted = primal(options);
    options = options_for(text_of(copied));
    options.loss = loss_of(loss);
    EXPECT_NEAR(weighted, primal(options), 1e-6 * weighted) << loss;
  }
}

TEST_F(Train, BalancedWeightsMakeTheClassesCountTheSame) {
  std::vector<OwnedRow> rows = make_data(80, 4, 4).rows;
  for (size_t i = 0; i < rows.size(); ++i) rows[i].label = i % 5 == 0 ? 1 : -1;
  TrainOptions options = options_for(text_of(rows));
  options.class_weight.balanced = true;
  const double balanced = primal(options);
  options.class_weight.balanced = false;
  options.class_weight.factors = {{1, 80.0 / (2 * 16)}, {-1, 80.0 / (2 * 64)}};
  EXPECT_NEAR(balanced, primal(options), 1e-6 * balanced);
}

TEST_F(Train, AClassWeightOfALabelThatIsNotThereIsRefused) {
  TrainOptions options = options_for(some_text());
  options.class_weight.factors = {{7, 2.0}};
  EXPECT_THAT([&] { trained(options); }, fails_with(ErrorKind::input, "no row has this label"));
}

TEST_F(Train, ACostThatIsNotAPositiveNumberIsRefused) {
  TrainOptions options = options_for(some_text());
  for (const double cost : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    options.cost = cost;
    EXPECT_THAT([&] { trained(options); }, fails_with(ErrorKind::usage, "cost")) << cost;
  }
}

TEST_F(Train, TestDataThatCannotBeReadIsRefusedBeforeTheTextIsPacked) {
  TrainOptions options = options_for(some_text());
  std::filesystem::create_directory(folder_ / "empty");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {folder_ / "absent", "there is no"}, {folder_ / "empty", "not a store"}, {"-", "read again after each pass"}};
  for (const auto& [test, words] : cases) {
    options.test = {test};
    const std::optional<Error> error = error_of([&] { trained(options); });
    ASSERT_TRUE(error.has_value()) << test;
    EXPECT_TRUE(contains(error->what(), words)) << error->what();
    EXPECT_FALSE(std::filesystem::exists(input_ + ".linblock")) << test;
  }
}

TEST_F(Train, ADryRunMakesThePlanAndNothingElse) {
  int plans = 0;
  TrainObserver observer;
  observer.plan = [&](const Plan&) { ++plans; };
  observer.pass = [&](const PassReport&, std::optional<double>) { ADD_FAILURE() << "trained"; };
  const TrainReport report = train(options_for(some_text()), {}, observer, true);
  EXPECT_EQ(plans, 1);
  EXPECT_GT(report.summary.plan.bytes("weights"), 0U);
  EXPECT_TRUE(report.model.weights.empty());
}

TEST_F(Train, SaysInTheJsonWhatWasAskedForAndWhatIsCertified) {
  TrainOptions options = options_for(some_text());
  options.loss = Logistic{};
  options.cost = 0.25;
  const TrainReport report = trained(options);
  const auto json = Json::parse(describe_model(options, report));
  EXPECT_EQ(json.at("loss"), "logistic");
  EXPECT_EQ(json.at("cost"), 0.25);
  EXPECT_EQ(json.at("converged"), true);
  EXPECT_EQ(json.at("primal"), report.summary.certificates[0].primal);
  EXPECT_LE(json.at("certified_gap").number(), 1e-6);
  EXPECT_EQ(json.at("rows"), 60);
  EXPECT_EQ(report.model.solver_type, "L2R_LR_DUAL");
}

TEST_F(Train, AModelPredictsItsOwnSeparableRows) {
  const TrainOptions options = options_for("1 1:1 900:2\n-1 2:1 900:-2\n1 1:3\n-1 2:3\n");
  const TrainReport report = trained(options);
  EXPECT_EQ(evaluate(report.model, {input_}, uint64_t{64} << 20).accuracy(), 1);
}

}  // namespace
}  // namespace linblock
