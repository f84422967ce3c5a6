// AvgBlock: a model for each block, averaged.
//
// Problem:  each block on its own, min over w  1/2 |w|^2 + C sum over the block of losses; the answer is the mean
// Update:   dual coordinate descent on the block from zero, until its projected gradients lie within 0.1 of each other
// Paper:    Yu, Hsieh, Chang, Lin: sections 7.2 and 8.3 (AvgBlock), a bagging method.
// Reads:    the whole store once, and once for the certificate.
//
// The mean of m models is v of the duals divided by m, which are feasible for the whole problem: so it is certified.
#include <algorithm>

#include "solve/dual_block.h"
#include "solve/run.h"

namespace linblock {

Summary solve_average(const Problem& problem, const SolveOptions& options, const Average& method,
                      std::vector<Solution>& solutions, const Context& context) {
  Run run(problem, options, method, context);
  const BlockOrder order = order_of_pass(*problem.store,
                                         {.schedule = Schedule::fixed,
                                          .chunks_per_block = run.plan().chunks_per_block,
                                          .sequence = BlockSequence::sequential,
                                          .seed = options.seed},
                                         1);
  const auto share = 1 / static_cast<float>(order.ends.size());
  const Task& task = problem.tasks.front();
  Solution& solution = solutions.front();
  if (solution.duals.empty()) solution.duals = run.make_duals();
  std::vector<float> mean(problem.weights(), 0);
  DualDescent descent(problem, task, options.seed, solution, context.stop);
  const auto save = [&](SnapshotWriter& to) {
    descent.save(to);
    to.put("average", std::span<const float>(mean));
  };
  if (const auto checkpoint = run.take_checkpoint()) {
    descent.restore(*checkpoint, order, run.block);
    checkpoint->take("average", std::span<float>(mean));
  } else {
    descent.begin_pass(1);
  }
  run.work_on_pass(
      order,
      [&](const Block& block, size_t number) {
        std::fill(solution.weights.begin(), solution.weights.end(), 0.0F);
        if (!descent.solve_block(block, number, {.most = kConvergeRounds, .converge = true})) return false;
        for (size_t i = 0; i < mean.size(); ++i) mean[i] += share * solution.weights[i];
        for (const uint32_t chunk : block.numbers)
          for (double& alpha : solution.duals.page(chunk)) alpha *= double{share};
        solution.duals.put_back(block.numbers, 1);
        return true;
      },
      save);
  solution.weights = std::move(mean);
  PassReport report = run.pass_report();
  report.certified = run.certify(task, solution);
  report.primal_estimate = report.certified->primal;
  report.dual = report.certified->dual;
  report.weights = &solution.weights;
  run.report(report);
  const Termination termination = run.stopped()                                  ? Termination::interrupted
                                  : report.certified->gap() <= options.tolerance ? Termination::converged
                                                                                 : Termination::pass_limit;
  return run.finish(termination, *report.certified);
}

}  // namespace linblock
