// Cross-validation: every fold is what training on the other rows gives, whatever the memory and the threads.
#include "learn/cross_validate.h"

#include <gtest/gtest.h>

#include <set>

#include "learn/evaluate.h"
#include "store/core/remove.h"
#include "support/learning.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

constexpr double kClose = 1e-6;  // to a boundary: such a row may fall on either side

class CrossValidate : public testing::Test {
 protected:
  void pack(const std::vector<OwnedRow>& rows) {
    std::filesystem::remove_all(folder_ / "store");
    pack_rows(rows, folder_ / "store", small_options());
    options_.inputs = {folder_ / "store"};
  }
  CrossValidation validated(uint32_t folds, const Context& context = {}) {
    return cross_validate(options_, {.folds = folds}, context, {});
  }
  // A model trained on these rows alone, packed apart.
  TrainReport trained_on(const std::vector<OwnedRow>& rows) {
    std::filesystem::remove_all(folder_ / "apart");
    pack_rows(rows, folder_ / "apart", small_options());
    TrainOptions options = options_;
    options.inputs = {folder_ / "apart"};
    TrainReport report = train(options, {}, {}, false);
    save_trained(folder_ / "model", options, report, 1);
    return report;
  }
  // Each fold against a model of the other rows: its objective, and what it makes of the rows that were held out.
  void expect_folds_like_models(const CrossValidation& result, const std::vector<OwnedRow>& rows, uint32_t folds) {
    const size_t classes = result.summary.certificates.size() / folds;
    std::set<uint64_t> met;
    for (uint32_t fold = 0; fold < folds; ++fold) {
      const TrainReport alone = trained_on(rows_of_fold(rows, options_.solve.seed, fold, folds, false));
      for (size_t c = 0; c < classes; ++c) {
        const Certificate& ours = result.summary.certificates[fold * classes + c];
        EXPECT_LE(ours.gap(), options_.solve.tolerance);
        EXPECT_NEAR(ours.primal, alone.summary.certificates[c].primal, 2 * options_.solve.tolerance * ours.primal)
            << "fold " << fold << " class " << c;
      }
      const std::vector<OwnedRow> held = rows_of_fold(rows, options_.solve.seed, fold, folds, true);
      const Model model = load_model(folder_ / "model");
      uint64_t correct = 0;
      uint64_t close = 0;
      std::vector<std::pair<double, bool>> scores;
      for (const OwnedRow& row : held) {
        if (row.weight == 0) continue;
        EXPECT_TRUE(met.insert(row.id).second);
        std::vector<double> decisions(model.columns());
        uint64_t unknown = 0;
        model.decide(row.index, row.value, decisions, unknown);
        if (model.label_of(decisions) == model.own_label(row.label)) ++correct;
        std::vector<double> sorted = decisions;
        if (sorted.size() == 1) sorted.push_back(0);
        std::sort(sorted.rbegin(), sorted.rend());
        if (sorted[0] - sorted[1] < kClose) ++close;
        scores.emplace_back(decisions[0], row.label == model.labels[0]);
      }
      const FoldResult& ours = result.folds[fold];
      EXPECT_EQ(ours.rows, scores.size());
      EXPECT_NEAR(static_cast<double>(ours.correct), static_cast<double>(correct), static_cast<double>(close));
      if (classes == 1) expect_auc(ours, scores);
    }
    uint64_t with_weight = 0;
    for (const OwnedRow& row : rows)
      if (row.weight != 0) ++with_weight;
    EXPECT_EQ(met.size(), with_weight);
    EXPECT_EQ(result.pooled.rows, with_weight);
  }
  // Pair by pair.
  static void expect_auc(const FoldResult& fold, const std::vector<std::pair<double, bool>>& scores) {
    double wins = 0;
    double pairs = 0;
    for (const auto& [high, positive] : scores)
      for (const auto& [low, other] : scores) {
        if (!positive || other) continue;
        pairs += 1;
        wins += high > low ? 1 : high == low ? 0.5 : 0;
      }
    ASSERT_EQ(fold.auc.has_value(), pairs > 0);
    if (pairs == 0) return;
    EXPECT_NEAR(*fold.auc, wins / pairs, 2 / pairs);
  }
  static void expect_same(const CrossValidation& a, const CrossValidation& b) {
    ASSERT_EQ(a.folds.size(), b.folds.size());
    for (size_t i = 0; i < a.folds.size(); ++i) {
      EXPECT_EQ(a.folds[i].rows, b.folds[i].rows);
      EXPECT_EQ(a.folds[i].correct, b.folds[i].correct);
      EXPECT_EQ(a.folds[i].auc, b.folds[i].auc);
    }
    EXPECT_EQ(a.pooled.confusion, b.pooled.confusion);
    EXPECT_EQ(a.summary.passes, b.summary.passes);
    EXPECT_EQ(a.summary.certificates_made.all, b.summary.certificates_made.all);
    EXPECT_EQ(a.summary.certificates_made.without_v, b.summary.certificates_made.without_v);
    ASSERT_EQ(a.summary.certificates.size(), b.summary.certificates.size());
    for (size_t i = 0; i < a.summary.certificates.size(); ++i) {
      EXPECT_EQ(a.summary.certificates[i].primal, b.summary.certificates[i].primal);
      EXPECT_EQ(a.summary.certificates[i].dual, b.summary.certificates[i].dual);
    }
  }

  const Folder folder_;
  TrainOptions options_{.pack = small_options(),
                        .loss = Hinge{},
                        .cost = 0.1,
                        // Rounds that are chosen from measured rates would be others each time.
                        .solve = {.method = Dual{.inner = 1}, .tolerance = 1e-7, .max_passes = 20000}};
};

TEST_F(CrossValidate, AFoldIsAModelOfTheOtherRowsAppliedToItsOwn) {
  const std::vector<OwnedRow> rows = two_classes(300, 8, 1);
  pack(rows);
  for (const char* loss : {"hinge", "squared-hinge", "logistic"}) {
    options_.loss = loss_of(loss);
    expect_folds_like_models(validated(4), rows, 4);
  }
}

TEST_F(CrossValidate, SoItIsWithABiasAndAnotherSeed) {
  const std::vector<OwnedRow> rows = two_classes(200, 6, 2);
  pack(rows);
  options_.bias = 1.5;
  options_.solve.seed = 77;
  expect_folds_like_models(validated(3), rows, 3);
}

TEST_F(CrossValidate, SoItIsWithSeveralClasses) {
  const std::vector<OwnedRow> rows = class_rows(300, 8, 4, 3);
  pack(rows);
  const CrossValidation result = validated(3);
  EXPECT_EQ(result.summary.certificates.size(), 12U);
  expect_folds_like_models(result, rows, 3);
  EXPECT_FALSE(result.pooled.auc.has_value());
}

TEST_F(CrossValidate, SoItIsForOneLabelAgainstAllOthers) {
  const std::vector<OwnedRow> rows = class_rows(240, 8, 3, 4);
  pack(rows);
  options_.positive = 2;
  const CrossValidation result = validated(3);
  EXPECT_EQ(result.summary.certificates.size(), 3U);
  expect_folds_like_models(result, rows, 3);
  EXPECT_EQ(result.pooled.classes.size(), 2U);
  EXPECT_TRUE(result.pooled.auc.has_value());
}

TEST_F(CrossValidate, RowsWithoutWeightAndRemovedRowsAreInNoFold) {
  std::vector<OwnedRow> rows = two_classes(240, 6, 5);
  for (size_t i = 0; i < rows.size(); ++i) rows[i].weight = i % 5 == 0 ? 0.0F : i % 3 == 0 ? 2.0F : 1.0F;
  pack(rows);
  RowList gone;
  for (uint64_t id = 1; id < rows.size(); id += 7) gone.ids.push_back(id);
  remove_rows(folder_ / "store", gone);
  const std::set<uint64_t> ids(gone.ids.begin(), gone.ids.end());
  const CrossValidation result = validated(3);
  uint64_t left = 0;
  for (const OwnedRow& row : rows)
    if (row.weight != 0 && !ids.contains(row.id)) ++left;
  uint64_t held = 0;
  for (const FoldResult& fold : result.folds) held += fold.rows;
  EXPECT_EQ(held, left);
  EXPECT_EQ(result.pooled.rows, left);
  // Weight 0 in a store of its own is the same as removed, for what is learned.
  for (OwnedRow& row : rows)
    if (ids.contains(row.id)) row.weight = 0;
  pack(rows);
  const CrossValidation weightless = validated(3);
  for (size_t i = 0; i < result.folds.size(); ++i) {
    EXPECT_EQ(result.folds[i].rows, weightless.folds[i].rows);
    EXPECT_EQ(result.folds[i].correct, weightless.folds[i].correct);
    EXPECT_NEAR(result.summary.certificates[i].primal, weightless.summary.certificates[i].primal,
                1e-6 * result.summary.certificates[i].primal);
  }
}

TEST_F(CrossValidate, AFoldThatHoldsOutAllOfAClassIsNamed) {
  std::vector<OwnedRow> rows = class_rows(120, 6, 2, 6);
  // One row of label 7 with weight, and one without, which teaches nothing.
  rows[10].label = 7;
  rows[11].label = 7;
  rows[11].weight = 0;
  pack(rows);
  const CrossValidation result = validated(4);
  const uint32_t lacking = HeldOut::part_of(options_.solve.seed, 10, 4);
  for (uint32_t fold = 0; fold < 4; ++fold)
    EXPECT_EQ(result.folds[fold].learned_without, fold == lacking ? std::vector<int32_t>{7} : std::vector<int32_t>{})
        << fold;
}

TEST_F(CrossValidate, AnEmptyFoldCountsForNothing) {
  const std::vector<OwnedRow> rows = two_classes(6, 3, 7);
  pack(rows);
  const CrossValidation result = validated(6);
  double sum = 0;
  double folds = 0;
  for (const FoldResult& fold : result.folds) {
    if (fold.rows == 0) continue;
    sum += fold.accuracy();
    folds += 1;
  }
  ASSERT_LT(folds, 6) << "the test needs a fold without rows";
  EXPECT_DOUBLE_EQ(result.accuracy().mean, sum / folds);
}

TEST_F(CrossValidate, ImpossibleNumbersOfFoldsAreRefused) {
  pack(two_classes(20, 3, 8));
  EXPECT_THAT([&] { validated(0); }, fails_with(ErrorKind::usage, "folds 0"));
  EXPECT_THAT([&] { validated(1); }, fails_with(ErrorKind::usage, "there can be 2 to 65535"));
  EXPECT_THAT([&] { validated(70000); }, fails_with(ErrorKind::usage, "there can be 2 to 65535"));
  EXPECT_THAT([&] { validated(21); }, fails_with(ErrorKind::input, "only 20 rows"));
}

TEST_F(CrossValidate, OneClassIsRefused) {
  std::vector<OwnedRow> rows = two_classes(20, 3, 8);
  for (OwnedRow& row : rows) row.label = 1;
  pack(rows);
  EXPECT_THAT([&] { validated(3); }, fails_with(ErrorKind::input, "two classes"));
}

TEST_F(CrossValidate, GivesTheSameBitsForAnyNumberOfThreads) {
  pack(class_rows(400, 8, 3, 9));
  options_.solve.tolerance = 1e-4;
  const CrossValidation one = validated(3);
  for (const size_t threads : {2, 3, 7}) expect_same(one, validated(3, {.team = threads}));
}

TEST_F(CrossValidate, GroupsInLittleMemoryGiveTheSameAccuracies) {
  std::vector<OwnedRow> rows = class_rows(300, 6, 3, 10);
  for (size_t i = 0; i < rows.size(); ++i) {  // weights that matter
    rows[i].index.push_back(static_cast<uint32_t>(100'000 + 50 * i));
    rows[i].value.push_back(0.1F);
  }
  pack(rows);
  options_.solve.tolerance = 1e-6;
  const CrossValidation together = validated(4);
  EXPECT_EQ(together.groups, 1U);
  const Store store = Store::open(folder_ / "store");
  const Classes classes = choose_classes(store.info(), options_);
  Problem problem = make_problem(store, options_, classes);
  problem.tasks = fold_tasks(classes, options_.cost, 4, options_.solve.seed);
  for (const size_t at_once : {1, 5}) {  // a model's classes in different groups
    Context context;
    context.checkpoint.path = folder_ / "STATE";
    context.memory_bytes =
        memory_for_tasks(problem, options_.solve, at_once, context.checkpoint.path, HeldOutRows::bytes_for(store));
    const CrossValidation apart = validated(4, context);
    EXPECT_EQ(apart.groups, (12 + at_once - 1) / at_once);
    for (size_t fold = 0; fold < 4; ++fold) {
      EXPECT_EQ(apart.folds[fold].rows, together.folds[fold].rows);
      EXPECT_NEAR(apart.folds[fold].accuracy(), together.folds[fold].accuracy(), 0.015);
    }
    for (size_t task = 0; task < 12; ++task)
      EXPECT_NEAR(apart.summary.certificates[task].primal, together.summary.certificates[task].primal,
                  1e-5 * together.summary.certificates[task].primal);
    std::filesystem::remove(folder_ / "STATE.stages");
  }
}

TEST_F(CrossValidate, WorksWithTheOtherSolvers) {
  const std::vector<OwnedRow> rows = two_classes(400, 5, 11, 0.2);
  pack(rows);
  const double exact = validated(4).accuracy().mean;
  for (const AnyMethod& method : {AnyMethod(Pegasos{}), AnyMethod(Average{}), AnyMethod(Subsample{})}) {
    options_.solve.method = method;
    options_.solve.max_passes = 20;
    const CrossValidation result = validated(4);
    EXPECT_EQ(result.pooled.rows, rows.size());
    EXPECT_NEAR(result.accuracy().mean, exact, 0.1) << name_of(method);
  }
}

TEST_F(CrossValidate, StoppedAnywhereEndsWithTheSameBits) {
  pack(class_rows(400, 8, 3, 12));
  options_.solve.tolerance = 1e-3;
  options_.solve.chunks_per_block = 1;
  for (const AnyMethod& method : {AnyMethod(Dual{.inner = 1}), AnyMethod(Pegasos{})}) {
    options_.solve.method = method;
    if (std::holds_alternative<Pegasos>(method)) options_.solve.max_passes = 3;
    const CrossValidation whole = validated(3);
    Context context;
    context.checkpoint.path = folder_ / "STATE";
    CrossValidation result;
    const int stops = with_stops(context, {StopAt::block, StopAt::reading, StopAt::block, StopAt::pass},
                                 [&](const Context& life, const TrainObserver& observer) {
                                   result = cross_validate(options_, {.folds = 3}, life, observer);
                                 });
    EXPECT_GE(stops, 2);
    expect_same(whole, result);
    std::filesystem::remove(folder_ / "STATE");
  }
}

TEST_F(CrossValidate, StoppedBetweenGroupsEndsWithTheSameBits) {
  std::vector<OwnedRow> rows = two_classes(200, 6, 13);
  rows[0].index.push_back(200'000);
  rows[0].value.push_back(1);
  pack(rows);
  options_.solve.tolerance = 1e-3;
  options_.solve.chunks_per_block = 1;
  const Store store = Store::open(folder_ / "store");
  const Classes classes = choose_classes(store.info(), options_);
  Problem problem = make_problem(store, options_, classes);
  problem.tasks = fold_tasks(classes, options_.cost, 4, options_.solve.seed);
  Context context;
  context.checkpoint.path = folder_ / "STATE";
  context.memory_bytes =
      memory_for_tasks(problem, options_.solve, 2, context.checkpoint.path, HeldOutRows::bytes_for(store));
  const CrossValidation whole = validated(4, context);
  ASSERT_GE(whole.groups, 2U);
  for (const char* name : {"STATE.stages", "STATE"}) std::filesystem::remove(folder_ / name);
  CrossValidation result;
  with_stops(context, {StopAt::block, StopAt::pass}, [&](const Context& life, const TrainObserver& observer) {
    result = cross_validate(options_, {.folds = 4}, life, observer);
  });
  expect_same(whole, result);
}

TEST_F(CrossValidate, GoesOnWithTheSameOptionsOnly) {
  pack(two_classes(300, 6, 14));
  options_.solve.chunks_per_block = 1;
  const std::atomic<bool> stop = true;
  Context context;
  context.checkpoint.path = folder_ / "STATE";
  context.stop = &stop;
  expect_error(ErrorKind::interrupted, {"the same command"}, [&] { validated(3, context); });
  context.stop = nullptr;
  expect_error(ErrorKind::usage, {"another run", "folds: 3 then, 4 now", "start over with fresh"},
               [&] { validated(4, context); });
  options_.cost = 5;
  expect_error(ErrorKind::usage, {"cost: 0.1 then, 5 now"}, [&] { validated(3, context); });
  expect_error(ErrorKind::usage, {"folds: 3 then, not there now"}, [&] { train(options_, context, {}, false); });
  options_.fresh = true;
  expect_same(validated(3, context), validated(3));
}

TEST_F(CrossValidate, StoppedWithoutACheckpointIsNotHalfAResult) {
  pack(two_classes(300, 6, 14));
  const std::atomic<bool> stop = true;
  Context context;
  context.stop = &stop;
  expect_error(ErrorKind::interrupted, {"interrupted"}, [&] { validated(3, context); });
}

}  // namespace
}  // namespace linblock
