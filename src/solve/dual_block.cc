// Dual coordinate descent on blocks of rows, for one task or many.
//
// Problem:  for each task, max over alpha  sum of dual_value(alpha_i, C_i) - 1/2 |v|^2,  v = sum of alpha_i y_i x_i
// Update:   for row i of the block, in random order: alpha_i to the maximum along its coordinate, w += change * y_i x_i
//           (dual_descent)
// Paper:    Yu, Hsieh, Chang, Lin, "Large linear classification when data cannot fit in memory": Algorithms 1 and 2;
//           `inner` rounds a block is BLOCK-L-N, `converge` BLOCK-L-D. Fixed blocks are the paper's; recomposed ones
//           are drawn anew each pass. Several tasks: Algorithm 5, each block read once for all of them.
// Reads:    the whole store once a pass, and once for each certificate; nothing after the first pass where it fits.
#include <algorithm>
#include <cmath>
#include <memory>

#include "solve/dual_descent.h"
#include "solve/run.h"

namespace linblock {

namespace {

constexpr int kMostInner = 10;
constexpr double kShareDue = 0.5;  // of the tasks, before a reading is spent on their certificates

// Work is free while the disk is waited for: half of it for more rounds over the blocks, half for kept rows.
void use_idle_time(const PassReport& pass, Plan& plan) {
  plan.settled = true;
  plan.idle = std::floor(pass.costs.wait_seconds / std::max(pass.solve_seconds, 1e-9));
  plan.inner = static_cast<size_t>(std::clamp(1 + plan.idle / 2, 1.0, double{kMostInner}));
}

// One task on its way.
struct Training {
  const Task& task;
  Solution& solution;
  std::string name;  // of what is its own in a checkpoint
  DualDescent descent;
  double trust;       // certified gap / estimated gap, as far as is known
  bool done = false;  // certified within the tolerance: left out of later passes
  Certificate certificate = {};
  double primal = 0;  // estimates
  double dual = 0;

  double gap() const { return Certificate{primal, dual}.gap(); }

  void estimate() {
    const double w2 = descent.squared_weights();
    primal = 0.5 * w2 + descent.losses();
    dual = descent.dual_values() - 0.5 * w2;
  }
  void save(SnapshotWriter& to) const {
    to.put(name + "state",
           std::span<const double>(std::array{trust, done ? 1.0 : 0.0, certificate.primal, certificate.dual}));
    to.put(name + "weights of duals", std::span<const float>(solution.weights_of_duals));
    descent.save(to, name);
  }
  void restore(const SnapshotReader& from, const BlockOrder& order, size_t blocks_done) {
    std::array<double, 4> state{};
    from.take(name + "state", std::span<double>(state));
    trust = state[0];
    done = state[1] != 0;
    certificate = {state[2], state[3]};
    solution.weights_of_duals.resize(from.count<float>(name + "weights of duals"));
    from.take(name + "weights of duals", std::span<float>(solution.weights_of_duals));
    descent.restore(from, name, order, done ? order.ends.size() : blocks_done);
  }
};

class DualBlockRun {
 public:
  DualBlockRun(const Problem& problem, const SolveOptions& options, const DualBlock& method,
               std::vector<Solution>& solutions, const Context& context)
      : problem_(problem), options_(options), method_(method), solutions_(solutions), run_(problem, options, context) {
    const Plan& plan = run_.plan();
    // Estimates are of losses before a step, and so too high, the more so where a mean is better than the weights that
    // made them: a certificate that costs but one pass is tried early.
    const bool cheap = plan.certify_bytes >= problem.weights() * sizeof(double);
    const double trust = !cheap ? 1 : plan.few_features ? 0.3 : 0.5;
    for (size_t i = 0; i < problem.tasks.size(); ++i) {
      if (solutions[i].duals.empty()) solutions[i].duals = run_.make_duals(i);
      tasks_.push_back(std::unique_ptr<Training>(
          new Training{.task = problem.tasks[i],
                       .solution = solutions[i],
                       .name = fmt::format("{} ", i),
                       .descent = DualDescent(problem, problem.tasks[i], options.seed, solutions[i], context.stop),
                       .trust = trust}));
      DualDescent& descent = tasks_.back()->descent;
      if (plan.cache_bytes > 0) descent.keep_rows(plan.cache_bytes / problem.tasks.size(), run_.resident());
      if (plan.few_features) descent.expect_few_features();
      // The paper's own schedule is the paper exactly.
      if (method.schedule == Schedule::recomposed) descent.let_rows_rest();
    }
    if (const auto checkpoint = run_.take_checkpoint())
      for (auto& task : tasks_) task->restore(*checkpoint, order_of(run_.pass), run_.block);
  }

  Summary solve() {
    for (;; ++run_.pass, run_.block = 0) {
      work_on_pass();
      PassReport report = run_.pass_report();
      if (!run_.plan().settled) {
        use_idle_time(report, run_.plan());
        // What was measured is kept before it takes effect; nothing to gain, nothing to keep.
        if (run_.plan().idle > 0) run_.save([&](SnapshotWriter& to) { save(to); });
      }
      const bool last = run_.last_pass();
      certify_those_due(last, report);
      for (const auto& task : tasks_) {
        if (task->done)
          report.add_task(task->certificate.primal, task->certificate.dual);
        else
          report.add_task(task->primal, task->dual);
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
  BlockOrder order_of(int pass) const {
    return order_of_pass(*problem_.store,
                         {.schedule = method_.schedule,
                          .chunks_per_block = run_.plan().chunks_per_block,
                          .blocks = method_.blocks,
                          .sequence = method_.sequence,
                          .seed = options_.seed},
                         static_cast<uint64_t>(pass));
  }

  void save(SnapshotWriter& to) const {
    for (const auto& task : tasks_) task->save(to);
  }

  std::vector<Training*> in_work() const {
    std::vector<Training*> found;
    for (const auto& task : tasks_)
      if (!task->done) found.push_back(task.get());
    return found;
  }

  void work_on_pass() {
    const Plan& plan = run_.plan();
    const std::vector<Training*> tasks = in_work();
    const DualDescent::Rounds rounds{.most = method_.converge ? kConvergeRounds : static_cast<int>(plan.inner),
                                     .converge = method_.converge,
                                     .kept_join = method_.inner > 0 || method_.converge};
    for (Training* task : tasks) {
      if (run_.block == 0) task->descent.begin_pass(run_.pass);
      task->descent.set_idle(plan.idle);
    }
    run_.work_on_pass(
        order_of(run_.pass),
        [&](const Block& block, size_t number) {
          return run_.for_each_task(tasks.size(),
                                    [&](size_t i) { return tasks[i]->descent.solve_block(block, number, rounds); });
        },
        [&](SnapshotWriter& to) { save(to); }, plan.duals_in_file);
    for (Training* task : tasks) task->estimate();
  }

  void certify_those_due(bool last, PassReport& report) {
    std::vector<Training*> due;
    const std::vector<Training*> tasks = in_work();
    for (Training* task : tasks)
      if (last || task->gap() * task->trust <= options_.tolerance) due.push_back(task);
    // Where rows are read for it, a certificate waits for others; but fixed blocks promise each task the bits that it
    // would have alone.
    const bool waits = run_.plan().rows == RowsHeld::streamed && method_.schedule == Schedule::recomposed;
    if (!last && waits && static_cast<double>(due.size()) < kShareDue * static_cast<double>(tasks.size())) return;
    std::vector<Run::Certifying> those;
    for (Training* task : due)
      those.push_back({.task = &task->task,
                       .solution = &task->solution,
                       .mend_above = last ? std::nullopt : std::optional(options_.tolerance),
                       .mean = task->descent.mean()});
    run_.certify(those);
    for (size_t i = 0; i < due.size(); ++i) {
      Training& task = *due[i];
      task.certificate = those[i].certificate;
      const double gap = task.certificate.gap();
      if (const double estimate = task.gap(); estimate > 0 && std::isfinite(estimate))
        task.trust = std::clamp(gap / estimate, 0.1, 1.0);
      task.done = gap <= options_.tolerance;
      if (!report.certified || gap > report.certified->gap()) report.certified = task.certificate;
    }
  }

  const Problem& problem_;
  const SolveOptions& options_;
  const DualBlock& method_;
  std::vector<Solution>& solutions_;
  Run run_;
  std::vector<std::unique_ptr<Training>> tasks_;
};

}  // namespace

Summary solve_dual_block(const Problem& problem, const SolveOptions& options, const DualBlock& method,
                         std::vector<Solution>& solutions, const Context& context) {
  return DualBlockRun(problem, options, method, solutions, context).solve();
}

}  // namespace linblock
