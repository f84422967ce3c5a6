#include "learn/held_out.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "objective/class_certificate.h"

namespace linblock {

namespace {

// log(1 + exp(z)) without overflow.
double softplus(double z) { return std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))); }

}  // namespace

HeldOutRows::HeldOutRows(const Store& store, const Classes& classes, uint32_t folds, uint64_t seed, Metric metric)
    : classes_(&classes), folds_(folds), seed_(seed), begin_(row_begins(store)), metric_(metric) {
  rows_.resize(begin_.back());
  if (has_shares(metric, classes.labels.size())) shares_.resize(rows_.size());
}

void HeldOutRows::Shares::add(double logarithm, bool is_own) {
  if (is_own) own = static_cast<float>(logarithm);
  const double larger = std::max(double{all}, logarithm);
  const double smaller = std::min(double{all}, logarithm);
  all = static_cast<float>(larger + std::log1p(std::exp(smaller - larger)));
}

void HeldOutRows::look_at_row(const Row& row, const Problem& problem, std::span<const Task> tasks,
                              std::span<const Solution> solutions, size_t number) {
  Held& held = rows_[number];
  const uint32_t fold = HeldOut::part_of(seed_, row.id, folds_);
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].held_out.first != fold) continue;
    if (classes_->all_at_once) {
      std::vector<double> scores(classes_->columns());
      exact_scores(row, problem.bias, solutions[i].weights, scores);
      held = {.fold = fold,
              .label = row.label,
              .predicted = classes_->label_of(scores),
              .decision = static_cast<float>(scores.size() == 2 ? scores[0] - scores[1]
                                                                : *std::max_element(scores.begin(), scores.end()))};
      for (size_t c = 0; c < scores.size() && !shares_.empty(); ++c)
        shares_[number].add(scores[c], row.label == classes_->labels[c]);
      return;
    }
    const auto decision = static_cast<float>(margin_of(row, 1, problem.bias, solutions[i].weights));
    if (!shares_.empty()) shares_[number].add(-softplus(-double{decision}), row.label == tasks[i].positive);
    const bool alone = classes_->positives.size() == 1;
    if (!alone && held.fold != kNowhere && decision <= held.decision) continue;
    held = {.fold = fold,
            .label = row.label,
            .predicted = alone && decision <= 0 ? classes_->labels[1] : tasks[i].positive,
            .decision = decision};
  }
}

void HeldOutRows::score(const Block& block, const Problem& problem, std::span<const Task> tasks,
                        std::span<const Solution> solutions, const Team& team) {
  team.for_each(block.chunks.size(), [&](size_t i) {
    RowBuffer buffer;
    const Chunk& chunk = *block.chunks[i];
    for (size_t number = 0; number < chunk.rows(); ++number) {
      const Row row = chunk.row(number, buffer);
      if (row.weight != 0) look_at_row(row, problem, tasks, solutions, begin_[block.numbers[i]] + number);
    }
  });
}

double HeldOutRows::log_loss(size_t number) const {
  const Held& held = rows_[number];
  const double sign = held.label == classes_->labels[0] ? -1 : 1;
  const double loss = shares_.empty() ? softplus(sign * double{held.decision})
                                      : double{shares_[number].all} - double{shares_[number].own};
  return std::min(loss, -std::log(kLeastProbability));
}

std::vector<FoldResult> HeldOutRows::folds() const {
  std::vector<FoldResult> results(folds_);
  // Rows without weight are in no fold, and nothing is learned from them either.
  std::vector<ClassCounts> counts(folds_);
  std::vector<double> losses(metric_ == Metric::log_loss ? folds_ : 0);
  std::map<int32_t, uint64_t> all_labels;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Held& held = rows_[i];
    if (held.fold == kNowhere) continue;
    const int32_t label = classes_->own_label(held.label);
    counts[held.fold].add(label, held.predicted);
    ++all_labels[label];
    if (!losses.empty()) losses[held.fold] += log_loss(i);
  }
  // Exactly as large as they are: a row of two classes takes 8 bytes more.
  std::vector<std::vector<std::pair<float, bool>>> scores(classes_->labels.size() == 2 ? folds_ : 0);
  for (uint32_t fold = 0; fold < scores.size(); ++fold) scores[fold].reserve(counts[fold].rows);
  for (const Held& held : rows_)
    if (held.fold != kNowhere && !scores.empty())
      scores[held.fold].emplace_back(held.decision, held.label == classes_->labels[0]);
  const std::optional<int32_t> positive = positive_label(*classes_);
  for (uint32_t fold = 0; fold < folds_; ++fold) {
    FoldResult& result = results[fold];
    result.rows = counts[fold].rows;
    result.correct = counts[fold].correct;
    for (const auto& [label, rows] : all_labels)
      if (const auto here = counts[fold].classes.find(label);
          here != counts[fold].classes.end() && here->second.rows == rows)
        result.learned_without.push_back(label);
    if (!scores.empty()) result.auc = area_under_curve(scores[fold]);
    result.value = counts[fold].value(metric_, positive);
    if (metric_ == Metric::auc) result.value = result.auc;
    if (!losses.empty() && result.rows > 0) result.value = losses[fold] / static_cast<double>(result.rows);
  }
  return results;
}

Evaluation HeldOutRows::pooled() const {
  Evaluation result;
  result.label_names = classes_->label_names;
  double loss = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].fold == kNowhere) continue;
    result.add(classes_->own_label(rows_[i].label), rows_[i].predicted);
    if (metric_ == Metric::log_loss) loss += log_loss(i);
  }
  if (metric_ == Metric::log_loss && result.rows > 0) result.log_loss = loss / static_cast<double>(result.rows);
  return result;
}

double HeldOutRows::distance(const HeldOutRows& other) const {
  double apart = 0;
  double size = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const double difference = double{rows_[i].decision} - double{other.rows_[i].decision};
    apart += difference * difference;
    size += double{rows_[i].decision} * double{rows_[i].decision};
  }
  return size > 0 ? std::sqrt(apart / size) : 0;
}

void HeldOutRows::save(FieldWriter& to) const {
  to("rows", rows_);
  if (!shares_.empty()) to("shares", shares_);
}

void HeldOutRows::restore(FieldReader& from) {
  from("rows", std::span(rows_));
  if (!shares_.empty()) from("shares", std::span(shares_));
  for (const Held& held : rows_)
    if (held.fold != kNowhere && held.fold >= folds_) from.refuse_value("rows.fold");
}

Spread spread_of(const std::vector<double>& values) {
  Spread spread;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) spread.mean += value / count;
  for (const double value : values) spread.deviation += std::pow(value - spread.mean, 2);
  if (values.size() > 1) spread.deviation = std::sqrt(spread.deviation / (count - 1));
  return spread;
}

Spread spread_of(const std::vector<FoldResult>& folds, Metric metric) {
  std::vector<double> values;
  for (const FoldResult& fold : folds)
    if (fold.value) values.push_back(*fold.value);
  if (values.empty())
    fail(ErrorKind::input, {say("use fewer `folds`"), use("metric", "accuracy")},
         "`metric` {}: no fold has the rows that it needs", name_of(metric));
  return spread_of(values);
}

Spread accuracy_of(const std::vector<FoldResult>& folds) {
  std::vector<double> accuracies;
  for (const FoldResult& fold : folds)
    if (fold.rows > 0) accuracies.push_back(fold.accuracy());
  return spread_of(accuracies);
}

}  // namespace linblock
