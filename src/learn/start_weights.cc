#include "learn/start_weights.h"

#include <algorithm>

#include "base/error.h"
#include "learn/model.h"

namespace linblock {

namespace {

// Where a task's weights stand in a row of the model, and their sign.
struct Place {
  size_t column = 0;
  float sign = 0;  // 0: the model does not know the label
};

Place place_of(int32_t positive, const Model& model) {
  const auto found = std::find(model.labels.begin(), model.labels.end(), positive);
  if (found == model.labels.end()) return {};
  const auto number = static_cast<size_t>(found - model.labels.begin());
  if (model.columns() > 1) return {number, 1};
  // One column tells two labels apart; the second may stand for all others, and then it is not a label.
  if (number == 1 && model.against_rest) return {};
  return {0, number == 0 ? 1.0F : -1.0F};
}

}  // namespace

StartWeights start_weights(const std::string& path, const Problem& problem) {
  ModelRows rows(path);
  const Model& model = rows.header();
  StartWeights start;
  std::vector<Place> places;
  for (const Task& task : problem.tasks) {
    places.push_back(place_of(task.positive, model));
    if (places.back().sign != 0) ++start.known;
    start.solutions.emplace_back();
    start.solutions.back().weights.resize(problem.weights(), 0.0F);
  }
  if (start.known == 0)
    fail(ErrorKind::input, {leave_out("warm")}, "`warm` '{}': it tells other labels apart than this training", path);
  const Store store = Store::open(problem.store->path());  // with a feature map that is gone again afterwards
  std::vector<float> row(model.columns());
  const auto set = [&](size_t weight, double factor) {
    for (size_t i = 0; i < places.size(); ++i)
      start.solutions[i].weights[weight] =
          static_cast<float>(factor * double{places[i].sign} * double{row[places[i].column]});
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
