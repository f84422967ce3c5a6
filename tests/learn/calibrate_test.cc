// The sigmoid that makes probabilities of decision values: the best there is, and a number for whatever it is given.
#include "learn/calibrate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"

namespace linblock {
namespace {

struct Decided {
  std::vector<double> decisions;
  std::vector<uint8_t> positive;
  double positives = 0;
  double negatives = 0;

  void add(double decision, bool is_positive, size_t times = 1) {
    decisions.insert(decisions.end(), times, decision);
    positive.insert(positive.end(), times, is_positive ? 1 : 0);
    (is_positive ? positives : negatives) += static_cast<double>(times);
  }
  double target(size_t i) const { return positive[i] != 0 ? (positives + 1) / (positives + 2) : 1 / (negatives + 2); }
  Sigmoid fitted() const { return fit_sigmoid(decisions, positive); }
};

// From the definition, for exponents of ordinary size.
double loss(const Decided& data, const Sigmoid& sigmoid) {
  double sum = 0;
  for (size_t i = 0; i < data.decisions.size(); ++i) {
    const double p = 1 / (1 + std::exp(sigmoid.slope * data.decisions[i] + sigmoid.offset));
    sum -= data.target(i) * std::log(p) + (1 - data.target(i)) * std::log(1 - p);
  }
  return sum;
}

// Rows whose true probability is the sigmoid 1 / (1 + exp(slope f + offset)).
Decided drawn(size_t rows, const Sigmoid& truth, uint64_t seed) {
  Random random(seed);
  Decided data;
  for (size_t i = 0; i < rows; ++i) {
    const double decision = 6 * random.unit() - 3;
    data.add(decision, random.unit() < 1 / (1 + std::exp(truth.slope * decision + truth.offset)));
  }
  return data;
}

// Both derivatives of the loss vanish at its only optimum.
void expect_optimum(const Decided& data, const Sigmoid& sigmoid) {
  ASSERT_TRUE(std::isfinite(sigmoid.slope) && std::isfinite(sigmoid.offset));
  double by_offset = 0;
  double by_slope = 0;
  double size = 0;
  for (size_t i = 0; i < data.decisions.size(); ++i) {
    const double rest = data.target(i) - sigmoid.probability(data.decisions[i]);
    by_offset += rest;
    by_slope += rest * data.decisions[i];
    size = std::max(size, std::abs(data.decisions[i]));
  }
  const auto rows = static_cast<double>(data.decisions.size());
  EXPECT_NEAR(by_offset / rows, 0, 1e-7);
  EXPECT_NEAR(by_slope / rows / std::max(size, 1e-300), 0, 1e-7);
}

TEST(Calibrate, FindsThePlaceWhereTheLossDoesNotChange) {
  for (const uint64_t seed : {1, 2, 3, 4, 5})
    for (const size_t rows : {5, 40, 3000}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << rows << " rows");
      const Decided data = drawn(rows, {.slope = -1.5, .offset = 0.7}, seed);
      expect_optimum(data, data.fitted());
    }
}

TEST(Calibrate, NoOtherSigmoidIsBetter) {
  const Decided data = drawn(200, {.slope = -2, .offset = -1}, 9);
  const Sigmoid best = data.fitted();
  const double least = loss(data, best);
  for (double slope = -6; slope <= 2; slope += 0.05)
    for (double offset = -4; offset <= 4; offset += 0.05)
      ASSERT_GE(loss(data, {.slope = slope, .offset = offset}), least - 1e-9) << slope << ", " << offset;
  for (const double step : {1e-3, -1e-3}) {
    EXPECT_GT(loss(data, {.slope = best.slope + step, .offset = best.offset}), least);
    EXPECT_GT(loss(data, {.slope = best.slope, .offset = best.offset + step}), least);
  }
}

TEST(Calibrate, FindsTheSigmoidThatTheRowsWereDrawnFrom) {
  const Sigmoid found = drawn(200000, {.slope = -1.5, .offset = 0.7}, 3).fitted();
  EXPECT_NEAR(found.slope, -1.5, 0.03);
  EXPECT_NEAR(found.offset, 0.7, 0.03);
}

TEST(Calibrate, OfTwoDecisionsEachGetsTheTargetOfItsClass) {
  Decided data;
  data.add(1, true, 8);
  data.add(-1, false, 3);
  const Sigmoid found = data.fitted();
  EXPECT_NEAR(found.probability(1), 9.0 / 10, 1e-9);
  EXPECT_NEAR(found.probability(-1), 1.0 / 5, 1e-9);
}

TEST(Calibrate, DecisionsTheWrongWayRoundAreTurned) {
  Decided data;
  data.add(-2, true, 50);
  data.add(2, false, 50);
  EXPECT_GT(data.fitted().slope, 0);
  EXPECT_GT(data.fitted().probability(-2), 0.9);
}

TEST(Calibrate, RowsOfOneClassGiveTheSameProbabilityEverywhere) {
  Decided positives;
  for (int i = 0; i < 10; ++i) positives.add(i - 5, true);
  Decided negatives;
  for (int i = 0; i < 10; ++i) negatives.add(i * 1e10, false);
  for (const double decision : {-1e6, 0.0, 3.0, 1e6}) {
    EXPECT_NEAR(positives.fitted().probability(decision), 11.0 / 12, 1e-12);
    EXPECT_NEAR(negatives.fitted().probability(decision), 1.0 / 12, 1e-12);
    EXPECT_EQ(Decided().fitted().probability(decision), 0.5) << "of no rows at all";
  }
}

TEST(Calibrate, DecisionsThatAreAllTheSameGiveTheShareOfTheClass) {
  for (const double decision : {0.0, 0.3, -1e-200, 1e30}) {
    Decided data;
    data.add(decision, true, 30);
    data.add(decision, false, 10);
    const double targets = (30 * (31.0 / 32) + 10 * (1.0 / 12)) / 40;
    EXPECT_NEAR(data.fitted().probability(decision), targets, 1e-9) << decision;
  }
}

TEST(Calibrate, DecisionsOfAnySizeAreFitted) {
  for (const double size : {1e-310, 1e-290, 1e-20, 1e8, 1e30, 1e150, 1e300}) {
    SCOPED_TRACE(size);
    Decided data = drawn(500, {.slope = -1.5, .offset = 0.7}, 5);
    const Sigmoid plain = data.fitted();
    const double one = data.decisions[0];
    for (double& decision : data.decisions) decision *= size;
    const Sigmoid found = data.fitted();
    ASSERT_TRUE(std::isfinite(found.slope) && std::isfinite(found.offset));
    if (size < 1e-290) continue;  // its slope is beyond what a double holds
    EXPECT_NEAR(found.probability(one * size), plain.probability(one), 1e-6);
  }
}

TEST(Calibrate, OneHugeDecisionAmongOrdinaryOnesIsFittedToo) {
  for (const double huge : {1e6, -1e6, 1e30, -1e30, 1e200}) {
    SCOPED_TRACE(huge);
    Decided data = drawn(300, {.slope = -1.5, .offset = 0.7}, 8);
    data.add(huge, true);
    expect_optimum(data, data.fitted());
  }
}

TEST(Calibrate, FarFromZeroWithLittleSpreadIsFittedToo) {
  Decided data = drawn(400, {.slope = -1.5, .offset = 0.7}, 6);
  for (double& decision : data.decisions) decision += 1e6;
  const Sigmoid found = data.fitted();
  EXPECT_NEAR(found.slope, drawn(400, {.slope = -1.5, .offset = 0.7}, 6).fitted().slope, 1e-4);
}

TEST(Calibrate, DecisionsThatAreNotNumbersAreLeftOut) {
  Decided data = drawn(300, {.slope = -1.5, .offset = 0.7}, 7);
  const Sigmoid without = data.fitted();
  data.add(std::numeric_limits<double>::quiet_NaN(), true);
  data.add(std::numeric_limits<double>::infinity(), false);
  EXPECT_EQ(data.fitted().slope, without.slope);
  EXPECT_EQ(data.fitted().offset, without.offset);
}

TEST(Calibrate, ProbabilitiesAreNumbersForDecisionsOfAnySize) {
  const Sigmoid sigmoid{.slope = -1e200, .offset = 3};
  EXPECT_EQ(sigmoid.probability(1e200), 1);
  EXPECT_EQ(sigmoid.probability(-1e200), 0);
  EXPECT_TRUE(std::isfinite(sigmoid.log_probability(-1e200)));
  EXPECT_NEAR(Sigmoid({.slope = -1, .offset = 0}).log_probability(-800), -800, 1e-9);
  EXPECT_NEAR(Sigmoid({.slope = -1, .offset = 0}).log_probability(0), std::log(0.5), 1e-15);
}

}  // namespace
}  // namespace linblock
