// The choice of the cost: each cost is a cross-validation, and the path begins and ends where it should.
#include "learn/tune.h"

#include <gtest/gtest.h>

#include "support/learning.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

TEST(Costs, OfARangeAreAllFromTheFirstToTheLast) {
  EXPECT_EQ(parse_costs("0.5:4:2"), (std::vector<double>{0.5, 1, 2, 4}));
  EXPECT_EQ(parse_costs("0.5:4"), (std::vector<double>{0.5, 1, 2, 4}));
  EXPECT_EQ(parse_costs("1:5:2"), (std::vector<double>{1, 2, 4}));
  EXPECT_EQ(parse_costs("3:3:10"), (std::vector<double>{3}));
  EXPECT_EQ(parse_costs("0.01:100:10").size(), 5U);
  EXPECT_EQ(parse_costs("1e-9:1e9:10").size(), 19U) << "rounding must not lose the last";
}

TEST(Costs, OfAListAreTriedFromTheSmallestOnce) {
  EXPECT_EQ(parse_costs("10,0.1,1,10"), (std::vector<double>{0.1, 1, 10}));
}

TEST(Costs, ThatAreNoneAreAUsageError) {
  for (const char* text : {"", ":", "1", "1:", ":1", "1::2", "1:2:", "1:2:3:4", "1:2:2x", "a:b:c", "1 :2", "1,", ",",
                           "1,,2", "1, 2", "1:2,3", "1:2:0x2", "1e999:2"})
    EXPECT_THAT([&] { parse_costs(text); }, fails_with(ErrorKind::usage, "not FROM:TO:FACTOR")) << text;
  for (const char* text : {"0:1:2", "-1:1:2", "1:2:1", "1:2:0.5", "1:2:0", "1:2:-3", "nan:1:2", "1:nan:2", "1:2:nan",
                           "1:inf:2", "inf:inf:2", "1:2:inf"})
    EXPECT_THAT([&] { parse_costs(text); }, fails_with(ErrorKind::usage, "the factor is above 1")) << text;
  for (const char* text : {"0,1", "1,-2", "1,nan", "inf,1"})
    EXPECT_THAT([&] { parse_costs(text); }, fails_with(ErrorKind::usage, "costs are above 0")) << text;
  EXPECT_THAT([&] { parse_costs("2:1:3"); }, fails_with(ErrorKind::usage, "has no cost"));
  EXPECT_THAT([&] { parse_costs("1:2:1.0000001"); }, fails_with(ErrorKind::usage, "more than 1000"));
}

TEST(Costs, AreEquallyGoodWhereNobodyCanTellThemApart) {
  EXPECT_TRUE(as_good({.value = 0.94871}, {.value = 0.94874}));
  EXPECT_FALSE(as_good({.value = 0.9487}, {.value = 0.9488}));
}

class Tune : public testing::Test {
 protected:
  void pack(const std::vector<OwnedRow>& rows) {
    std::filesystem::remove_all(folder_ / "store");
    pack_rows(rows, folder_ / "store", small_options());
    options_.inputs = {folder_ / "store"};
  }
  Tuning tuned(uint32_t folds, const std::optional<std::vector<double>>& costs = {}, const Context& context = {}) {
    return tune(options_, {{.folds = folds}, costs}, context, {}, [](const TunedCost&) {});
  }
  static void expect_same(const Tuning& a, const Tuning& b) {
    EXPECT_EQ(a.summary.certificates_made.all, b.summary.certificates_made.all);
    ASSERT_EQ(a.costs.size(), b.costs.size());
    for (size_t i = 0; i < a.costs.size(); ++i) {
      EXPECT_EQ(a.costs[i].cost, b.costs[i].cost);
      EXPECT_EQ(a.costs[i].accuracy, b.costs[i].accuracy);
      EXPECT_EQ(a.costs[i].deviation, b.costs[i].deviation);
      EXPECT_EQ(a.costs[i].auc, b.costs[i].auc);
      EXPECT_EQ(a.costs[i].passes, b.costs[i].passes);
    }
    EXPECT_EQ(a.best, b.best);
    EXPECT_EQ(a.ended, b.ended);
    ASSERT_EQ(a.start.size(), b.start.size());
    for (size_t i = 0; i < a.start.size(); ++i) {
      EXPECT_EQ(a.start[i].weights, b.start[i].weights);
      const auto alphas = a.start[i].duals.all();
      EXPECT_TRUE(std::equal(alphas.begin(), alphas.end(), b.start[i].duals.all().begin()));
    }
  }
  // The best is the first of those that no other beats, in hundredths of a percent.
  static void expect_best(const Tuning& tuning) {
    for (size_t i = 0; i < tuning.costs.size(); ++i) {
      const long best = std::lround(1e4 * tuning.costs[tuning.best].accuracy);
      const long other = std::lround(1e4 * tuning.costs[i].accuracy);
      EXPECT_TRUE(i < tuning.best ? other < best : other <= best) << i;
      EXPECT_TRUE(i == 0 || tuning.costs[i].cost > tuning.costs[i - 1].cost) << i;
    }
  }

  const Folder folder_;
  TrainOptions options_{.pack = small_options(), .loss = Hinge{}, .solve = {.tolerance = 1e-6, .max_passes = 20000}};
};

TEST_F(Tune, EachCostIsACrossValidation) {
  for (const int32_t classes : {2, 3}) {
    pack(class_rows(240, 8, classes, 1));
    for (const char* loss : {"hinge", "squared-hinge", "logistic"}) {
      options_.loss = loss_of(loss);
      const Tuning tuning = tuned(3, parse_costs("0.001:1:10"));
      ASSERT_EQ(tuning.costs.size(), 4U);
      expect_best(tuning);
      EXPECT_EQ(tuning.ended, "");
      for (const TunedCost& one : tuning.costs) {
        options_.cost = one.cost;
        const CrossValidation alone = cross_validate(options_, {.folds = 3}, {}, {});
        EXPECT_NEAR(one.accuracy, alone.accuracy().mean, 1.0 / 240) << loss << " " << one.cost;
        EXPECT_NEAR(one.auc, alone.pooled.auc.value_or(0), 1e-3) << loss << " " << one.cost;
      }
    }
  }
}

TEST_F(Tune, BeginsWithTheSmallestCostThatLIBLINEARWouldTry) {
  std::vector<OwnedRow> rows = two_classes(100, 5, 2);
  double largest = 0;
  for (const OwnedRow& row : rows) {
    double norm = 0;
    for (const float value : row.value) norm += double{value} * double{value};
    largest = std::max(largest, norm);
  }
  pack(rows);
  options_.solve.tolerance = 0.1;
  const auto power = [](double cost) { return std::pow(2, std::floor(std::log2(cost))); };
  options_.loss = SquaredHinge{};
  EXPECT_EQ(tuned(2).costs.front().cost, power(1 / (2 * 100 * largest)));
  options_.bias = 3;
  EXPECT_EQ(tuned(2).costs.front().cost, power(1 / (2 * 100 * (largest + 9))));
  options_.loss = Logistic{};
  options_.bias = -1;
  EXPECT_EQ(tuned(2).costs.front().cost, power(1 / (100 * largest)));
}

TEST_F(Tune, EndsWhereTheModelNoLongerChanges) {
  std::vector<OwnedRow> rows = two_classes(80, 4, 3, 0);
  // Far apart: from some cost on no row is inside the margin, and the hinge's model stays.
  for (OwnedRow& row : rows) {
    row.index.push_back(5);
    row.value.push_back(row.label == 1 ? 3.0F : -3.0F);
  }
  pack(rows);
  const Tuning tuning = tuned(3);
  EXPECT_TRUE(contains(tuning.ended, "no longer change")) << tuning.ended;
  EXPECT_LT(tuning.costs.back().cost, 1024);
  EXPECT_EQ(tuning.costs[tuning.best].accuracy, 1);
  expect_best(tuning);
}

TEST_F(Tune, EndsWhereTheAccuracyHasPassedItsPeak) {
  // Five features tell; a hundred more let a model learn the noise by heart.
  std::vector<OwnedRow> rows = two_classes(240, 5, 4, 0.5);
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (OwnedRow& row : rows)
    for (uint32_t j = 6; j <= 105; ++j) {
      row.index.push_back(j);
      row.value.push_back(0.6F * normal(random));
    }
  pack(rows);
  options_.solve.tolerance = 1e-3;
  const Tuning tuning = tuned(3);
  EXPECT_TRUE(contains(tuning.ended, "passed its peak")) << tuning.ended;
  EXPECT_LT(tuning.best, tuning.costs.size() - 1);
  expect_best(tuning);
}

TEST_F(Tune, EveryReadingIsShownToItsEnd) {
  pack(two_classes(300, 6, 23));
  options_.solve.tolerance = 0.01;
  std::map<std::string, double> shares;
  TrainObserver observer;
  observer.reading = [&](std::string_view purpose, double share) { shares[std::string(purpose)] = share; };
  tune(options_, {{.folds = 3}, {}}, {}, observer, [](const TunedCost&) {});
  EXPECT_EQ(shares, (std::map<std::string, double>{{"to find the smallest useful cost", 1},
                                                   {"to certify how far from the best possible", 1},
                                                   {"to look at the rows with what was learned", 1}}));
}

TEST_F(Tune, ARangeIsTriedToItsEnd) {
  pack(two_classes(60, 4, 3, 0));
  const Tuning tuning = tuned(3, parse_costs("100:100000:10"));
  EXPECT_EQ(tuning.costs.size(), 4U);
  EXPECT_EQ(tuning.ended, "");
}

TEST_F(Tune, TheModelOfAllRowsBeginsNearItsEnd) {
  options_.solve = {.method = Dual{.inner = 1, .cache_fraction = 0}, .tolerance = 0.01};
  for (const int32_t classes : {2, 3}) {
    int cold_passes = 0;
    int warm_passes = 0;
    for (uint32_t seed = 1; seed <= 3; ++seed) {
      pack(class_rows(600, 40, classes, seed));
      Tuning tuning = tuned(5, parse_costs("0.1:1:10"));
      options_.cost = tuning.costs[tuning.best].cost;
      const TrainReport cold = train(options_, {}, {}, false);
      const TrainReport warm = train(options_, {}, {}, false, std::move(tuning.start));
      cold_passes += cold.summary.passes;
      warm_passes += warm.summary.passes;
      for (size_t i = 0; i < cold.summary.certificates.size(); ++i) {
        EXPECT_LE(warm.summary.certificates[i].gap(), 0.01);
        EXPECT_NEAR(warm.summary.certificates[i].primal, cold.summary.certificates[i].primal,
                    0.02 * cold.summary.certificates[i].primal);
      }
    }
    EXPECT_LT(warm_passes, cold_passes) << classes << " classes";
  }
}

TEST_F(Tune, GivesTheSameBitsForAnyNumberOfThreads) {
  pack(class_rows(300, 8, 3, 7));
  options_.solve.tolerance = 1e-3;
  const std::vector<double> range = parse_costs("0.01:1:10");
  const Tuning one = tuned(3, range);
  for (const size_t threads : {2, 5}) expect_same(one, tuned(3, range, {.team = threads}));
}

TEST_F(Tune, StoppedAnywhereEndsWithTheSameBits) {
  for (const int32_t classes : {2, 3}) {
    pack(class_rows(200, 6, classes, 8));
    options_.solve = {.method = Dual{.inner = 1}, .tolerance = 1e-2, .chunks_per_block = 1};
    const Tuning whole = tuned(2);
    Context context;
    context.checkpoint.path = folder_ / "STATE";
    Tuning result;
    const int stops = with_stops(context, {StopAt::block, StopAt::reading, StopAt::pass},
                                 [&](const Context& life, const TrainObserver& observer) {
                                   result = tune(options_, {{.folds = 2}, {}}, life, observer, [](const TunedCost&) {});
                                 });
    EXPECT_GE(stops, 10);
    expect_same(whole, result);
    std::filesystem::remove(folder_ / "STATE.stages");
  }
}

TEST_F(Tune, GoesOnWithTheSameOptionsOnly) {
  pack(two_classes(200, 6, 9));
  const std::vector<double> range = parse_costs("0.01:1:10");
  const std::atomic<bool> stop = true;
  Context context;
  context.checkpoint.path = folder_ / "STATE";
  context.stop = &stop;
  expect_error(ErrorKind::interrupted, {"the same command"}, [&] { tuned(3, range, context); });
  context.stop = nullptr;
  const std::vector<double> other = parse_costs("0.01:1:2");
  expect_error(ErrorKind::usage, {"another run", "costs: 0.01,0.1,1 then, 0.01,0.02,0.04,0.08,0.16,0.32,0.64 now"},
               [&] { tuned(3, other, context); });
  expect_error(ErrorKind::usage, {"folds: 3 then, 5 now"}, [&] { tuned(5, range, context); });
  options_.fresh = true;
  expect_same(tuned(5, range, context), tuned(5, range));
}

TEST_F(Tune, ModelsThatDoNotFitTheMemoryAreRefused) {
  std::vector<OwnedRow> rows = two_classes(200, 6, 10);
  rows[0].index.push_back(500'000);
  rows[0].value.push_back(1);
  pack(rows);
  Context context{.memory_bytes = uint64_t{16} << 20};
  expect_error(ErrorKind::memory, {"for each of 10 tasks", "memory allows", "give memory"},
               [&] { tuned(10, parse_costs("1:1:2"), context); });
}

TEST_F(Tune, WorksWithTheOtherSolversWithoutAWarmStart) {
  pack(two_classes(200, 4, 11));
  options_.solve.max_passes = 20;
  for (const AnyMethod& method :
       {AnyMethod(Pegasos{}), AnyMethod(Average{}), AnyMethod(Subsample{}), AnyMethod(CrammerSinger{})}) {
    options_.solve.method = method;
    if (std::holds_alternative<CrammerSinger>(method)) options_.loss = Hinge{};
    const Tuning found = tuned(3, parse_costs("0.1:10:10"));
    ASSERT_EQ(found.costs.size(), 3U) << name_of(method);
    EXPECT_GT(found.costs[found.best].accuracy, 0.6) << name_of(method);
    EXPECT_TRUE(found.start.empty()) << name_of(method);
  }
}

}  // namespace
}  // namespace linblock
