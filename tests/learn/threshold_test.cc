// The best decision threshold, against a search among all of them.
#include "learn/threshold.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "support/errors.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Metric kCounted[] = {Metric::accuracy, Metric::balanced_accuracy, Metric::f1};

struct Rows {
  std::vector<double> decisions;
  std::vector<uint8_t> first;
};

// Of the labels that a threshold gives, counted one by one.
double value_at(double threshold, const Rows& rows, Metric metric, bool first_is_positive) {
  ClassCounts counts;
  for (size_t i = 0; i < rows.decisions.size(); ++i)
    if (std::isfinite(rows.decisions[i])) counts.add(rows.first[i] != 0 ? 1 : 2, rows.decisions[i] > threshold ? 1 : 2);
  return counts.value(metric, first_is_positive ? 1 : 2).value();
}

// One for each set of thresholds that give the same labels, as threshold.h has them.
std::vector<double> all_thresholds(const Rows& rows) {
  std::set<double> ends = {-kInfinity, kInfinity};
  for (const double decision : rows.decisions)
    if (std::isfinite(decision)) ends.insert(decision);
  std::vector<double> all;
  for (auto low = ends.begin(); *low < kInfinity; ++low) {
    const double high = *std::next(low);
    if (*low <= 0 && 0 < high)
      all.push_back(0);
    else if (std::isfinite(*low) && std::isfinite(high))
      all.push_back((*low + high) / 2);
    else
      all.push_back(high == 0 ? -1 : 2 * (std::isfinite(high) ? high : *low));
  }
  return all;
}

void expect_best(const Rows& rows, Metric metric, bool first_is_positive) {
  const ChosenThreshold chosen = choose_threshold(metric, rows.decisions, rows.first, first_is_positive);
  const auto value = [&](double threshold) { return value_at(threshold, rows, metric, first_is_positive); };
  EXPECT_EQ(chosen.metric, metric);
  EXPECT_NEAR(chosen.value, value(chosen.threshold), 1e-12) << "what it says of itself";
  EXPECT_NEAR(chosen.at_zero, value(0), 1e-12);
  double best = 0;
  double nearest = kInfinity;
  for (const double threshold : all_thresholds(rows)) best = std::max(best, value(threshold));
  for (const double threshold : all_thresholds(rows))
    if (value(threshold) > best - 1e-12) nearest = std::min(nearest, std::abs(threshold));
  EXPECT_NEAR(value(chosen.threshold), best, 1e-12);
  EXPECT_NEAR(std::abs(chosen.threshold), nearest, 1e-12 * nearest);
}

TEST(Threshold, IsTheBestOfAll) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 300; ++trial) {
    Rows rows;
    const size_t count = 2 + random() % 40;
    const double shift = 2 * normal(random);
    const bool coarse = trial % 3 == 0;  // many ties
    for (size_t i = 0; i < count; ++i) {
      const bool first = i == 0 || (i > 1 && random() % 5 == 0);
      const double decision = normal(random) + shift + (first ? 1 : 0);
      rows.decisions.push_back(coarse ? std::round(decision) : decision);
      rows.first.push_back(first ? 1 : 0);
    }
    SCOPED_TRACE(trial);
    for (const Metric metric : kCounted)
      for (const bool first_is_positive : {true, false}) expect_best(rows, metric, first_is_positive);
  }
}

TEST(Threshold, IsTheMiddleBetweenTwoDecisionsOrZero) {
  const auto best = [](std::vector<double> decisions, std::vector<uint8_t> first) {
    return choose_threshold(Metric::accuracy, decisions, first, true).threshold;
  };
  EXPECT_EQ(best({-3, -2, -1, 5}, {0, 0, 1, 1}), -1.5);
  EXPECT_EQ(best({1, 2, 4, 5}, {0, 0, 1, 1}), 3);
  EXPECT_EQ(best({-2, -1, 4, 5}, {0, 0, 1, 1}), 0) << "it separates them as well as 1.5";
  EXPECT_EQ(best({-2, 0, 4, 5}, {0, 0, 1, 1}), 0) << "a decision of 0 is not above 0";
}

TEST(Threshold, LiesBeyondAllDecisionsWhereOneAnswerIsBest) {
  const std::vector<uint8_t> mostly_second = {1, 0, 0, 0};
  const std::vector<double> turned = {1, 2, 3, 4};  // the only row of the first class has the smallest decision
  EXPECT_GT(choose_threshold(Metric::accuracy, turned, mostly_second, true).threshold, 4);
  const std::vector<double> negative = {-4, -3, -2, -1};
  const std::vector<uint8_t> mostly_first = {1, 1, 1, 0};
  EXPECT_LT(choose_threshold(Metric::accuracy, negative, mostly_first, true).threshold, -4);
  const std::vector<double> at_zero = {0, 0, 0, -1};
  EXPECT_LT(choose_threshold(Metric::accuracy, at_zero, mostly_first, true).threshold, 0);
}

TEST(Threshold, OfDecisionsAtTheEndsOfTheirRangeIsFinite) {
  const double most = 1e300;
  const std::vector<double> decisions = {-most, most, -most, most, kInfinity, -kInfinity, std::nan("")};
  const std::vector<uint8_t> first = {0, 1, 1, 0, 1, 0, 1};
  for (const Metric metric : kCounted) {
    const ChosenThreshold chosen = choose_threshold(metric, decisions, first, true);
    EXPECT_TRUE(std::isfinite(chosen.threshold));
    EXPECT_EQ(chosen.rows, 4U) << "those that are finite";
  }
}

TEST(Threshold, NeedsRowsOfBothClasses) {
  const std::vector<double> decisions = {1, 2};
  for (const std::vector<uint8_t>& first : {std::vector<uint8_t>{1, 1}, {0, 0}})
    expect_error(ErrorKind::input, {"2 rows are held out, and not of both classes", "leave out threshold"},
                 [&] { choose_threshold(Metric::f1, decisions, first, true); });
  expect_error(ErrorKind::input, {"0 rows are held out"}, [] { choose_threshold(Metric::f1, {}, {}, true); });
}

}  // namespace
}  // namespace linblock
