// The multi-class method of Crammer and Singer on blocks of rows, for one task or many.
//
// Problem:  min over w  1/2 sum of |w_m|^2 + sum of C_i max over m of (w_m.x_i - w_y.x_i + 1 - [m = y]),  y = y_i
//           Its dual has a_im >= 0 for each class m but y_i, with sum over m of a_im <= C_i, and
//           max over a  sum of a_im - 1/2 sum of |w_m|^2,
//           w_m = sum over rows of class m of (sum of a_i) x_i - sum over the other rows of a_im x_i.
//           (LIBLINEAR's -s 4, where alpha_i^m is -a_im, and alpha_i^y the sum of a_i.)
// Update:   for row i of the block, in random order: all of a_i to the maximum while other rows stay as they are;
//           w_y += change of the sum * x_i, w_m -= change of a_im * x_i (class_descent). A visit brings in a few new
//           classes at most, those that ask for most, so that duals stay few; others come with a later visit.
// Paper:    Keerthi, Sundararajan, Chang, Hsieh, Lin, "A sequential dual method for large scale multi-class linear
//           SVMs" (2008); blocks as Yu, Hsieh, Chang, Lin, "Large linear classification when data cannot fit in
//           memory".
// Reads:    the whole store once a pass, and once for each certificate; nothing after the first pass where it fits.

#include "base/error.h"
#include "solve/core/tasks.h"
#include "solve/multiclass/class_descent.h"

namespace linblock {

namespace {

class CrammerSingerRun {
 public:
  CrammerSingerRun(const Problem& problem, const SolveOptions& options, std::vector<Solution>& solutions,
                   const Context& context)
      : problem_(problem), options_(options), solutions_(solutions), run_(problem, options, context) {
    const Plan& plan = run_.plan();
    // Estimates are of losses before a step, and so too high: a certificate that costs but one pass is tried early.
    const bool cheap = plan.certify_bytes >= weights_of_a_task(problem, options.method) * sizeof(double);
    for (size_t i = 0; i < problem.tasks.size(); ++i) {
      if (solutions[i].class_duals.empty()) solutions[i].class_duals = SparseDuals(*problem.store);
      tasks_.add(problem.tasks[i], solutions[i],
                 ClassDescent(problem, problem.tasks[i], options.seed, solutions[i],
                              plan.duals_bytes / problem.tasks.size(), context.stop),
                 cheap ? 0.5 : 1);
    }
    if (const auto checkpoint = run_.take_checkpoint())
      tasks_.restore(*checkpoint, [&](auto& task) { task.descent.restore(*checkpoint, task.name); });
  }

  Summary solve() {
    for (;; ++run_.pass, run_.block = 0) {
      work_on_pass();
      PassReport report = run_.pass_report();
      const bool last = run_.last_pass();
      tasks_.finish_pass(run_, options_, run_.plan().rows == RowsHeld::streamed, report);
      report.solutions = &solutions_;
      run_.report(report);
      if (report.tasks_left > 0 && !last) continue;
      return run_.finish(report.tasks_left == 0 ? Termination::converged : run_.limit(), tasks_.certificates());
    }
  }

 private:
  void work_on_pass() {
    const auto tasks = tasks_.in_work();
    for (auto* task : tasks)
      if (run_.block == 0) task->descent.begin_pass(run_.pass);
    run_.work_on_pass(
        order_of_pass(*problem_.store, {.chunks_per_block = run_.plan().chunks_per_block, .seed = options_.seed},
                      static_cast<uint64_t>(run_.pass)),
        [&](const Block& block, size_t number) {
          const bool finished = run_.for_each_task(
              tasks.size(), [&](size_t i) { return tasks[i]->descent.solve_block(block, number, run_.plan().inner); });
          check_memory();
          return finished;
        },
        [&](SnapshotWriter& to) { tasks_.save(to); });
  }

  void check_memory() const {
    uint64_t bytes = 0;
    uint64_t pairs = 0;
    for (const Solution& solution : solutions_) {
      bytes += solution.class_duals.bytes();
      pairs += solution.class_duals.pairs();
    }
    if (bytes <= run_.plan().duals_bytes) return;
    fail(ErrorKind::memory,
         "{} duals are not zero and need {}, and the plan has {} for them: give more memory, or lower the cost", pairs,
         human_bytes(bytes), human_bytes(run_.plan().duals_bytes));
  }

  const Problem& problem_;
  const SolveOptions& options_;
  std::vector<Solution>& solutions_;
  Run run_;
  Tasks<ClassDescent> tasks_;
};

}  // namespace

Summary solve_crammer_singer(const Problem& problem, const SolveOptions& options, const CrammerSinger&,
                             std::vector<Solution>& solutions, const Context& context) {
  if (!std::holds_alternative<Hinge>(problem.loss))
    fail(ErrorKind::usage, "crammer-singer is for the hinge loss: use --loss hinge, or one-vs-rest with {}",
         name_of(problem.loss));
  return CrammerSingerRun(problem, options, solutions, context).solve();
}

}  // namespace linblock
