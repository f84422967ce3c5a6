// Newton's method: few, large steps, each from one or several passes over the rows.
//
// Problem:  for each task, min over w  f(w) = 1/2 |w|^2 + sum of C_i loss(y_i w.x_i)
//
// Where rows are many for each feature, features few, or rows long for their cost, and for the hinge, a step minimizes
// a model of f (local_model): the rows of a sample with their true losses, all others as they were in the last reading.
// Nothing is read for it.
// Update:   w to the minimum of the model; shortened where f rises. The hinge is replaced by its augmented Lagrangian,
//           whose centres follow the duals without a reading (row_term).
// Paper:    models of a sample with the exact gradient: Shamir, Srebro, Zhang, "Communication-efficient distributed
//           optimization using an approximate Newton-type method" (2014). Augmented Lagrangian with semismooth Newton
//           steps: Li, Sun, Toh, "A highly efficient semismooth Newton augmented Lagrangian method for solving Lasso
//           problems" (2018).
// Reads:    the whole store once for each step. Weights are read as they will be saved, unless the tolerance is small.
//
// Otherwise, and in little memory, a trust region (trust_region, smooth_objective):
// Update:   s nearly minimizes g.s + s.H s / 2 within |s| <= radius (preconditioned conjugate gradients, each a product
//           with H); w += s where f falls as the model says, and else by the part of s that lowers f most; the radius
//           follows the ratio of the two decreases
// Paper:    Chang, Hsieh, Lin, "Coordinate descent method for large-scale L2-loss linear SVM": section 4.2, equations
//           25 and 26, Algorithm 5. Preconditioner: Hsia, Chiang, Lin, "Preconditioned conjugate gradient methods in
//           truncated Newton frameworks for large-scale linear classification" (2018).
// Reads:    the whole store once for each product and once for each new w, for all tasks together; nothing after the
//           first time where it fits. A last reading gives the objective of the weights as they are saved.
//
// A bias that is not penalized (free_bias.h) has no 1/2 b^2 in f, no 1 in H, and minus its v as gradient. Models settle
// it exactly after each of their steps.
//
// The gap is known at every w: alpha = -C loss'(margin) is feasible, and f minus its dual is |gradient|^2 / 2 (or less,
// where a multiple of these alphas is better).
#include "solve/newton/newton.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "base/error.h"
#include "solve/core/certify.h"
#include "solve/core/difficulty.h"
#include "solve/core/row_plan.h"
#include "solve/newton/newton_task.h"
#include "solve/newton/trust_region.h"

namespace linblock {

namespace {

constexpr size_t kChunksPerBlock = 64;  // enough for all threads, and a stop can wait for so many
// Partial sums over rows, for one task; more where features are few and the sums short.
constexpr uint64_t kFewAccumulators = 2;
constexpr uint64_t kMostAccumulators = 8;
constexpr uint64_t kNonzerosPerAccumulator = 32;  // for each weight

constexpr size_t kChunksPerBlockOfModels = 16;  // threads note the rows that they may keep
constexpr double kSampleMemoryShare = 0.875;    // of the memory for rows, where they are read in each pass
constexpr uint64_t kSampleShare = 8;            // a sample is one row in so many ...
constexpr uint64_t kSampleRows = 64;            // ... or so many for each weight
constexpr uint64_t kFactorsShare = 4;           // of the memory, one part in so many

// For each weight. Half as many rows take twice the passes.
constexpr uint64_t kGoodSampleRows = 16;
constexpr uint64_t kLeastSampleRows = 8;        // a smaller sample says less of the others than a trust region learns
constexpr uint64_t kBytesPerSampleRow = 176;    // about, beside its nonzeros
constexpr uint64_t kBytesPerSampleNonzero = 6;  // likewise
constexpr std::string_view kMargins = "margins";

bool is_smooth(const Problem& problem) {
  return std::visit([]<class L>(const L&) { return SmoothLoss<L>; }, problem.loss);
}

// With less memory: none can leave the bias out of the penalty.
std::vector<Remedy> other_methods(const Problem& problem) {
  return {problem.free_bias ? leave_out("free_bias") : use("solver", "dual")};
}

// Models of a sample, or else a trust region: cheaper where features are many and nothing is hard, with less memory.
bool uses_models(const Problem& problem) {
  return !is_smooth(problem) || has_few_features(problem) || problem.weights() <= Factor::kMostWeights ||
         is_hard(problem);
}

uint64_t rows_per_weight(const Problem& problem, uint64_t count) {
  return std::min(problem.store->info().rows, count * problem.weights()) + 1;
}
// More of them save no passes.
uint64_t sample_rows(const Problem& problem) {
  return std::max(problem.store->info().rows / kSampleShare, rows_per_weight(problem, kSampleRows));
}
uint64_t sample_row_bytes(const Problem& problem) {
  const StoreInfo& info = problem.store->info();
  return kBytesPerSampleRow + kBytesPerSampleNonzero * (info.nonzeros / std::max<uint64_t>(1, info.rows));
}

// Each task has a sample of so many rows for each weight.
bool samples(const Problem& problem, const Plan& plan, uint64_t per_weight) {
  const uint64_t row_bytes =
      plan.rows == RowsHeld::streamed ? sample_row_bytes(problem) : RowSample::kBytesPerListedRow;
  return plan.cache_bytes / plan.tasks >= rows_per_weight(problem, per_weight) * row_bytes;
}

// Of several tasks, or one that has all threads.
template <class NewtonTasks>
class NewtonSolver : public Solver {
 public:
  explicit NewtonSolver(const Setup& setup)
      : setup_(setup),
        factors_(setup.plan.bytes(kFactors) / Factor::bytes(setup.problem.weights()), setup.problem.weights()) {
    for (size_t i = 0; i < setup.problem.tasks.size(); ++i) tasks_.push_back(make_task(setup, i));
  }

  std::optional<Pass> next(const Position& at) override {
    if (phase_ == Phase::finished) return std::nullopt;
    in_work_ = phase_ == Phase::solving ? working() : unsaved_;
    if (phase_ == Phase::certifying || at.block == 0) begin(in_work_);
    if (phase_ == Phase::solving) return Pass{.order = order_};
    return Pass{.purpose = Pass::Purpose::certify, .order = order_, .words = kCertifying};
  }

  bool work(const Block& block, size_t) override {
    const size_t accumulators = setup_.plan.accumulators;
    setup_.context.team.for_each(in_work_.size() * accumulators,
                                 [&](size_t job) { in_work_[job / accumulators]->add(block, job % accumulators); });
    if constexpr (kSamples)
      setup_.context.team.for_each(in_work_.size(), [&](size_t i) { in_work_[i]->collect(block); });
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
      // A last reading gives the objective of the weights as they are saved, where they were not read so.
      for (const auto& task : tasks_)
        if (task->begin_last()) unsaved_.push_back(task.get());
      phase_ = unsaved_.empty() ? Phase::finished : Phase::certifying;
      if (!unsaved_.empty()) return std::nullopt;
      termination_ = done_ ? termination() : *end_of_pass.limit;
      return report(true);
    }
    if constexpr (!kSamples) {
      const bool moved = std::any_of(in_work_.begin(), in_work_.end(), [](const auto* task) { return task->moved(); });
      if (!moved) return std::nullopt;
    }
    return report(false);
  }

  bool cut_short() const override {
    if constexpr (kSamples)
      return std::any_of(tasks_.begin(), tasks_.end(), [](const auto& task) { return task->cut_short(); });
    return false;
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
  static constexpr bool kSamples = std::is_same_v<NewtonTasks, NewtonTask>;

  static std::unique_ptr<NewtonTasks> make_task(const Setup& setup, size_t number) {
    if constexpr (kSamples)
      return std::make_unique<NewtonTask>(setup, number);
    else
      return std::make_unique<TrustRegion>(setup.problem, setup.problem.tasks[number], setup.solutions[number],
                                           setup.plan.accumulators, setup.options.tolerance);
  }
  std::vector<NewtonTasks*> working() const {
    std::vector<NewtonTasks*> tasks;
    for (const auto& task : tasks_)
      if (task->state() == NewtonTasks::State::working) tasks.push_back(task.get());
    return tasks;
  }

  // Between passes a task's vectors are all there is to do: tasks share the threads, or one has them all.
  void begin(const std::vector<NewtonTasks*>& tasks) {
    setup_.context.team.for_each(tasks.size(), [&](size_t i) { tasks[i]->begin_pass(); });
  }
  void end(const std::vector<NewtonTasks*>& tasks) {
    const Team& team = setup_.context.team;
    team.for_each(tasks.size(), [&](size_t i) {
      if constexpr (kSamples)
        tasks[i]->end_pass(factors_);
      else
        tasks[i]->end_pass(team);
    });
  }

  PassReport report(bool last) const {
    PassReport report;
    double squares = 0;
    for (const auto& task : tasks_) {
      const Certificate certificate = task->certificate();
      report.add_task(certificate.primal, certificate.dual);
      if (task->state() != NewtonTasks::State::converged) ++report.tasks_left;
      if (last && (!report.certified || certificate.gap() > report.certified->gap())) report.certified = certificate;
      squares += task->gradient_norm() * task->gradient_norm();
    }
    report.gradient_norm = std::sqrt(squares);
    return report;
  }

  Termination termination() const {
    return std::all_of(tasks_.begin(), tasks_.end(),
                       [](const auto& task) { return task->state() == NewtonTasks::State::converged; })
               ? Termination::converged
               : Termination::stalled;
  }

  const Setup setup_;
  const BlockOrder order_ = BlockOrder::all(*setup_.problem.store, setup_.plan.chunks_per_block);
  FactorPool factors_;
  std::vector<std::unique_ptr<NewtonTasks>> tasks_;  // at fixed places: they point into themselves
  std::vector<NewtonTasks*> in_work_;
  std::vector<NewtonTasks*> unsaved_;  // whose weights have not been read as they are saved
  Phase phase_ = Phase::solving;
  bool done_ = false;  // no task is left to work on
  Termination termination_ = Termination::converged;
};

// With so many matrices for factorizations.
Plan plan_models(const Problem& problem, const SolveOptions& options, const Context& context, uint64_t matrices) {
  const uint64_t weights = problem.weights();
  const size_t accumulators = NewtonEvaluation::accumulators(weights);
  const bool has_centres = std::visit([]<class L>(const L&) { return kHasCentres<L>; }, problem.loss);
  const uint64_t balanced = problem.free_bias ? NewtonEvaluation::kBytesPerBalancedWeight : 0;
  std::vector<MemoryPart> factors;
  if (matrices > 0) factors.push_back({.name = std::string(kFactors), .bytes = matrices * Factor::bytes(weights)});
  Plan plan = plan_rows({.weights = weights,
                         .bytes_per_weight = sizeof(float) + NewtonTask::kBytesPerWeight +
                                             accumulators * (NewtonEvaluation::kBytesPerAccumulatedWeight + balanced) +
                                             LocalModel::part_bytes(weights) / std::max<uint64_t>(1, weights),
                         .remedies_for_weights = other_methods(problem),
                         .kept_of_rows = "centres",
                         .bytes_per_row = has_centres ? NewtonEvaluation::kBytesPerRow : 0,
                         .remedies_for_rows = other_methods(problem),
                         .note_bytes = NewtonEvaluation::kNoteBytes,
                         .blocks = Blocks::recomposed,
                         .usual_chunks = kChunksPerBlockOfModels,
                         .most_chunks = kChunksPerBlockOfModels,
                         .has_working_set = true,
                         .shares_out_working_set = true,
                         .working_set_share = kSampleMemoryShare,
                         .bytes_per_listed_row = RowSample::kBytesPerListedRow,
                         .sample_rows = sample_rows(problem),
                         .bytes_per_sample_row = sample_row_bytes(problem),
                         .others = std::move(factors)},
                        problem, options, context);
  plan.accumulators = accumulators;
  return plan;
}

// Matrices save work, a sample saves passes: it comes first.
Plan plan_models(const Problem& problem, const SolveOptions& options, const Context& context) {
  uint64_t matrices = 0;
  if (problem.weights() <= Factor::kMostWeights)
    matrices = std::min<uint64_t>({context.memory_bytes / kFactorsShare / Factor::bytes(problem.weights()),
                                   problem.tasks.size(), kPlannedThreads});
  for (; matrices > 0; matrices /= 2) {
    try {
      Plan plan = plan_models(problem, options, context, matrices);
      if (samples(problem, plan, kGoodSampleRows)) return plan;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::memory) throw;
    }
  }
  return plan_models(problem, options, context, 0);
}

Plan plan_trust_region(const Problem& problem, const SolveOptions& options, const Context& context) {
  // From the data alone: the order of sums, and so the bits, depend neither on the memory nor on how many tasks fit in
  // it. Tasks that do not fit together go in groups.
  const uint64_t share =
      problem.store->info().nonzeros / kNonzerosPerAccumulator / std::max<uint64_t>(1, problem.weights());
  const size_t accumulators = std::clamp(share, kFewAccumulators, kMostAccumulators);
  const uint64_t balanced = problem.free_bias ? SmoothObjective::kBytesPerBalancedWeight : 0;
  Plan plan = plan_rows({.weights = problem.weights(),
                         .bytes_per_weight = sizeof(float) + TrustRegion::kBytesPerWeight +
                                             accumulators * (SmoothObjective::kBytesPerAccumulatedWeight + balanced),
                         .remedies_for_weights = other_methods(problem),
                         .kept_of_rows = kMargins,
                         .bytes_per_row = SmoothObjective::kBytesPerRow,
                         .remedies_for_rows = other_methods(problem),
                         .most_chunks = kChunksPerBlock},
                        problem, options, context);
  plan.accumulators = accumulators;
  return plan;
}

}  // namespace

Plan Newton::plan(const Problem& problem, const SolveOptions& options, const Context& context) const {
  if (!uses_models(problem)) return plan_trust_region(problem, options, context);
  const auto with_models = [&](const Problem& tasks) -> std::optional<Plan> {
    try {
      return plan_models(tasks, options, context);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::memory || !is_smooth(problem)) throw;
      return std::nullopt;
    }
  };
  std::optional<Plan> models = with_models(problem);
  if (models && samples(problem, *models, kGoodSampleRows)) return *models;
  // Fewer tasks have larger samples: the others wait for their turn.
  if (models && problem.tasks.size() > 1) {
    Problem single = problem;
    single.tasks.resize(1);
    const std::optional<Plan> alone = with_models(single);
    models->crowded = !is_smooth(problem) || (alone && samples(single, *alone, kGoodSampleRows));
    if (models->crowded) return *models;
  }
  if (models && (!is_smooth(problem) || samples(problem, *models, kLeastSampleRows))) return *models;
  try {
    return plan_trust_region(problem, options, context);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::memory || !models) throw;
    return *models;
  }
}

bool Newton::is_worth(const Problem& problem, const Plan& plan) {
  return !uses_models(problem) || samples(problem, plan, kGoodSampleRows);
}

std::unique_ptr<Solver> Newton::make(const Setup& setup) const {
  if (setup.plan.bytes(kMargins) > 0) return std::make_unique<NewtonSolver<TrustRegion>>(setup);
  return std::make_unique<NewtonSolver<NewtonTask>>(setup);
}

}  // namespace linblock
