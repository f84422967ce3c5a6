// Metrics: what they are of counts, what always answering the same has, and what they are refused for.
#include "learn/metric.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/errors.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

ClassCounts counts_of(const std::vector<std::pair<int32_t, int32_t>>& labels_and_predictions) {
  ClassCounts counts;
  for (const auto& [label, predicted] : labels_and_predictions) counts.add(label, predicted);
  return counts;
}

TEST(Metric, HasItsNameInTheOrderOfItsValues) {
  for (const auto& [name, metric] : choices(Metric{})) {
    EXPECT_EQ(name_of(metric), name);
    EXPECT_EQ(Text<Metric>::read(name, {}), metric);
    EXPECT_FALSE(words_of(metric).empty());
  }
  EXPECT_EQ(choices(Metric{}).back().second, last_of(Metric{}));
}

TEST(Metric, OfTwoClassesFollowsFromCounts) {
  // Three of four positives are found, with two false alarms among six negatives.
  const ClassCounts counts =
      counts_of({{1, 1}, {1, 1}, {1, 1}, {1, -1}, {-1, 1}, {-1, 1}, {-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}});
  EXPECT_DOUBLE_EQ(*counts.value(Metric::accuracy, 1), 0.7);
  EXPECT_DOUBLE_EQ(*counts.value(Metric::balanced_accuracy, 1), (3.0 / 4 + 4.0 / 6) / 2);
  EXPECT_DOUBLE_EQ(*counts.value(Metric::f1, 1), 2 * 3.0 / (4 + 5));
  EXPECT_DOUBLE_EQ(*counts.value(Metric::f1, -1), 2 * 4.0 / (6 + 5));
  EXPECT_DOUBLE_EQ(*counts.value(Metric::f1, std::nullopt), (6.0 / 9 + 8.0 / 11) / 2);
  EXPECT_EQ(counts.value(Metric::auc, 1), std::nullopt) << "does not follow from counts";
  EXPECT_EQ(counts.value(Metric::log_loss, 1), std::nullopt);
}

TEST(Metric, OfNoRowsIsNone) {
  EXPECT_EQ(ClassCounts().value(Metric::accuracy, 1), std::nullopt);
  const ClassCounts negatives = counts_of({{-1, 1}, {-1, -1}});
  EXPECT_EQ(negatives.value(Metric::f1, 1), std::nullopt) << "there are no positives to be found";
  EXPECT_DOUBLE_EQ(*negatives.value(Metric::balanced_accuracy, 1), 0.5);
}

TEST(Metric, HasTheBaselineOfAnAnswerThatLooksAtNothing) {
  const std::map<int32_t, uint64_t> rare = {{-1, 990}, {1, 10}};
  EXPECT_DOUBLE_EQ(baseline_of(Metric::accuracy, rare, 1), 0.99);
  EXPECT_DOUBLE_EQ(baseline_of(Metric::balanced_accuracy, rare, 1), 0.5);
  EXPECT_EQ(baseline_of(Metric::f1, rare, 1), 0);
  EXPECT_DOUBLE_EQ(baseline_of(Metric::f1, rare, -1), 2 * 0.99 / 1.99) << "always yes, where yes is frequent";
  EXPECT_EQ(baseline_of(Metric::auc, rare, 1), 0.5);
  EXPECT_DOUBLE_EQ(baseline_of(Metric::log_loss, rare, 1), -0.99 * std::log(0.99) - 0.01 * std::log(0.01));
  const std::map<int32_t, uint64_t> three = {{1, 50}, {2, 25}, {3, 25}, {4, 0}};
  EXPECT_DOUBLE_EQ(baseline_of(Metric::balanced_accuracy, three, std::nullopt), 1.0 / 3);
  EXPECT_DOUBLE_EQ(baseline_of(Metric::f1, three, std::nullopt), (2 * 0.5 / 1.5) / 3);
  EXPECT_DOUBLE_EQ(baseline_of(Metric::log_loss, three, std::nullopt), 1.5 * std::log(2));
}

// The counts of that answer have the value that is said to be the baseline.
TEST(Metric, HasABaselineThatAlwaysTheSameAnswerReaches) {
  for (const std::vector<uint64_t>& sizes : {std::vector<uint64_t>{7, 3}, {3, 7}, {4, 9, 2}}) {
    std::map<int32_t, uint64_t> rows;
    ClassCounts frequent;
    for (size_t i = 0; i < sizes.size(); ++i) rows[static_cast<int32_t>(i + 1)] = sizes[i];
    const auto most = static_cast<int32_t>(std::max_element(sizes.begin(), sizes.end()) - sizes.begin() + 1);
    for (const auto& [label, count] : rows)
      for (uint64_t i = 0; i < count; ++i) frequent.add(label, most);
    const std::optional<int32_t> positive = sizes.size() == 2 ? std::optional(1) : std::nullopt;
    EXPECT_DOUBLE_EQ(*frequent.value(Metric::accuracy, positive), baseline_of(Metric::accuracy, rows, positive));
    EXPECT_DOUBLE_EQ(*frequent.value(Metric::balanced_accuracy, positive),
                     baseline_of(Metric::balanced_accuracy, rows, positive));
    // Classes that no row is predicted as count in the mean, since rows have them.
    EXPECT_DOUBLE_EQ(*frequent.value(Metric::f1, positive), baseline_of(Metric::f1, rows, positive));
  }
}

TEST(Metric, IsOfTheLargerLabelUnlessAnotherIsNamed) {
  EXPECT_EQ(positive_label({.labels = {1, -1}, .positives = {1}}), 1);
  EXPECT_EQ(positive_label({.labels = {-1, 1}, .positives = {-1}, .against_rest = true}), -1);
  EXPECT_EQ(positive_label({.labels = {-1, 1}, .positives = {-1}, .all_at_once = true}), 1);
  EXPECT_EQ(positive_label({.labels = {1, 2, 3}, .positives = {1, 2, 3}}), std::nullopt);
}

TEST(Metric, ThatAProblemDoesNotHaveIsRefused) {
  expect_error(ErrorKind::usage, {"metric log-loss needs models with probabilities, and hinge has none"},
               [] { check_metric(Metric::log_loss, AnyLoss(Hinge{})); });
  check_metric(Metric::log_loss, AnyLoss(Logistic{}));
  check_metric(Metric::auc, AnyLoss(Hinge{}));
  const Classes three{.labels = {1, 2, 3}, .positives = {1, 2, 3}};
  expect_error(ErrorKind::usage, {"metric auc is for two classes, and there are 3 labels"},
               [&] { check_metric(Metric::auc, three); });
  check_metric(Metric::f1, three);
  check_metric(Metric::auc, {.labels = {1, -1}, .positives = {1}});
}

}  // namespace
}  // namespace linblock
