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
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "base/error.h"
#include "solve/class_descent.h"
#include "solve/run.h"

namespace linblock {

namespace {

constexpr double kShareDue = 0.5;  // of the tasks, before a reading is spent on their certificates

// One task on its way.
struct Training {
  const Task& task;
  Solution& solution;
  std::string name;  // of what is its own in a checkpoint
  ClassDescent descent;
  double trust;       // certified gap / estimated gap, as far as is known
  bool done = false;  // certified within the tolerance: left out of later passes
  Certificate certificate = {};
  Certificate estimate = {};

  void save(SnapshotWriter& to) const {
    to.put(name + "state",
           std::span<const double>(std::array{trust, done ? 1.0 : 0.0, certificate.primal, certificate.dual}));
    descent.save(to, name);
  }
  void restore(const SnapshotReader& from) {
    std::array<double, 4> state{};
    from.take(name + "state", std::span<double>(state));
    trust = state[0];
    done = state[1] != 0;
    certificate = {state[2], state[3]};
    descent.restore(from, name);
  }
};

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
      tasks_.push_back(std::unique_ptr<Training>(
          new Training{.task = problem.tasks[i],
                       .solution = solutions[i],
                       .name = fmt::format("{} ", i),
                       .descent = ClassDescent(problem, problem.tasks[i], options.seed, solutions[i],
                                               plan.duals_bytes / problem.tasks.size(), context.stop),
                       .trust = cheap ? 0.5 : 1}));
    }
    if (const auto checkpoint = run_.take_checkpoint())
      for (auto& task : tasks_) task->restore(*checkpoint);
  }

  Summary solve() {
    for (;; ++run_.pass, run_.block = 0) {
      work_on_pass();
      PassReport report = run_.pass_report();
      const bool last = run_.last_pass();
      certify_those_due(last, report);
      for (const auto& task : tasks_) {
        const Certificate& known = task->done ? task->certificate : task->estimate;
        report.add_task(known.primal, known.dual);
        if (!task->done) ++report.tasks_left;
      }
      report.solutions = &solutions_;
      run_.report(report);
      if (report.tasks_left > 0 && !last) continue;
      std::vector<Certificate> certificates;
      for (const auto& task : tasks_) certificates.push_back(task->certificate);
      return run_.finish(report.tasks_left == 0 ? Termination::converged : run_.limit(), std::move(certificates));
    }
  }

 private:
  std::vector<Training*> in_work() const {
    std::vector<Training*> found;
    for (const auto& task : tasks_)
      if (!task->done) found.push_back(task.get());
    return found;
  }

  void work_on_pass() {
    const std::vector<Training*> tasks = in_work();
    for (Training* task : tasks)
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
        [&](SnapshotWriter& to) {
          for (const auto& task : tasks_) task->save(to);
        });
    for (Training* task : tasks) {
      const double w2 = task->descent.squared_weights();
      task->estimate = {0.5 * w2 + task->descent.losses(), task->descent.dual_values() - 0.5 * w2};
    }
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

  void certify_those_due(bool last, PassReport& report) {
    std::vector<Training*> due;
    const std::vector<Training*> tasks = in_work();
    for (Training* task : tasks)
      if (last || task->estimate.gap() * task->trust <= options_.tolerance) due.push_back(task);
    // Where rows are read for it, a certificate waits for others.
    const bool reads = run_.plan().rows == RowsHeld::streamed;
    if (!last && reads && static_cast<double>(due.size()) < kShareDue * static_cast<double>(tasks.size())) return;
    std::vector<Run::Certifying> those;
    for (Training* task : due)
      those.push_back({.task = &task->task,
                       .solution = &task->solution,
                       .mend_above = last ? std::nullopt : std::optional(options_.tolerance)});
    run_.certify(those);
    for (size_t i = 0; i < due.size(); ++i) {
      Training& task = *due[i];
      task.certificate = those[i].certificate;
      const double gap = task.certificate.gap();
      if (const double estimate = task.estimate.gap(); estimate > 0 && std::isfinite(estimate))
        task.trust = std::clamp(gap / estimate, 0.1, 1.0);
      task.done = gap <= options_.tolerance;
      if (!report.certified || gap > report.certified->gap()) report.certified = task.certificate;
    }
  }

  const Problem& problem_;
  const SolveOptions& options_;
  std::vector<Solution>& solutions_;
  Run run_;
  std::vector<std::unique_ptr<Training>> tasks_;
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
