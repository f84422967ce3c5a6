// Dual coordinate descent on blocks of rows, for one task or many.
//
// Problem:  for each task, max over alpha  sum of dual_value(alpha_i, C_i) - 1/2 |v|^2,  v = sum of alpha_i y_i x_i
// Update:   for row i of the block, in random order: alpha_i to the maximum along its coordinate, w += change * y_i x_i
//           (dual_descent)
// Paper:    Yu, Hsieh, Chang, Lin, "Large linear classification when data cannot fit in memory": Algorithms 1 and 2;
//           `inner` rounds a block is BLOCK-L-N, `converge` BLOCK-L-D. Fixed blocks are the paper's; recomposed ones
//           are drawn anew each pass. Several tasks: Algorithm 5, each block read once for all of them.
// Reads:    the whole store once a pass, and once for each certificate; nothing after the first pass where it fits.
#include "solve/dual/dual.h"

#include <algorithm>
#include <cmath>

#include "solve/core/row_plan.h"
#include "solve/core/tasks.h"
#include "solve/dual/dual_descent.h"

namespace linblock {

namespace {

constexpr int kMostInner = 10;
constexpr int kRoundsOfNew = 5;     // over rows that a warm start does not know
constexpr double kWarmTrust = 0.1;  // the rows that are new make estimates of the first passes far too high

// Work is free while the disk is waited for: half of it for more rounds over the blocks, half for kept rows.
void use_idle_time(const PassReport& pass, Plan& plan) {
  plan.settled = true;
  plan.idle = std::floor(pass.costs.wait_seconds / std::max(pass.solve_seconds, 1e-9));
  plan.inner = static_cast<size_t>(std::clamp(1 + plan.idle / 2, 1.0, double{kMostInner}));
}

class DualBlockRun {
 public:
  DualBlockRun(const Problem& problem, const SolveOptions& options, const Dual& method,
               std::vector<Solution>& solutions, const Context& context)
      : problem_(problem), options_(options), method_(method), solutions_(solutions), run_(problem, options, context) {
    const Plan& plan = run_.plan();
    // Estimates are of losses before a step, and so too high, the more so where a mean is better than the weights that
    // made them: a certificate that costs but one pass is tried early.
    const bool cheap = plan.certify_bytes >= problem.weights() * sizeof(double);
    const bool warm =
        std::any_of(solutions.begin(), solutions.end(), [](const auto& one) { return !one.duals.empty(); });
    const double trust = warm ? kWarmTrust : !cheap ? 1 : plan.few_features ? 0.3 : 0.5;
    if (method.schedule == Schedule::recomposed) new_chunks_ = options.new_chunks;
    for (size_t i = 0; i < problem.tasks.size(); ++i) {
      if (solutions[i].duals.empty()) solutions[i].duals = run_.make_duals(i);
      DualDescent& descent =
          tasks_.add(problem.tasks[i], solutions[i],
                     DualDescent(problem, problem.tasks[i], options.seed, solutions[i], context.stop), trust);
      if (plan.cache_bytes > 0) descent.keep_rows(plan.cache_bytes / problem.tasks.size(), run_.resident());
      if (plan.few_features) descent.expect_few_features();
      // The paper's own schedule is the paper exactly.
      if (method.schedule == Schedule::recomposed) descent.let_rows_rest();
    }
    // Those that a start brings along may be in a file though they would fit the memory.
    duals_in_file_ =
        std::any_of(solutions.begin(), solutions.end(), [](const auto& one) { return one.duals.in_file(); });
    run_.restore([&](FieldReader& from) {
      from("new_chunks", new_chunks_);
      const BlockOrder order = order_of(run_.pass);
      tasks_.restore(from, [&](auto& task, FieldReader& own) {
        task.descent.restore(own, order, task.done ? order.ends.size() : run_.block);
      });
    });
  }

  Summary solve() {
    for (;; ++run_.pass, run_.block = 0) {
      work_on_pass();
      PassReport report = run_.pass_report();
      if (!run_.plan().settled) {
        use_idle_time(report, run_.plan());
        // What was measured is kept before it takes effect; nothing to gain, nothing to keep.
        if (run_.plan().idle > 0) run_.save([&](FieldWriter& to) { save(to); });
      }
      // Fixed blocks promise each task the bits that it would have alone, so their certificates never wait for others.
      const bool waits = run_.plan().rows == RowsHeld::streamed && method_.schedule == Schedule::recomposed;
      const bool last = run_.last_pass();
      tasks_.finish_pass(run_, options_, waits, report);
      report.solutions = &solutions_;
      run_.report(report);
      if (report.tasks_left > 0 && !last) continue;
      return run_.finish(report.tasks_left == 0 ? Termination::converged : run_.limit(), tasks_.certificates());
    }
  }

 private:
  BlockOrder order_of(int pass) const {
    BlockOrder order = order_of_pass(*problem_.store,
                                     {.schedule = method_.schedule,
                                      .chunks_per_block = run_.plan().chunks_per_block,
                                      .blocks = method_.blocks.value_or(0),
                                      .sequence = method_.block_order,
                                      .seed = options_.seed},
                                     static_cast<uint64_t>(pass));
    if (pass == 1 && !new_chunks_.empty()) {
      const auto is_new = [&](uint32_t chunk) {
        return std::binary_search(new_chunks_.begin(), new_chunks_.end(), chunk);
      };
      std::stable_partition(order.chunks.begin(), order.chunks.end(), is_new);
    }
    return order;
  }

  // A block of new rows only; one on the border has both.
  bool is_new(const Block& block) const {
    return run_.pass == 1 && std::all_of(block.numbers.begin(), block.numbers.end(), [&](uint32_t chunk) {
             return std::binary_search(new_chunks_.begin(), new_chunks_.end(), chunk);
           });
  }

  void save(FieldWriter& to) const {
    to("new_chunks", new_chunks_);
    tasks_.save(to);
  }

  void work_on_pass() {
    const Plan& plan = run_.plan();
    const auto tasks = tasks_.in_work();
    const DualDescent::Rounds rounds{.most = method_.inner.converge ? kConvergeRounds : static_cast<int>(plan.inner),
                                     .converge = method_.inner.converge,
                                     .kept_join = !method_.inner.is_auto()};
    for (auto* task : tasks) {
      if (run_.block == 0) task->descent.begin_pass(run_.pass);
      task->descent.set_idle(plan.idle);
    }
    run_.work_on_pass(
        order_of(run_.pass),
        [&](const Block& block, size_t number) {
          DualDescent::Rounds own = rounds;
          if (is_new(block)) own.most = std::max(own.most, kRoundsOfNew);
          return run_.for_each_task(tasks.size(),
                                    [&](size_t i) { return tasks[i]->descent.solve_block(block, number, own); });
        },
        [&](FieldWriter& to) { save(to); }, duals_in_file_);
  }

  const Problem& problem_;
  const SolveOptions& options_;
  const Dual& method_;
  std::vector<Solution>& solutions_;
  Run run_;
  Tasks<DualDescent> tasks_;
  std::vector<uint32_t> new_chunks_;  // increasing
  bool duals_in_file_ = false;
};

}  // namespace

Plan Dual::plan(const Problem& problem, const SolveOptions& options, const Context& context) const {
  const bool recomposed = schedule == Schedule::recomposed;
  const bool few_features = recomposed && has_few_features(problem);
  Plan plan = plan_rows({.weights = problem.weights(),
                         .bytes_per_weight = sizeof(float) * (few_features ? 2 : 1),
                         .bytes_per_row = Duals::kBytesPerRow,
                         .may_be_filed = true,
                         .v_bytes = problem.weights() * sizeof(double),
                         .certifies_in_window = true,
                         .blocks = recomposed ? Blocks::recomposed : Blocks::buckets,
                         .fixed_blocks = blocks.value_or(0),
                         .has_working_set = true,
                         .shares_out_working_set = recomposed,
                         .working_set_share = cache_fraction,
                         .few_features = few_features},
                        problem, options, context);
  plan.inner = inner.count == 0 ? 1 : static_cast<size_t>(inner.count);
  plan.settled = !inner.is_auto() || plan.rows != RowsHeld::streamed;
  return plan;
}

Summary Dual::solve(const Problem& problem, const SolveOptions& options, std::vector<Solution>& solutions,
                    const Context& context) const {
  return DualBlockRun(problem, options, *this, solutions, context).solve();
}

}  // namespace linblock
