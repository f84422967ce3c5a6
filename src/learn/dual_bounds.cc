#include "learn/dual_bounds.h"

#include <cmath>

#include "base/option.h"

namespace linblock {

double DualBounds::of(const Problem& problem_now, const Task& task) const {
  constexpr double kUnknown = -std::numeric_limits<double>::infinity();
  const auto bound = by_label.find(task.positive);
  // Which rows are held out depends on their ids, which the text does not know.
  if (bound == by_label.end() || problem_now.truncate || task.held_out.parts > 0 || !problem_now.store->info().values ||
      problem != describe_optimum(problem_now))
    return kUnknown;
  return bound->second;
}

std::string describe_optimum(const Problem& problem) {
  const StoreInfo& info = problem.store->info();
  const Task& task = problem.tasks.front();
  // Not the store's id: the same rows may be in another order, or compressed otherwise.
  std::string text =
      fmt::format("rows: {}, {:016x}, code {}\n", info.rows, info.values ? info.values->content : 0, info.width_set);
  text += identity_of(problem.loss);
  text += fmt::format("cost: {}\nbias: {}\nfree bias: {}\n", task.cost, problem.bias, problem.free_bias);
  text += "class weights:";
  for (const auto& [label, weight] : problem.class_weights) text += fmt::format(" {}={}", label, weight);
  return text + "\n";
}

DualBounds bounds_of(const Problem& problem, const Summary& summary, bool all_at_once) {
  if (!summary.has_dual || problem.truncate || all_at_once || !problem.store->info().values) return {};
  if (problem.tasks.front().held_out.parts > 0) return {};
  DualBounds bounds{.problem = describe_optimum(problem)};
  for (size_t i = 0; i < summary.certificates.size(); ++i)
    if (const double dual = summary.certificates[i].dual; std::isfinite(dual))
      bounds.by_label[problem.tasks[i].positive] = dual;
  return bounds;
}

}  // namespace linblock
