// AvgBlock: a model for each block, averaged.
//
// Problem:  each block on its own, min over w  1/2 |w|^2 + C sum over the block of losses; the answer is the mean
// Update:   dual coordinate descent on the block from zero, until its projected gradients lie within 0.1 of each other
// Paper:    Yu, Hsieh, Chang, Lin: sections 7.2 and 8.3 (AvgBlock), a bagging method.
// Reads:    the whole store once, and once for the certificate.
//
// The mean of m models is v of the duals divided by m, which are feasible for the whole problem: so it is certified.
#include <algorithm>
#include <chrono>

#include "solve/dual_block.h"

namespace linblock {

Summary solve_average(const Problem& problem, const SolveOptions& options, const Average& method,
                      std::vector<Solution>& solutions, const Context& context) {
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  Summary summary;
  summary.plan = make_plan(problem, method, context);
  context.on_plan(summary.plan);
  BlockSource blocks(*problem.store, summary.plan.rows, summary.plan.window_bytes, context.threads);
  const BlockOrder order = order_of_pass(*problem.store,
                                         {.schedule = Schedule::fixed,
                                          .chunks_per_block = summary.plan.chunks_per_block,
                                          .sequence = BlockSequence::sequential,
                                          .seed = options.seed},
                                         1);
  const auto share = 1 / static_cast<float>(order.ends.size());
  const Task& task = problem.tasks.front();
  Solution& solution = solutions.front();
  std::vector<float> mean(problem.weights(), 0);
  DualDescent descent(problem, task, options.seed, solution);
  descent.begin_pass(1);
  bool stopped = false;
  blocks.for_each(order, [&](const Block& block, size_t number) {
    std::fill(solution.weights.begin(), solution.weights.end(), 0.0F);
    descent.solve_block(block, number, kConvergeRounds, true);
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += share * solution.weights[i];
    for (const uint32_t chunk : block.numbers)
      for (double& alpha : solution.duals.page(chunk)) alpha *= double{share};
    stopped = context.stop != nullptr && *context.stop;
    return !stopped;
  });
  solution.weights = std::move(mean);
  summary.passes = 1;
  summary.solve_seconds = seconds() - blocks.wait_seconds();
  const Certificate certificate = certify(problem, task, solution, BlockOrder::all(*problem.store), blocks);
  summary.certify_seconds = seconds() - summary.solve_seconds;
  context.observer({.pass = 1,
                    .seconds = seconds(),
                    .primal_estimate = certificate.primal,
                    .dual = certificate.dual,
                    .certified = certificate,
                    .bytes_read = blocks.bytes_read(),
                    .wait_seconds = blocks.wait_seconds(),
                    .solve_seconds = summary.solve_seconds,
                    .weights = &solution.weights});
  summary.termination = stopped                                  ? Termination::interrupted
                        : certificate.gap() <= options.tolerance ? Termination::converged
                                                                 : Termination::pass_limit;
  summary.certificates = {certificate};
  summary.bytes_read = blocks.bytes_read();
  summary.read_wait_seconds = blocks.wait_seconds();
  summary.total_seconds = seconds();
  return summary;
}

}  // namespace linblock
