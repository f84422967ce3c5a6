#include "solve/core/difficulty.h"

#include <algorithm>

namespace linblock {

namespace {

constexpr double kHard = 200;
constexpr double kHardWithFewRows = 1000;

}  // namespace

std::optional<double> difficulty(const Problem& problem) {
  const StoreInfo& info = problem.store->info();
  if (!info.values || info.rows == 0) return {};
  double cost = 0;
  for (const Task& task : problem.tasks) cost = std::max(cost, task.cost);
  double weight = problem.class_weights.empty() ? 1 : 0;
  for (const auto& [label, rows] : info.labels) {
    const auto multiplier = problem.class_weights.find(label);
    weight = std::max(weight, multiplier == problem.class_weights.end() ? 1 : multiplier->second);
  }
  const double bias = problem.has_bias() && !problem.free_bias ? problem.bias * problem.bias : 0;
  return cost * weight * (info.values->squares / static_cast<double>(info.rows) + bias);
}

double hard_from(const Problem& problem) {
  return problem.store->info().rows > problem.weights() ? kHard : kHardWithFewRows;
}

bool is_hard(const Problem& problem) {
  const std::optional<double> found = difficulty(problem);
  return found && *found > hard_from(problem);
}

}  // namespace linblock
