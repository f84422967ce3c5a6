#include "learn/held_out.h"

#include <algorithm>
#include <cmath>

#include "objective/class_certificate.h"

namespace linblock {

HeldOutRows::HeldOutRows(const Store& store, const Classes& classes, uint32_t folds, uint64_t seed)
    : classes_(&classes), folds_(folds), seed_(seed), begin_(row_begins(store)) {
  rows_.resize(begin_.back());
}

void HeldOutRows::look_at_row(const Row& row, const Problem& problem, std::span<const Task> tasks,
                              std::span<const Solution> solutions, Held& held) const {
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
      return;
    }
    const auto decision = static_cast<float>(margin_of(row, 1, problem.bias, solutions[i].weights));
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
      if (row.weight != 0) look_at_row(row, problem, tasks, solutions, rows_[begin_[block.numbers[i]] + number]);
    }
  });
}

std::vector<FoldResult> HeldOutRows::folds() const {
  std::vector<FoldResult> results(folds_);
  // Rows without weight are in no fold, and nothing is learned from them either.
  std::vector<std::map<int32_t, uint64_t>> labels(folds_);
  std::map<int32_t, uint64_t> all_labels;
  std::vector<std::vector<std::pair<float, bool>>> scores(classes_->labels.size() == 2 ? folds_ : 0);
  for (const Held& held : rows_) {
    if (held.fold == kNowhere) continue;
    FoldResult& fold = results[held.fold];
    ++fold.rows;
    if (classes_->is_right(held.label, held.predicted)) ++fold.correct;
    ++labels[held.fold][classes_->own_label(held.label)];
    ++all_labels[classes_->own_label(held.label)];
    if (!scores.empty()) scores[held.fold].emplace_back(held.decision, held.label == classes_->labels[0]);
  }
  for (uint32_t fold = 0; fold < folds_; ++fold) {
    for (const auto& [label, rows] : all_labels)
      if (labels[fold][label] == rows) results[fold].learned_without.push_back(label);
    if (!scores.empty()) results[fold].auc = area_under_curve(scores[fold]);
  }
  return results;
}

Evaluation HeldOutRows::pooled() const {
  Evaluation result;
  result.label_names = classes_->label_names;
  for (const Held& held : rows_)
    if (held.fold != kNowhere) result.add(classes_->own_label(held.label), held.predicted);
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

void HeldOutRows::save(FieldWriter& to) const { to("rows", rows_); }

void HeldOutRows::restore(FieldReader& from) {
  from("rows", std::span(rows_));
  for (const Held& held : rows_)
    if (held.fold != kNowhere && held.fold >= folds_) from.refuse_value("rows.fold");
}

Spread accuracy_of(const std::vector<FoldResult>& folds) {
  std::vector<double> accuracies;
  for (const FoldResult& fold : folds)
    if (fold.rows > 0) accuracies.push_back(fold.accuracy());
  Spread spread;
  const auto count = static_cast<double>(accuracies.size());
  for (const double accuracy : accuracies) spread.mean += accuracy / count;
  for (const double accuracy : accuracies) spread.deviation += std::pow(accuracy - spread.mean, 2);
  if (accuracies.size() > 1) spread.deviation = std::sqrt(spread.deviation / (count - 1));
  return spread;
}

}  // namespace linblock
