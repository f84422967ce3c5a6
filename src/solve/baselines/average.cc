// AvgBlock: a model for each block, averaged.
//
// Problem:  each block on its own, min over w  1/2 |w|^2 + C sum over the block of losses; the answer is the mean
// Update:   dual coordinate descent on the block from zero, until its projected gradients lie within 0.1 of each other
// Paper:    Yu, Hsieh, Chang, Lin: sections 7.2 and 8.3 (AvgBlock), a bagging method.
// Reads:    the whole store once, and once for the certificate.
//
// The mean of m models is v of the duals divided by m, which are feasible for the whole problem: so it is certified.
#include "solve/baselines/average.h"

#include <algorithm>

#include "solve/core/row_plan.h"
#include "solve/core/run.h"
#include "solve/dual/dual_descent.h"

namespace linblock {

namespace {

// One task on its way.
struct Averaging {
  Solution& solution;
  DualDescent descent;
  std::vector<float> mean;

  bool solve_block(const Block& block, size_t number, float share) {
    std::fill(solution.weights.begin(), solution.weights.end(), 0.0F);
    if (!descent.solve_block(block, number, {.most = kConvergeRounds, .converge = true})) return false;
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += share * solution.weights[i];
    for (const uint32_t chunk : block.numbers)
      for (double& alpha : solution.duals.page(chunk)) alpha *= double{share};
    solution.duals.put_back(block.numbers, 1);
    return true;
  }
};

}  // namespace

Plan Average::plan(const Problem& problem, const SolveOptions& options, const Context& context) const {
  return plan_rows({.weights = problem.weights(),
                    .bytes_per_weight = 2 * sizeof(float),
                    .bytes_per_row = Duals::kBytesPerRow,
                    .may_be_filed = true,
                    .v_bytes = problem.weights() * sizeof(double)},
                   problem, options, context);
}

Summary Average::solve(const Problem& problem, const SolveOptions& options, std::vector<Solution>& solutions,
                       const Context& context) const {
  Run run(problem, options, context);
  const BlockOrder order = order_of_pass(*problem.store,
                                         {.schedule = Schedule::fixed,
                                          .chunks_per_block = run.plan().chunks_per_block,
                                          .sequence = BlockSequence::sequential,
                                          .seed = options.seed},
                                         1);
  const auto share = 1 / static_cast<float>(order.ends.size());
  std::vector<Averaging> tasks;
  for (size_t i = 0; i < problem.tasks.size(); ++i) {
    solutions[i].duals = run.make_duals(i);
    tasks.push_back({.solution = solutions[i],
                     .descent = DualDescent(problem, problem.tasks[i], options.seed, solutions[i], context.stop),
                     .mean = std::vector<float>(problem.weights(), 0)});
  }
  const auto save = [&](FieldWriter& to) {
    for (size_t i = 0; i < tasks.size(); ++i) {
      FieldWriter own = to.inside(numbered("task", i));
      tasks[i].descent.save(own);
      own("average", tasks[i].mean);
    }
  };
  const bool resumed = run.restore([&](FieldReader& from) {
    for (size_t i = 0; i < tasks.size(); ++i) {
      FieldReader own = from.inside(numbered("task", i));
      tasks[i].descent.restore(own, order, run.block);
      own("average", std::span(tasks[i].mean));
    }
  });
  for (Averaging& task : tasks)
    if (!resumed) task.descent.begin_pass(1);
  run.work_on_pass(
      order,
      [&](const Block& block, size_t number) {
        return run.for_each_task(tasks.size(), [&](size_t i) { return tasks[i].solve_block(block, number, share); });
      },
      save);
  for (Averaging& task : tasks) task.solution.weights = std::move(task.mean);
  PassReport report = run.pass_report();
  std::vector<Certificate> certificates = run.certify_all(solutions);
  for (const Certificate& certificate : certificates) {
    report.add_task(certificate.primal, certificate.dual);
    if (certificate.gap() > options.tolerance) ++report.tasks_left;
    if (!report.certified || certificate.gap() > report.certified->gap()) report.certified = certificate;
  }
  report.solutions = &solutions;
  run.report(report);
  const Termination termination = run.stopped()            ? Termination::interrupted
                                  : report.tasks_left == 0 ? Termination::converged
                                                           : Termination::pass_limit;
  return run.finish(termination, std::move(certificates));
}

}  // namespace linblock
