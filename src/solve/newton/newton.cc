// Trust-region Newton: few, large steps, each from several passes over the rows.
//
// Problem:  for each task, min over w  f(w) = 1/2 |w|^2 + sum of C_i loss(y_i w.x_i); squared hinge and logistic
// Update:   s nearly minimises g.s + s.H s / 2 within |s| <= radius (preconditioned conjugate gradients, each a product
//           with H); w += s where f falls as the model says, and else by the part of s that lowers f most; the radius
//           follows the ratio of the two decreases (trust_region, row_sums)
// Paper:    Chang, Hsieh, Lin, "Coordinate descent method for large-scale L2-loss linear SVM": section 4.2, equations
//           25 and 26, Algorithm 5. Preconditioner: Hsia, Chiang, Lin, "Preconditioned conjugate gradient methods in
//           truncated Newton frameworks for large-scale linear classification" (2018).
// Reads:    the whole store once for each product and once for each new w, for all tasks together; nothing after the
//           first time where it fits. A last reading gives the objective of the weights as they are saved.
//
// The gap is known at every w: alpha = -C loss'(margin) is feasible, and f minus its dual is |gradient|^2 / 2 (or less,
// where a multiple of these alphas is better). It is loose: at 1% of gap f itself is usually far closer.
#include "solve/newton/newton.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/threads.h"
#include "solve/core/row_plan.h"
#include "solve/core/run.h"
#include "solve/newton/trust_region.h"

namespace linblock {

namespace {

constexpr size_t kChunksPerBlock = 64;  // enough for all threads, and a stop can wait for so many
// Partial sums over rows, for one task; more where features are few and the sums short.
constexpr uint64_t kFewAccumulators = 2;
constexpr uint64_t kMostAccumulators = 8;
constexpr uint64_t kNonzerosPerAccumulator = 32;  // for each weight

class NewtonRun {
 public:
  NewtonRun(const Problem& problem, const SolveOptions& options, std::vector<Solution>& solutions,
            const Context& context)
      : problem_(problem), context_(context), solutions_(solutions), run_(problem, options, context) {
    for (size_t i = 0; i < problem.tasks.size(); ++i)
      tasks_.push_back(
          std::make_unique<TrustRegion>(problem, problem.tasks[i], solutions[i], run_.plan().lanes, options.tolerance));
    run_.restore([&](FieldReader& from) {
      for (size_t i = 0; i < tasks_.size(); ++i) from(numbered("task", i), *tasks_[i]);
    });
  }

  Summary solve() {
    for (;; ++run_.pass, run_.block = 0) {
      const std::vector<TrustRegion*> tasks = in_work();
      if (run_.block == 0) begin(tasks);
      run_.work_on_pass(
          order_, [&](const Block& block, size_t) { return add(tasks, block); },
          [&](FieldWriter& to) {
            for (size_t i = 0; i < tasks_.size(); ++i) to(numbered("task", i), *tasks_[i]);
          });
      // Told to stop half-way: sums of a part of the rows say nothing.
      if (run_.block == order_.ends.size()) end(tasks);
      const bool done = in_work().empty();
      const bool last = done || run_.last_pass();
      if (last) look_at_saved_weights();
      if (last || std::any_of(tasks.begin(), tasks.end(), [](const auto* task) { return task->moved(); })) report(last);
      if (last) return run_.finish(done ? termination() : run_.limit(), certificates());
    }
  }

 private:
  std::vector<TrustRegion*> in_work() const {
    std::vector<TrustRegion*> found;
    for (const auto& task : tasks_)
      if (task->state() == TrustRegion::State::working) found.push_back(task.get());
    return found;
  }

  // Between passes a task's vectors are all there is to do: tasks share the threads, or one has them all.
  void begin(const std::vector<TrustRegion*>& tasks) const {
    for_each_on_threads(context_.threads, tasks.size(), [&](size_t i) { tasks[i]->begin_pass(); });
  }
  void end(const std::vector<TrustRegion*>& tasks) const {
    const size_t threads = tasks.size() == 1 ? context_.threads : 1;
    for_each_on_threads(context_.threads, tasks.size(), [&](size_t i) { tasks[i]->end_pass(threads); });
  }
  bool add(const std::vector<TrustRegion*>& tasks, const Block& block) const {
    const size_t lanes = run_.plan().lanes;
    for_each_on_threads(context_.threads, tasks.size() * lanes,
                        [&](size_t job) { tasks[job / lanes]->add(block, job % lanes); });
    return true;
  }

  void look_at_saved_weights() {
    std::vector<TrustRegion*> all;
    for (const auto& task : tasks_) {
      task->begin_last();
      all.push_back(task.get());
    }
    begin(all);
    run_.read_for_certificate(order_, 0, 1, [&](const Block& block, size_t) { add(all, block); });
    end(all);
  }

  void report(bool last) {
    PassReport report = run_.pass_report();
    double squares = 0;
    for (const auto& task : tasks_) {
      const Certificate certificate = task->certificate();
      report.add_task(certificate.primal, certificate.dual);
      if (task->state() != TrustRegion::State::converged) ++report.tasks_left;
      if (last && (!report.certified || certificate.gap() > report.certified->gap())) report.certified = certificate;
      squares += task->gradient_norm() * task->gradient_norm();
    }
    report.gradient_norm = std::sqrt(squares);
    report.solutions = &solutions_;
    run_.report(report);
  }

  Termination termination() const {
    return std::all_of(tasks_.begin(), tasks_.end(),
                       [](const auto& task) { return task->state() == TrustRegion::State::converged; })
               ? Termination::converged
               : Termination::stalled;
  }

  std::vector<Certificate> certificates() const {
    std::vector<Certificate> all;
    for (const auto& task : tasks_) all.push_back(task->certificate());
    return all;
  }

  const Problem& problem_;
  const Context& context_;
  std::vector<Solution>& solutions_;
  Run run_;
  const BlockOrder order_ = BlockOrder::all(*problem_.store, run_.plan().chunks_per_block);
  std::vector<std::unique_ptr<TrustRegion>> tasks_;  // at fixed places: they point into themselves
};

}  // namespace

Plan Newton::plan(const Problem& problem, const SolveOptions& options, const Context& context) const {
  // Several tasks keep the threads busy without accumulators of their own.
  const uint64_t share =
      problem.store->info().nonzeros / kNonzerosPerAccumulator / std::max<uint64_t>(1, problem.weights());
  return plan_rows(
      {.weights = problem.weights(),
       .bytes_per_weight = sizeof(float) + TrustRegion::kBytesPerWeight,
       .bytes_per_accumulated_weight = RowSums::kBytesPerLaneAndWeight,
       .accumulators = problem.tasks.size() > 1 ? 1 : std::clamp(share, kFewAccumulators, kMostAccumulators),
       .remedies_for_weights = {use("solver", "dual")},
       .kept_of_rows = "margins",
       .bytes_per_row = RowSums::kBytesPerRow,
       .remedies_for_rows = {use("solver", "dual")},
       .most_chunks = kChunksPerBlock},
      problem, options, context);
}

Summary Newton::solve(const Problem& problem, const SolveOptions& options, std::vector<Solution>& solutions,
                      const Context& context) const {
  return NewtonRun(problem, options, solutions, context).solve();
}

}  // namespace linblock
