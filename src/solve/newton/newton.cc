// Trust-region Newton: few, large steps, each from several passes over the rows.
//
// Problem:  for each task, min over w  f(w) = 1/2 |w|^2 + sum of C_i loss(y_i w.x_i); squared hinge and logistic
// Update:   s nearly minimises g.s + s.H s / 2 within |s| <= radius (preconditioned conjugate gradients, each a product
//           with H); w += s where f falls as the model says, and else by the part of s that lowers f most; the radius
//           follows the ratio of the two decreases (trust_region, smooth_objective)
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
#include "solve/core/certify.h"
#include "solve/core/row_plan.h"
#include "solve/newton/trust_region.h"

namespace linblock {

namespace {

constexpr size_t kChunksPerBlock = 64;  // enough for all threads, and a stop can wait for so many
// Partial sums over rows, for one task; more where features are few and the sums short.
constexpr uint64_t kFewAccumulators = 2;
constexpr uint64_t kMostAccumulators = 8;
constexpr uint64_t kNonzerosPerAccumulator = 32;  // for each weight

class NewtonSolver : public Solver {
 public:
  explicit NewtonSolver(const Setup& setup) : setup_(setup) {
    const Problem& problem = setup.problem;
    for (size_t i = 0; i < problem.tasks.size(); ++i)
      tasks_.push_back(std::make_unique<TrustRegion>(problem, problem.tasks[i], setup.solutions[i],
                                                     setup.plan.accumulators, setup.options.tolerance));
  }

  std::optional<Pass> next(const Position& at) override {
    if (phase_ == Phase::finished) return std::nullopt;
    in_work_ = phase_ == Phase::solving ? working() : all();
    if (phase_ == Phase::certifying || at.block == 0) begin(in_work_);
    if (phase_ == Phase::solving) return Pass{.order = order_};
    return Pass{.purpose = Pass::Purpose::certify, .order = order_, .words = kCertifying};
  }

  bool work(const Block& block, size_t) override {
    const size_t accumulators = setup_.plan.accumulators;
    setup_.context.team.for_each(in_work_.size() * accumulators,
                                 [&](size_t job) { in_work_[job / accumulators]->add(block, job % accumulators); });
    return true;
  }

  std::optional<PassReport> end_pass(const PassEnd& end_of_pass) override {
    // Told to stop half-way: sums of a part of the rows say nothing.
    if (end_of_pass.whole) end(in_work_);
    if (phase_ == Phase::certifying) {
      phase_ = Phase::finished;
      termination_ = done_ ? termination() : end_of_pass.limit.value_or(Termination::pass_limit);
      return report(true);
    }
    done_ = working().empty();
    if (done_ || end_of_pass.limit) {
      // A last reading gives the objective of the weights as they are saved.
      for (const auto& task : tasks_) task->begin_last();
      phase_ = Phase::certifying;
      return std::nullopt;
    }
    const bool moved = std::any_of(in_work_.begin(), in_work_.end(), [](const auto* task) { return task->moved(); });
    return moved ? std::optional(report(false)) : std::nullopt;
  }

  std::vector<std::span<const float>> weights() const override { return weights_of(setup_.solutions); }

  void finish(Summary& summary) override {
    summary.termination = termination_;
    summary.certificates.clear();
    for (const auto& task : tasks_) summary.certificates.push_back(task->certificate());
  }

  void save(FieldWriter& to) const override {
    for (size_t i = 0; i < tasks_.size(); ++i) to(numbered("task", i), *tasks_[i]);
  }
  void restore(FieldReader& from, const Position&) override {
    for (size_t i = 0; i < tasks_.size(); ++i) from(numbered("task", i), *tasks_[i]);
  }

 private:
  enum class Phase { solving, certifying, finished };

  std::vector<TrustRegion*> all() const {
    std::vector<TrustRegion*> found;
    for (const auto& task : tasks_) found.push_back(task.get());
    return found;
  }
  std::vector<TrustRegion*> working() const {
    std::vector<TrustRegion*> found;
    for (const auto& task : tasks_)
      if (task->state() == TrustRegion::State::working) found.push_back(task.get());
    return found;
  }

  // Between passes a task's vectors are all there is to do: tasks share the threads, or one has them all.
  void begin(const std::vector<TrustRegion*>& tasks) const {
    setup_.context.team.for_each(tasks.size(), [&](size_t i) { tasks[i]->begin_pass(); });
  }
  void end(const std::vector<TrustRegion*>& tasks) const {
    const Team& team = setup_.context.team;
    team.for_each(tasks.size(), [&](size_t i) { tasks[i]->end_pass(team); });
  }

  PassReport report(bool last) const {
    PassReport report;
    double squares = 0;
    for (const auto& task : tasks_) {
      const Certificate certificate = task->certificate();
      report.add_task(certificate.primal, certificate.dual);
      if (task->state() != TrustRegion::State::converged) ++report.tasks_left;
      if (last && (!report.certified || certificate.gap() > report.certified->gap())) report.certified = certificate;
      squares += task->gradient_norm() * task->gradient_norm();
    }
    report.gradient_norm = std::sqrt(squares);
    return report;
  }

  Termination termination() const {
    return std::all_of(tasks_.begin(), tasks_.end(),
                       [](const auto& task) { return task->state() == TrustRegion::State::converged; })
               ? Termination::converged
               : Termination::stalled;
  }

  const Setup setup_;
  const BlockOrder order_ = BlockOrder::all(*setup_.problem.store, setup_.plan.chunks_per_block);
  std::vector<std::unique_ptr<TrustRegion>> tasks_;  // at fixed places: they point into themselves
  std::vector<TrustRegion*> in_work_;
  Phase phase_ = Phase::solving;
  bool done_ = false;  // no task is left to work on
  Termination termination_ = Termination::converged;
};

}  // namespace

Plan Newton::plan(const Problem& problem, const SolveOptions& options, const Context& context) const {
  // Several tasks keep the threads busy without accumulators of their own.
  const uint64_t share =
      problem.store->info().nonzeros / kNonzerosPerAccumulator / std::max<uint64_t>(1, problem.weights());
  return plan_rows(
      {.weights = problem.weights(),
       .bytes_per_weight = sizeof(float) + TrustRegion::kBytesPerWeight,
       .bytes_per_accumulated_weight = SmoothObjective::kBytesPerAccumulatedWeight,
       .accumulators = problem.tasks.size() > 1 ? 1 : std::clamp(share, kFewAccumulators, kMostAccumulators),
       .remedies_for_weights = {use("solver", "dual")},
       .kept_of_rows = "margins",
       .bytes_per_row = SmoothObjective::kBytesPerRow,
       .remedies_for_rows = {use("solver", "dual")},
       .most_chunks = kChunksPerBlock},
      problem, options, context);
}

std::unique_ptr<Solver> Newton::make(const Setup& setup) const { return std::make_unique<NewtonSolver>(setup); }

}  // namespace linblock
