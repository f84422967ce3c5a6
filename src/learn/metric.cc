#include "learn/metric.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace linblock {

std::string_view name_of(Metric metric) { return choices(metric)[static_cast<size_t>(metric)].first; }

std::string_view words_of(Metric metric) {
  switch (metric) {
    case Metric::balanced_accuracy: return "balanced accuracy";
    case Metric::f1: return "F1";
    case Metric::auc: return "AUC";
    case Metric::accuracy:
    case Metric::log_loss: break;
  }
  return name_of(metric);
}

void check_metric(Metric metric, const AnyLoss& loss) {
  if (metric != Metric::log_loss || has_probabilities(loss)) return;
  fail(ErrorKind::usage, {use("loss", "logistic"), use("metric", "auc")},
       "`metric` log-loss needs models with probabilities, and {} has none", name_of(loss));
}

void check_metric(Metric metric, const Classes& classes) {
  if (metric != Metric::auc || classes.labels.size() == 2) return;
  fail(ErrorKind::usage, {say("choose one label with `positive`"), use("metric", "f1")},
       "`metric` auc is for two classes, and there are {} labels", classes.labels.size());
}

void ClassCounts::add(int32_t label, int32_t predicted) {
  ++rows;
  ++classes[label].rows;
  ++classes[predicted].predicted;
  if (label != predicted) return;
  ++correct;
  ++classes[label].correct;
}

double ClassCounts::macro_f1() const {
  double sum = 0;
  for (const auto& [label, quality] : classes) sum += quality.f1();
  return classes.empty() ? 0 : sum / static_cast<double>(classes.size());
}

double ClassCounts::balanced_accuracy() const {
  double sum = 0;
  double count = 0;
  for (const auto& [label, quality] : classes) {
    sum += quality.recall();
    count += quality.rows > 0 ? 1 : 0;
  }
  return count == 0 ? 0 : sum / count;
}

int32_t ClassCounts::most_frequent() const {
  const auto by_rows = [](const auto& one, const auto& other) { return one.second.rows < other.second.rows; };
  const auto largest = std::max_element(classes.begin(), classes.end(), by_rows);
  return largest == classes.end() ? 0 : largest->first;
}

double ClassCounts::baseline() const {
  return rows == 0 ? 0 : static_cast<double>(classes.at(most_frequent()).rows) / static_cast<double>(rows);
}

std::optional<double> ClassCounts::value(Metric metric, std::optional<int32_t> positive) const {
  if (rows == 0) return {};
  if (metric == Metric::accuracy) return accuracy();
  if (metric == Metric::balanced_accuracy) return balanced_accuracy();
  if (metric != Metric::f1) return {};
  if (!positive) return macro_f1();
  const auto quality = classes.find(*positive);
  return quality == classes.end() || quality->second.rows == 0 ? std::nullopt : std::optional(quality->second.f1());
}

std::optional<int32_t> positive_label(const Classes& classes) {
  if (classes.labels.size() != 2) return {};
  return classes.labels[classes.all_at_once ? 1 : 0];
}

double baseline_of(Metric metric, const std::map<int32_t, uint64_t>& rows, std::optional<int32_t> positive) {
  ClassCounts counts;
  for (const auto& [label, number] : rows) {
    if (number == 0) continue;
    counts.rows += number;
    counts.classes[label].rows = number;
  }
  const auto classes = static_cast<double>(counts.classes.size());
  const double frequent = counts.baseline();
  const double its_f1 = 2 * frequent / (1 + frequent);  // every row has its answer
  switch (metric) {
    case Metric::accuracy: return frequent;
    case Metric::balanced_accuracy: return classes == 0 ? 0 : 1 / classes;
    case Metric::f1:
      if (positive) return counts.most_frequent() == *positive ? its_f1 : 0;
      return classes == 0 ? 0 : its_f1 / classes;
    case Metric::auc: return 0.5;
    case Metric::log_loss: break;
  }
  double entropy = 0;
  for (const auto& [label, quality] : counts.classes) {
    const double share = static_cast<double>(quality.rows) / static_cast<double>(counts.rows);
    entropy -= share * std::log(share);
  }
  return entropy;
}

std::optional<double> area_under_curve(std::vector<std::pair<float, bool>>& scores) {
  std::sort(scores.begin(), scores.end());
  double positives = 0;
  double negatives = 0;
  double wins = 0;
  for (size_t i = 0; i < scores.size();) {
    size_t end = i;
    double tied_positives = 0;
    double tied_negatives = 0;
    for (; end < scores.size() && scores[end].first == scores[i].first; ++end)
      (scores[end].second ? tied_positives : tied_negatives) += 1;
    wins += tied_positives * (negatives + tied_negatives / 2);
    positives += tied_positives;
    negatives += tied_negatives;
    i = end;
  }
  if (positives == 0 || negatives == 0) return {};
  return wins / (positives * negatives);
}

}  // namespace linblock
