// cv and tune by other metrics than accuracy: each fold's value is that of a model of the other rows, and the cost is
// chosen by it.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "learn/tune.h"
#include "support/learning.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

struct OfRow {
  int32_t label = 0;
  int32_t predicted = 0;
  double decision = 0;
  double share = 0;  // that the model gives to its label
};

// By the book, class by class and pair by pair.
double reference(Metric metric, const std::vector<OfRow>& rows, const std::vector<int32_t>& labels) {
  const auto count = [&](const auto& is) { return static_cast<double>(std::count_if(rows.begin(), rows.end(), is)); };
  if (metric == Metric::accuracy)
    return count([](const OfRow& row) { return row.label == row.predicted; }) / static_cast<double>(rows.size());
  if (metric == Metric::log_loss) {
    double loss = 0;
    for (const OfRow& row : rows) loss -= std::log(row.share);
    return loss / static_cast<double>(rows.size());
  }
  if (metric == Metric::auc) {
    double wins = 0;
    double pairs = 0;
    for (const OfRow& high : rows)
      for (const OfRow& low : rows) {
        if (high.label != labels[0] || low.label == labels[0]) continue;
        pairs += 1;
        wins += high.decision > low.decision ? 1 : high.decision == low.decision ? 0.5 : 0;
      }
    return wins / pairs;
  }
  std::vector<double> recalls;
  std::vector<double> f1s;
  for (const int32_t label : labels) {
    const double its = count([&](const OfRow& row) { return row.label == label; });
    const double found = count([&](const OfRow& row) { return row.label == label && row.predicted == label; });
    const double answers = count([&](const OfRow& row) { return row.predicted == label; });
    recalls.push_back(found / its);
    f1s.push_back(found == 0 ? 0 : 2 / (answers / found + its / found));
  }
  const auto mean = [](const std::vector<double>& of) {
    return std::accumulate(of.begin(), of.end(), 0.0) / static_cast<double>(of.size());
  };
  if (metric == Metric::balanced_accuracy) return mean(recalls);
  return labels.size() == 2 ? f1s[0] : mean(f1s);
}

class MetricLearning : public testing::Test {
 protected:
  void pack(const std::vector<OwnedRow>& rows, const std::string& name = "store") {
    std::filesystem::remove_all(folder_ / name);
    pack_rows(rows, folder_ / name, small_options());
    options_.inputs = {folder_ / name};
  }
  // One in `of` rows is positive, and three features tell which, with noise.
  static std::vector<OwnedRow> rare_rows(size_t count, size_t of, uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<OwnedRow> rows(count);
    for (size_t i = 0; i < count; ++i) {
      OwnedRow& row = rows[i];
      row.id = i;
      row.label = i % of == 0 ? 1 : -1;
      for (uint32_t j = 1; j <= 6; ++j) {
        row.index.push_back(j);
        row.value.push_back(normal(random) + (row.label == 1 && j <= 3 ? 2.0F : 0.0F));
      }
      row.index.push_back(7);
      row.value.push_back(1);
    }
    return rows;
  }
  // What the models of all folds make of the rows that they have not seen.
  std::vector<std::vector<OfRow>> held_out(const std::vector<OwnedRow>& rows, uint32_t folds,
                                           std::vector<int32_t>& labels) {
    std::vector<std::vector<OfRow>> all;
    const std::vector<std::string> inputs = options_.inputs;
    for (uint32_t fold = 0; fold < folds; ++fold) {
      pack(rows_of_fold(rows, options_.solve.seed, fold, folds, false), "others");
      TrainReport report = train(options_, {}, {}, false);
      save_trained(folder_ / "model", options_, report, 1);
      const Model model = load_model(folder_ / "model");
      labels = model.labels;
      std::vector<OfRow> of_fold;
      for (const OwnedRow& row : rows_of_fold(rows, options_.solve.seed, fold, folds, true)) {
        std::vector<double> decisions(model.columns());
        uint64_t unknown = 0;
        model.decide(row.index, row.value, decisions, unknown);
        std::vector<double> shares(model.labels.size());
        if (model.has_probability()) model.probabilities(decisions, shares);
        const auto place = std::find(labels.begin(), labels.end(), row.label) - labels.begin();
        of_fold.push_back({row.label, model.label_of(decisions), decisions[0], shares[static_cast<size_t>(place)]});
      }
      all.push_back(of_fold);
    }
    options_.inputs = inputs;
    return all;
  }
  void expect_values(const std::vector<OwnedRow>& rows, const std::vector<Metric>& metrics) {
    constexpr uint32_t kFolds = 3;
    pack(rows);
    std::vector<int32_t> labels;
    const std::vector<std::vector<OfRow>> expected = held_out(rows, kFolds, labels);
    for (const Metric metric : metrics) {
      SCOPED_TRACE(name_of(metric));
      const CrossValidation result = cross_validate(options_, {kFolds, metric}, {}, {});
      EXPECT_EQ(result.metric, metric);
      double mean = 0;
      for (uint32_t fold = 0; fold < kFolds; ++fold) {
        ASSERT_TRUE(result.folds[fold].value.has_value());
        EXPECT_NEAR(*result.folds[fold].value, reference(metric, expected[fold], labels), 1e-4);
        mean += *result.folds[fold].value / kFolds;
      }
      EXPECT_DOUBLE_EQ(result.value.mean, mean);
      EXPECT_GT(goodness(metric, result.value.mean), goodness(metric, result.baseline));
      if (metric != Metric::log_loss) continue;
      ASSERT_TRUE(result.pooled.log_loss.has_value());
      std::vector<OfRow> all;
      for (const std::vector<OfRow>& fold : expected) all.insert(all.end(), fold.begin(), fold.end());
      EXPECT_NEAR(*result.pooled.log_loss, reference(metric, all, labels), 1e-4);
    }
  }

  const Folder folder_;
  TrainOptions options_{.pack = small_options(),
                        .loss = Logistic{},
                        .cost = 1,
                        .solve = {.method = Newton{}, .tolerance = 1e-7, .max_passes = 20000}};
};

constexpr Metric kAll[] = {Metric::accuracy, Metric::balanced_accuracy, Metric::f1, Metric::auc, Metric::log_loss};

TEST_F(MetricLearning, OfTwoClassesIsThatOfModelsThatHaveNotSeenTheRows) {
  expect_values(rare_rows(600, 6, 1), {std::begin(kAll), std::end(kAll)});
}

TEST_F(MetricLearning, OfSeveralClassesIsThatOfModelsThatHaveNotSeenTheRows) {
  expect_values(class_rows(600, 6, 4, 2), {Metric::accuracy, Metric::balanced_accuracy, Metric::f1, Metric::log_loss});
}

TEST_F(MetricLearning, OfSoftmaxIsThatOfModelsThatHaveNotSeenTheRows) {
  options_.solve.method = Softmax{};
  expect_values(class_rows(500, 6, 3, 3), {Metric::accuracy, Metric::balanced_accuracy, Metric::f1, Metric::log_loss});
}

TEST_F(MetricLearning, LeavesOutFoldsThatHaveNoRowsForIt) {
  // Two positive rows for five folds.
  pack(rare_rows(100, 50, 4));
  for (const Metric metric : {Metric::f1, Metric::auc}) {
    const CrossValidation result = cross_validate(options_, {5, metric}, {}, {});
    double sum = 0;
    double count = 0;
    for (const FoldResult& fold : result.folds) {
      if (!fold.value) continue;
      sum += *fold.value;
      count += 1;
    }
    EXPECT_LE(count, 2);
    ASSERT_GE(count, 1);
    EXPECT_DOUBLE_EQ(result.value.mean, sum / count);
  }
}

TEST_F(MetricLearning, IsRefusedWhereThereIsNone) {
  pack(class_rows(60, 4, 3, 5));
  const auto tuned = [&](Metric metric) {
    return tune(options_, {{2, metric}, parse_costs("1,2")}, {}, {}, [](const TunedCost&) {});
  };
  expect_error(ErrorKind::usage, {"metric auc is for two classes, and there are 3 labels", "choose one label"}, [&] {
    cross_validate(options_, {2, Metric::auc}, {}, {});
  });
  expect_error(ErrorKind::usage, {"metric auc is for two classes"}, [&] { tuned(Metric::auc); });
  options_.positive = 2;
  EXPECT_TRUE(cross_validate(options_, {2, Metric::auc}, {}, {}).folds[0].value.has_value());
  options_.loss = Hinge{};
  options_.inputs = {folder_ / "absent.svm"};  // before anything is read
  expect_error(ErrorKind::usage, {"metric log-loss needs models with probabilities, and hinge has none"}, [&] {
    cross_validate(options_, {2, Metric::log_loss}, {}, {});
  });
  expect_error(ErrorKind::usage, {"metric log-loss needs models"}, [&] { tuned(Metric::log_loss); });
}

TEST_F(MetricLearning, NoFoldWithRowsForItIsAnError) {
  const std::vector<OwnedRow> rows = rare_rows(8, 8, 6);
  pack(rows);
  // The only positive row is alone in its fold.
  const auto fold_of = [&](const OwnedRow& row) { return HeldOut::part_of(options_.solve.seed, row.id, 7); };
  while (std::any_of(rows.begin() + 1, rows.end(),
                     [&](const OwnedRow& row) { return fold_of(row) == fold_of(rows.front()); }))
    ++options_.solve.seed;
  expect_error(ErrorKind::input, {"metric auc: no fold has the rows that it needs", "use fewer folds"}, [&] {
    cross_validate(options_, {7, Metric::auc}, {}, {});
  });
}

// One row in a hundred is positive: always saying no is right in 99% of the rows.
TEST_F(MetricLearning, TuneOfRarePositivesFindsThemByF1AndAucButNotByAccuracy) {
  pack(rare_rows(3000, 100, 7));
  options_.solve.tolerance = 1e-3;
  const auto chosen = [&](Metric metric) {
    return tune(options_, {{5, metric}, parse_costs("1e-6,1e-5,1e-4,1e-3,0.01,0.1,1")}, {}, {},
                [](const TunedCost&) {});
  };
  const auto f1_at = [&](double cost) {
    options_.cost = cost;
    return cross_validate(options_, {5, Metric::f1}, {}, {}).value.mean;
  };
  const Tuning by_f1 = chosen(Metric::f1);
  EXPECT_EQ(f1_at(by_f1.costs.front().cost), 0) << "the smallest cost always says no";
  EXPECT_GT(f1_at(by_f1.costs[by_f1.best].cost), 0.2);
  EXPECT_EQ(by_f1.baseline, 0);
  const Tuning by_auc = chosen(Metric::auc);
  EXPECT_GT(by_auc.costs[by_auc.best].value, 0.95);
  const Tuning by_loss = chosen(Metric::log_loss);
  EXPECT_GT(by_loss.costs[by_loss.best].cost, by_loss.costs.front().cost);
  for (const Tuning* tuning : {&by_f1, &by_auc, &by_loss}) {
    const auto rounded = [&](const TunedCost& cost) { return std::lround(1e4 * goodness(tuning->metric, cost.value)); };
    ASSERT_EQ(tuning->fold_values.size(), 5 * tuning->costs.size());
    for (size_t i = 0; i < tuning->costs.size(); ++i) {
      const long best = rounded(tuning->costs[tuning->best]);
      EXPECT_TRUE(i < tuning->best ? rounded(tuning->costs[i]) < best : rounded(tuning->costs[i]) <= best) << i;
      double mean = 0;
      for (size_t fold = 0; fold < 5; ++fold) mean += tuning->fold_values[5 * i + fold] / 5;
      EXPECT_NEAR(tuning->costs[i].value, mean, 1e-12);
    }
    const TunedCost& simpler = tuning->smallest_within_deviation();
    EXPECT_LE(simpler.cost, tuning->costs[tuning->best].cost);
    EXPECT_GT(goodness(tuning->metric, simpler.value), goodness(tuning->metric, tuning->baseline));
    EXPECT_GE(goodness(tuning->metric, simpler.value),
              goodness(tuning->metric, tuning->costs[tuning->best].value) - tuning->costs[tuning->best].deviation);
  }
}

TEST_F(MetricLearning, ThatIsResumedHasTheSameValues) {
  pack(class_rows(240, 6, 3, 8));
  options_.solve.tolerance = 1e-3;
  Context context;
  context.checkpoint.path = folder_ / "STATE";
  const FoldOptions folds{2, Metric::log_loss};
  const auto tuned = [&](const Context& with, const TrainObserver& observer) {
    return tune(options_, {folds, parse_costs("0.01,0.1,1,10")}, with, observer, [](const TunedCost&) {});
  };
  const CrossValidation whole = cross_validate(options_, folds, {}, {});
  const Tuning whole_tuning = tuned({}, {});
  CrossValidation found;
  EXPECT_GT(with_stops(context, {StopAt::reading, StopAt::pass},
                       [&](const Context& life, const TrainObserver& observer) {
                         found = cross_validate(options_, folds, life, observer);
                       }),
            0);
  for (size_t i = 0; i < whole.folds.size(); ++i) EXPECT_EQ(found.folds[i].value, whole.folds[i].value);
  for (const char* name : {"STATE", "STATE.stages"}) std::filesystem::remove(folder_ / name);
  Tuning found_tuning;
  EXPECT_GT(
      with_stops(context, {StopAt::reading, StopAt::pass},
                 [&](const Context& life, const TrainObserver& observer) { found_tuning = tuned(life, observer); }),
      0);
  EXPECT_EQ(found_tuning.fold_values, whole_tuning.fold_values);
  EXPECT_EQ(found_tuning.best, whole_tuning.best);
}

// Classes that do not fit in memory together come one after another: what each row's own class has is kept meanwhile.
TEST_F(MetricLearning, LogLossOfClassesThatComeInGroupsIsThatOfAllTogether) {
  pack(class_rows(300, 8, 4, 9));
  options_.solve = {.method = Dual{.inner = 1}, .tolerance = 1e-5, .max_passes = 20000};
  const Store store = Store::open(folder_ / "store");
  const Classes classes = choose_classes(store.info(), options_);
  Problem problem = make_problem(store, options_, classes);
  problem.tasks = fold_tasks(classes, options_.cost, 2, options_.solve.seed);
  Context context;
  context.checkpoint.path = folder_ / "STATE";
  const CrossValidation whole = cross_validate(options_, {2, Metric::log_loss}, {}, {});
  const uint64_t reserved = HeldOutRows::bytes_for(store, Metric::log_loss, 4);
  EXPECT_GT(reserved, HeldOutRows::bytes_for(store));
  context.memory_bytes = memory_for_tasks(problem, options_.solve, 3, context.checkpoint.path, reserved);
  const CrossValidation grouped = cross_validate(options_, {2, Metric::log_loss}, context, {});
  ASSERT_GT(grouped.groups, 1U);
  for (size_t i = 0; i < whole.folds.size(); ++i) EXPECT_NEAR(*grouped.folds[i].value, *whole.folds[i].value, 1e-4);
}

}  // namespace
}  // namespace linblock
