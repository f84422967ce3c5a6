// Softmax, or multinomial logistic regression, by Newton's method, for one task or many.
//
// Problem:  min over W  P(W) = 1/2 |W|^2 + sum of C_i (log sum over k of exp(w_k.x_i) - w_y.x_i),  y = y_i; without the
//           biases in |W|^2 where they are free
// Update:   S nearly minimizes G.S + S.H S / 2, with the gradient G and the Hessian H at W, by preconditioned conjugate
//           gradients; W += S, or a part of S where P does not fall enough (softmax_task, softmax_objective). How
//           nearly follows from how much the last step has lowered |G|; no further than the tolerance asks for.
// Paper:    Nash, "A survey of truncated-Newton methods" (2000); how nearly: Eisenstat and Walker, "Choosing the
//           forcing terms in an inexact Newton method" (1996); the dual: Yu, Huang, Lin, "Dual coordinate descent
//           methods for logistic regression and maximum entropy models" (2011).
// Reads:    the whole store once for each product and once for each new W, for all tasks together; nothing after the
//           first time where it fits. A free bias takes one more reading at the beginning. A last reading gives the
//           objective of the weights as they are saved.
//
// The gap is known at every W: alpha = C p is feasible, and P minus its dual is |G|^2 / 2. With a free bias, a mixture
// of p is (softmax_objective).
#include "solve/multiclass/softmax.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "solve/core/certify.h"
#include "solve/core/row_plan.h"
#include "solve/multiclass/softmax_task.h"

namespace linblock {

namespace {

constexpr std::string_view kProbabilities = "probabilities";
constexpr uint64_t kFactorsShare = 4;        // of the memory, one part in so many
constexpr double kProductsPerFactor = 1000;  // that a factorization may cost: it saves readings
constexpr size_t kChunksPerBlock = 64;       // enough for all threads, and a stop can wait for so many
// Partial sums over rows, for one task: from the data alone. More where features are few and the sums short.
constexpr uint64_t kFewAccumulators = 2;
constexpr uint64_t kMostAccumulators = 16;
constexpr uint64_t kNonzerosPerAccumulator = 32;    // for each weight of a class
constexpr uint64_t kShortSums = uint64_t{4} << 20;  // bytes of all accumulators, where they are more than a few

uint64_t accumulators_of(const Problem& problem) {
  const uint64_t weights = std::max<uint64_t>(1, problem.weights());
  const uint64_t share = problem.store->info().nonzeros / kNonzerosPerAccumulator / weights;
  const uint64_t fitting = kShortSums / (weights * problem.classes() * SoftmaxObjective::kBytesPerAccumulatedWeight);
  return std::max(kFewAccumulators, std::min({share, fitting, kMostAccumulators}));
}

class SoftmaxSolver : public Solver {
 public:
  explicit SoftmaxSolver(const Setup& setup) : setup_(setup) {
    for (size_t i = 0; i < setup.problem.tasks.size(); ++i)
      tasks_.push_back(std::make_unique<SoftmaxTask>(setup.problem, setup.problem.tasks[i], setup.solutions[i],
                                                     setup.plan.accumulators, setup.plan.bytes(kProbabilities) > 0,
                                                     setup.plan.bytes(kFactors) > 0, setup.options.tolerance));
  }

  std::optional<Pass> next(const Position& at) override {
    if (phase_ == Phase::finished) return std::nullopt;
    in_work_ = phase_ == Phase::solving ? working() : all();
    if (phase_ == Phase::certifying || at.block == 0)
      setup_.context.team.for_each(in_work_.size(), [&](size_t i) { in_work_[i]->begin_pass(); });
    if (phase_ == Phase::solving) return Pass{.order = order_};
    return Pass{.purpose = Pass::Purpose::certify, .order = order_, .words = kCertifying};
  }

  bool work(const Block& block, size_t) override {
    const size_t accumulators = setup_.plan.accumulators;
    const Stopwatch working;
    std::atomic<bool> finished = true;
    setup_.context.team.for_each(in_work_.size() * accumulators, [&](size_t job) {
      // With many classes even one block may take longer than somebody waits who told it to stop.
      if (phase_ == Phase::solving && setup_.context.stopped() && working.seconds() > kStopSeconds) finished = false;
      if (finished) in_work_[job / accumulators]->add(block, job % accumulators);
    });
    for (SoftmaxTask* task : in_work_)
      if (finished) task->collect(block, setup_.context.team);
    return finished;
  }

  std::optional<PassReport> end_pass(const PassEnd& end_of_pass) override {
    const Team& team = setup_.context.team;
    // Told to stop half-way: sums of a part of the rows say nothing.
    if (end_of_pass.whole) team.for_each(in_work_.size(), [&](size_t i) { in_work_[i]->end_pass(team); });
    if (phase_ == Phase::certifying) {
      phase_ = Phase::finished;
      termination_ = limit_.value_or(termination());
      return report(true);
    }
    const bool done = working().empty();
    if (done || end_of_pass.limit) {
      if (!done) limit_ = end_of_pass.limit;
      team.for_each(tasks_.size(), [&](size_t i) { tasks_[i]->begin_last(team); });
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

  std::vector<SoftmaxTask*> all() const {
    std::vector<SoftmaxTask*> tasks;
    for (const auto& task : tasks_) tasks.push_back(task.get());
    return tasks;
  }
  std::vector<SoftmaxTask*> working() const {
    std::vector<SoftmaxTask*> tasks = all();
    std::erase_if(tasks, [](const auto* task) { return task->state() != SoftmaxTask::State::working; });
    return tasks;
  }

  PassReport report(bool last) const {
    PassReport report;
    double squares = 0;
    for (const auto& task : tasks_) {
      const Certificate certificate = task->certificate();
      report.add_task(certificate.primal, certificate.dual);
      if (task->state() != SoftmaxTask::State::converged) ++report.tasks_left;
      if (last && (!report.certified || certificate.gap() > report.certified->gap())) report.certified = certificate;
      squares += task->gradient_norm() * task->gradient_norm();
    }
    report.gradient_norm = std::sqrt(squares);
    return report;
  }

  Termination termination() const {
    const bool converged = std::all_of(tasks_.begin(), tasks_.end(),
                                       [](const auto& task) { return task->state() == SoftmaxTask::State::converged; });
    return converged ? Termination::converged : Termination::stalled;
  }

  const Setup setup_;
  const BlockOrder order_ = BlockOrder::all(*setup_.problem.store, setup_.plan.chunks_per_block);
  std::vector<std::unique_ptr<SoftmaxTask>> tasks_;  // at fixed places: they point into themselves
  std::vector<SoftmaxTask*> in_work_;
  Phase phase_ = Phase::solving;
  std::optional<Termination> limit_;  // why it ended, where it was not done
  Termination termination_ = Termination::converged;
};

Plan plan_softmax(const Problem& problem, const SolveOptions& options, const Context& context, bool keeps_rows) {
  const std::vector<Remedy> remedies = {say("use `multiclass` one-vs-rest, which can train one class after another")};
  // The blocks of the Hessian, a class each: where features are few, and all of them take a part of the memory.
  const uint64_t of_factors = problem.tasks.size() * problem.classes() * Factor::bytes(problem.weights());
  std::vector<MemoryPart> factors;
  // By counts: a factorization takes a third of the cube of the weights, a product four steps for each nonzero.
  const auto weights = static_cast<double>(problem.weights());
  const bool is_cheap =
      weights * weights * weights / 3 <= kProductsPerFactor * 4 * static_cast<double>(problem.store->info().nonzeros);
  if (is_cheap && problem.weights() <= Factor::kMostWeights && of_factors <= context.memory_bytes / kFactorsShare)
    factors.push_back({.name = std::string(kFactors), .bytes = of_factors});
  const size_t accumulators = accumulators_of(problem);
  Plan plan = plan_rows({.weights = problem.weights() * problem.classes(),
                         .bytes_per_weight = sizeof(float) + SoftmaxTask::kBytesPerWeight +
                                             (problem.free_bias ? SoftmaxTask::kBytesPerWeightOfFreeBias : 0) +
                                             accumulators * SoftmaxObjective::kBytesPerAccumulatedWeight,
                         .remedies_for_weights = remedies,
                         .kept_of_rows = kProbabilities,
                         .bytes_per_row = keeps_rows ? SoftmaxObjective::row_bytes(problem.classes()) : 0,
                         .remedies_for_rows = remedies,
                         .note_bytes = factors.empty() ? 0 : SoftmaxObjective::kNoteBytes,
                         .most_chunks = kChunksPerBlock,
                         .others = std::move(factors)},
                        problem, options, context);
  plan.accumulators = accumulators;
  return plan;
}

}  // namespace

// Probabilities are kept if they fit, and leave the rows in memory if these fit without them. Otherwise products
// compute them again, for which the dual of a free bias cannot do.
Plan Softmax::plan(const Problem& problem, const SolveOptions& options, const Context& context) const {
  if (problem.free_bias) return plan_softmax(problem, options, context, true);
  try {
    Plan plan = plan_softmax(problem, options, context, true);
    if (plan.rows != RowsHeld::streamed) return plan;
    Plan other = plan_softmax(problem, options, context, false);
    return other.rows != RowsHeld::streamed ? other : plan;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::memory) throw;
    return plan_softmax(problem, options, context, false);
  }
}

std::unique_ptr<Solver> Softmax::make(const Setup& setup) const { return std::make_unique<SoftmaxSolver>(setup); }

}  // namespace linblock
