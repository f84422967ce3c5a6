#include "solve/core/pass.h"

#include "base/clock.h"
#include "base/error.h"

namespace linblock {

Duals make_duals(const Store& store, bool in_file, const Checkpoint& checkpoint, size_t task) {
  if (!in_file) return Duals(store);
  return {store, fmt::format("{}.duals{}", checkpoint.path, task == 0 ? "" : fmt::format("-{}", task))};
}

Duals make_duals(const Setup& setup, size_t task) {
  return make_duals(*setup.problem.store, setup.plan.duals_in_file, setup.context.checkpoint, task);
}

bool for_each_task(const Context& context, size_t count, const std::function<bool(size_t)>& work) {
  const Stopwatch working;
  std::atomic<bool> finished = true;
  context.team.for_each(count, [&](size_t number) {
    if ((number > 0 && context.stopped() && working.seconds() > kStopSeconds) || !work(number)) finished = false;
  });
  return finished;
}

std::vector<std::span<const float>> weights_of(const std::vector<Solution>& solutions) {
  std::vector<std::span<const float>> weights;
  weights.reserve(solutions.size());
  for (const Solution& solution : solutions) weights.emplace_back(solution.weights);
  return weights;
}

}  // namespace linblock
