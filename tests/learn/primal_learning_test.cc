// Folds, costs, groups and starts with the methods that minimize over the weights alone.
#include <gtest/gtest.h>

#include "learn/start_weights.h"
#include "learn/tune.h"
#include "store/columns/columns.h"
#include "support/learning.h"
#include "support/memory_folder.h"
#include "support/models.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

const std::vector<AnyMethod> kPrimal = {Newton{}, Primal{}, Primal{.order = ColumnOrder::cyclic}, Cmls{}};

class PrimalLearning : public testing::Test {
 protected:
  void pack(const std::vector<OwnedRow>& rows) {
    std::filesystem::remove_all(store_);
    pack_rows(rows, store_, small_options());
    options_.inputs = {store_};
  }

  const MemoryFolder folder_;
  const std::string store_ = folder_ / "store";
  TrainOptions options_{.pack = small_options(), .solve = {.tolerance = 1e-6, .max_passes = 20000}};
};

TEST_F(PrimalLearning, FoldsAreThoseOfTheDualMethod) {
  pack(class_rows(300, 8, 3, 1));
  const CrossValidation expected = cross_validate(options_, {.folds = 3}, {}, {});
  for (const AnyMethod& method : kPrimal) {
    options_.solve.method = method;
    const CrossValidation found = cross_validate(options_, {.folds = 3}, {.team = 2}, {});
    ASSERT_EQ(found.summary.certificates.size(), expected.summary.certificates.size());
    for (size_t i = 0; i < found.summary.certificates.size(); ++i)
      EXPECT_NEAR(found.summary.certificates[i].primal, expected.summary.certificates[i].primal,
                  3e-6 * expected.summary.certificates[i].primal)
          << name_of(method) << ", model " << i;
    EXPECT_NEAR(found.accuracy().mean, expected.accuracy().mean, 0.011) << name_of(method);
  }
}

TEST_F(PrimalLearning, FoldsAndCostsOfTheHingeByNewtonAreThoseOfTheDualMethod) {
  pack(class_rows(300, 8, 3, 1));
  options_.loss = loss_of("hinge");
  options_.solve.tolerance = 1e-5;
  const CrossValidation expected = cross_validate(options_, {.folds = 3}, {}, {});
  const auto tuned = [&] {
    return tune(options_, {{.folds = 3}, parse_costs("0.1:1:10")}, {}, {}, [](const TunedCost&) {});
  };
  const Tuning by_dual = tuned();
  options_.solve.method = Newton{};
  const CrossValidation found = cross_validate(options_, {.folds = 3}, {.team = 2}, {});
  ASSERT_EQ(found.summary.certificates.size(), expected.summary.certificates.size());
  for (size_t i = 0; i < found.summary.certificates.size(); ++i) {
    EXPECT_LE(found.summary.certificates[i].gap(), 1e-5) << "model " << i;
    EXPECT_NEAR(found.summary.certificates[i].primal, expected.summary.certificates[i].primal,
                3e-5 * expected.summary.certificates[i].primal)
        << "model " << i;
  }
  const Tuning by_newton = tuned();
  ASSERT_EQ(by_newton.costs.size(), by_dual.costs.size());
  for (size_t i = 0; i < by_dual.costs.size(); ++i)
    EXPECT_NEAR(by_newton.costs[i].accuracy, by_dual.costs[i].accuracy, 0.011);
}

TEST_F(PrimalLearning, FoldsThatAreStoppedAnywhereEndWithTheSameBits) {
  pack(class_rows(200, 6, 3, 2));
  options_.solve.tolerance = 1e-3;
  options_.solve.chunks_per_block = 1;
  for (const AnyMethod& method : {AnyMethod(Newton{}), AnyMethod(Primal{})}) {
    options_.solve.method = method;
    const CrossValidation whole = cross_validate(options_, {.folds = 3}, {}, {});
    Context context;
    context.checkpoint.path = folder_ / "STATE";
    CrossValidation found;
    const int stops = with_stops(context, {StopAt::block, StopAt::reading, StopAt::pass},
                                 [&](const Context& life, const TrainObserver& observer) {
                                   found = cross_validate(options_, {.folds = 3}, life, observer);
                                 });
    EXPECT_GE(stops, 2);
    EXPECT_EQ(found.accuracy().mean, whole.accuracy().mean);
    for (size_t i = 0; i < whole.summary.certificates.size(); ++i) {
      EXPECT_EQ(found.summary.certificates[i].primal, whole.summary.certificates[i].primal);
      EXPECT_EQ(found.summary.certificates[i].dual, whole.summary.certificates[i].dual);
    }
    std::filesystem::remove(folder_ / "STATE");
  }
}

TEST_F(PrimalLearning, CostsThatAreStoppedAnywhereEndWithTheSameBits) {
  const std::vector<double> range = parse_costs("0.01:1:10");
  pack(two_classes(200, 6, 3));
  options_.solve.tolerance = 1e-3;
  options_.solve.chunks_per_block = 1;
  for (const AnyMethod& method : {AnyMethod(Newton{}), AnyMethod(Primal{})}) {
    options_.solve.method = method;
    const auto tuned = [&](const Context& life, const TrainObserver& observer) {
      return tune(options_, {{.folds = 3}, range}, life, observer, [](const TunedCost&) {});
    };
    const Tuning whole = tuned({}, {});
    ASSERT_EQ(whole.start.size(), 1U);
    EXPECT_FALSE(whole.start[0].weights.empty());
    EXPECT_TRUE(whole.start[0].duals.empty());
    Context context;
    context.checkpoint.path = folder_ / "STATE";
    Tuning found;
    const int stops =
        with_stops(context, {StopAt::block, StopAt::reading, StopAt::pass},
                   [&](const Context& life, const TrainObserver& observer) { found = tuned(life, observer); });
    EXPECT_GE(stops, 3);
    ASSERT_EQ(found.costs.size(), whole.costs.size());
    for (size_t i = 0; i < whole.costs.size(); ++i) {
      EXPECT_EQ(found.costs[i].accuracy, whole.costs[i].accuracy);
      EXPECT_EQ(found.costs[i].passes, whole.costs[i].passes);
    }
    EXPECT_EQ(found.start[0].weights, whole.start[0].weights);
    std::filesystem::remove(folder_ / "STATE.stages");
  }
}

// Each cost begins with the weights of the one before, and the model of all rows with the mean of its folds.
TEST_F(PrimalLearning, TheModelOfAllRowsBeginsNearItsEnd) {
  pack(two_classes(600, 40, 4));
  options_.solve.method = Newton{};
  Tuning tuning = tune(options_, {{.folds = 5}, parse_costs("0.1:1:10")}, {}, {}, [](const TunedCost&) {});
  options_.cost = tuning.costs[tuning.best].cost;
  const TrainReport cold = train(options_, {}, {}, false);
  const TrainReport warm = train(options_, {}, {}, false, std::move(tuning.start));
  EXPECT_LT(warm.summary.passes, cold.summary.passes);
  EXPECT_NEAR(warm.summary.total().primal, cold.summary.total().primal, 2e-6 * cold.summary.total().primal);
}

TEST_F(PrimalLearning, ClassesInGroupsAreThoseOfOneGroup) {
  pack(class_rows(100, 2000, 4, 5));
  options_.solve.tolerance = 1e-4;
  for (const AnyMethod& method : {AnyMethod(Newton{}), AnyMethod(Primal{})}) {
    options_.solve.method = method;
    const TrainReport one = train(options_, {}, {}, false);
    ASSERT_EQ(one.groups, 1U);
    const Store store = Store::open(store_);
    const Problem problem = make_problem(store, options_, choose_classes(store.info(), options_));
    Context context{.memory_bytes = memory_for_tasks(problem, options_.solve, 2, folder_ / "STATE")};
    context.checkpoint.path = folder_ / "STATE";
    const TrainReport several = train(options_, context, {}, false);
    EXPECT_GE(several.groups, 2U) << name_of(method);
    for (size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(several.summary.certificates[i].primal, one.summary.certificates[i].primal,
                  2e-4 * one.summary.certificates[i].primal)
          << name_of(method);
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      if (entry.path().filename().string().starts_with("STATE")) std::filesystem::remove(entry.path());
  }
}

// A summary of all groups comes from the checkpoint of the first and the work on the others.
TEST_F(PrimalLearning, StepsOfGroupsBeforeAStopAreCounted) {
  struct Crash {};
  pack(class_rows(300, 2000, 4, 5));
  options_.solve.tolerance = 1e-2;
  options_.solve.max_passes = 10;
  options_.solve.method = Primal{};
  train(options_, {}, {}, true);  // makes the columns
  const Store store = Store::open(store_);
  const Problem problem = make_problem(store, options_, choose_classes(store.info(), options_));
  Context context{.memory_bytes = memory_for_tasks(problem, options_.solve, 2, folder_ / "STATE")};
  const auto trained = [&](const std::string& checkpoint, int most_groups) {
    context.checkpoint.path = checkpoint;
    TrainObserver observer;
    observer.plan = [&](const Plan&) {
      if (most_groups-- == 0) throw Crash();
    };
    return train(options_, context, observer, false);
  };
  const TrainReport whole = trained(folder_ / "WHOLE", 100);
  ASSERT_EQ(whole.groups, 2U);
  EXPECT_THROW(trained(folder_ / "STATE", 1), Crash);
  const TrainReport resumed = trained(folder_ / "STATE", 100);
  EXPECT_EQ(resumed.summary.column_steps.steps, whole.summary.column_steps.steps);
  EXPECT_EQ(resumed.summary.column_steps.full, whole.summary.column_steps.full);
  EXPECT_EQ(resumed.summary.column_steps.evaluations, whole.summary.column_steps.evaluations);
  EXPECT_EQ(resumed.summary.column_steps.saved, whole.summary.column_steps.saved);
}

TEST_F(PrimalLearning, ColumnsAreMadeWhereAMethodNeedsThemAndOnlyThen) {
  pack(two_classes(100, 5, 6));
  const auto state = [&] { return columns_state(Store::open(store_)); };
  options_.solve.method = Newton{};
  train(options_, {}, {}, false);
  EXPECT_EQ(state(), ColumnsState::absent);
  options_.solve.method = Cmls{};
  std::vector<std::string> said;
  TrainObserver observer;
  observer.say = [&](const std::string& sentence) { said.push_back(sentence); };
  train(options_, {}, observer, false);
  EXPECT_EQ(state(), ColumnsState::fresh);
  ASSERT_EQ(said.size(), 2U) << "the data and the method, then that columns are made";
  EXPECT_EQ(said[0], "squared-hinge, 100 rows x 5 features: cmls");
  EXPECT_NE(said[1].find("not there yet: transposing"), std::string::npos);
  train(options_, {}, observer, false);
  ASSERT_EQ(said.size(), 3U);
  EXPECT_EQ(said[2], said[0]);
}

// Rows 1 to 3 of features, the bias last.
class StartedWith : public PrimalLearning {
 protected:
  void SetUp() override {
    pack(class_rows(60, 4, 3, 7));
    store_opened_.emplace(Store::open(store_));
  }
  Problem problem(std::vector<int32_t> positives, double bias = -1) const {
    Problem problem{.store = &*store_opened_, .bias = bias};
    for (const int32_t positive : positives) problem.tasks.push_back({.positive = positive});
    return problem;
  }
  std::string saved(const Model& model) const {
    save_model(folder_ / "model", model, kPlainMetadata, 1);
    return folder_ / "model";
  }
  float weight(const Solution& solution, uint32_t index) const {
    return solution.weights[store_opened_->features().number(index)];
  }

  std::optional<Store> store_opened_;
};

TEST_F(StartedWith, TwoLabelsEachHasItsOwnSign) {
  Model model = two_class_model({0.5F, -2, 0, 3});
  model.labels = {3, 1};
  const StartWeights start = start_weights(saved(model), problem({1, 2, 3}));
  EXPECT_EQ(start.known, 2U);
  EXPECT_EQ(weight(start.solutions[2], 1), 0.5F);
  EXPECT_EQ(weight(start.solutions[2], 4), 3);
  EXPECT_EQ(weight(start.solutions[0], 2), 2);
  for (const float unknown : start.solutions[1].weights) EXPECT_EQ(unknown, 0);
}

TEST_F(StartedWith, SeveralColumnsLabelsFindTheirs) {
  Model model = two_class_model({});
  model.labels = {2, 9, 1};
  model.features = 2;
  model.weights = {1, 2, 3, 4, 5, 6};
  const StartWeights start = start_weights(saved(model), problem({1, 2, 3}));
  EXPECT_EQ(start.known, 2U);
  EXPECT_EQ(weight(start.solutions[0], 1), 3);
  EXPECT_EQ(weight(start.solutions[0], 2), 6);
  EXPECT_EQ(weight(start.solutions[1], 2), 4);
  EXPECT_EQ(weight(start.solutions[1], 3), 0) << "a feature that the model does not know";
}

TEST_F(StartedWith, AnotherBiasIsScaledAndMoreFeaturesAreLeftOut) {
  Model model = two_class_model({1, 2, 3, 4, 5, 6, 8}, 1);
  model.labels = {1, 2};
  const StartWeights start = start_weights(saved(model), problem({1}, 2));
  EXPECT_EQ(start.solutions[0].weights.back(), 4) << "1 * 8 = 2 * 4";
  EXPECT_EQ(weight(start.solutions[0], 4), 4);
  EXPECT_EQ(start_weights(saved(model), problem({1})).solutions[0].weights.size(), problem({1}).weights());
}

TEST_F(StartedWith, ALabelThatStandsForAllOthersIsNotALabel) {
  Model model = two_class_model({1, 1});
  model.labels = {1, 2};
  model.against_rest = true;
  EXPECT_EQ(start_weights(saved(model), problem({1, 2})).known, 1U);
  expect_error(ErrorKind::input, {"other labels", "leave out warm"}, [&] {
    start_weights(folder_ / "model", problem({2, 3}));
  });
}

}  // namespace
}  // namespace linblock
