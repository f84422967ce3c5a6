#include "learn/start_weights.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "learn/model.h"

namespace linblock {

namespace {

// Where a task's weights stand in a row of the model, and their sign.
struct ClassPlace {
  size_t column = 0;
  float sign = 0;  // 0: the model does not know the label
};

// The label that is meant, in a model which may have other codes for the same words.
std::optional<int32_t> same_label(int32_t label, const LabelNames& names, const Model& model) {
  if (names.empty() && model.label_names.empty()) return label;
  return model.label_names.read(names.show(label));
}

// `together`: of one column that tells two labels apart, each of the two columns that take its place has a half.
ClassPlace place_of(int32_t positive, const LabelNames& names, const Model& model, bool together) {
  const std::optional<int32_t> label = same_label(positive, names, model);
  const auto place = label ? std::find(model.labels.begin(), model.labels.end(), *label) : model.labels.end();
  if (place == model.labels.end()) return {};
  const auto number = static_cast<size_t>(place - model.labels.begin());
  if (model.columns() > 1) return {number, 1};
  // One column tells two labels apart; the second may stand for all others, and then it is not a label.
  if (number == 1 && model.against_rest) return {};
  return {0, (number == 0 ? 1.0F : -1.0F) * (together ? 0.5F : 1.0F)};
}

}  // namespace

StartWeights start_weights(const std::string& path, const Problem& problem, bool all_at_once) {
  ModelRows rows(path);
  const Model& model = rows.header();
  StartWeights start;
  std::vector<ClassPlace> places;  // of every column of every task
  std::vector<int32_t> labels;
  if (all_at_once)
    for (const auto& [label, count] : problem.store->info().labels) labels.push_back(label);
  else
    for (const Task& task : problem.tasks) labels.push_back(task.positive);
  for (const int32_t label : labels) {
    places.push_back(place_of(label, problem.store->info().label_names, model, all_at_once));
    if (places.back().sign != 0) ++start.known;
  }
  const size_t width = all_at_once ? labels.size() : 1;
  start.solutions.resize(problem.tasks.size());
  for (Solution& solution : start.solutions) solution.weights.resize(problem.weights() * width, 0.0F);
  for (size_t i = 0; i < problem.tasks.size() && !all_at_once; ++i) {
    start.solutions[i].known_dual = model.bounds.of(problem, problem.tasks[i]);
    if (std::isfinite(start.solutions[i].known_dual)) ++start.bounded;
  }
  if (start.known == 0)
    fail(ErrorKind::input, {leave_out("warm")}, "`warm` '{}': it tells other labels apart than this training", path);
  const Store store = Store::open(problem.store->path());  // with a feature map that is gone again afterwards
  std::vector<float> row(model.columns());
  const auto set = [&](size_t weight, double factor) {
    for (size_t i = 0; i < start.solutions.size(); ++i)
      for (size_t c = 0; c < width; ++c) {
        const ClassPlace& place = places[all_at_once ? c : i];
        start.solutions[i].weights[weight * width + c] =
            static_cast<float>(factor * double{place.sign} * double{row[place.column]});
      }
  };
  for (uint64_t number = 0; number < model.features; ++number) {
    rows.next(row);
    const uint64_t index = number + static_cast<uint64_t>(model.index_base);
    if (index < store.info().feature_numbers()) set(store.features().number(static_cast<uint32_t>(index)), 1);
  }
  if (model.bias >= 0) rows.next(row);
  if (model.bias >= 0 && problem.has_bias() && problem.bias > 0) set(problem.weights() - 1, model.bias / problem.bias);
  return start;
}

}  // namespace linblock
