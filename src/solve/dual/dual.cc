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
#include "solve/core/task_solver.h"
#include "solve/dual/dual_descent.h"

namespace linblock {

namespace {

constexpr int kMostInner = 10;
constexpr int kRoundsOfNew = 5;        // over rows that a warm start does not know
constexpr double kWarmGapRatio = 0.1;  // the rows that are new make estimates of the first passes far too high

// Work is free while the disk is waited for: half of it for more rounds over the blocks, half for kept rows.
void use_idle_time(const PassEnd& pass, Plan& plan) {
  plan.settled = true;
  plan.idle = std::floor(pass.costs.wait_seconds / std::max(pass.solve_seconds, 1e-9));
  plan.inner = static_cast<size_t>(std::clamp(1 + plan.idle / 2, 1.0, double{kMostInner}));
}

class DualSolver : public TaskSolver<DualDescent> {
 public:
  DualSolver(const Setup& setup, const Dual& method) : TaskSolver(setup), method_(method) {
    const Problem& problem = setup.problem;
    const Plan& plan = setup.plan;
    std::vector<Solution>& solutions = setup.solutions;
    // Estimates are of losses before a step, and so too high, the more so where a mean is better than the weights that
    // made them: a certificate that costs but one pass is tried early.
    const bool cheap = plan.certify_bytes >= problem.weights() * sizeof(double);
    const bool warm =
        std::any_of(solutions.begin(), solutions.end(), [](const auto& one) { return !one.duals.empty(); });
    const double gap_ratio = warm ? kWarmGapRatio : !cheap ? 1 : plan.few_features ? 0.3 : 0.5;
    if (method.schedule == Schedule::recomposed) new_chunks_ = setup.options.new_chunks;
    for (size_t i = 0; i < problem.tasks.size(); ++i) {
      if (solutions[i].duals.empty()) solutions[i].duals = make_duals(setup, i);
      DualDescent& descent = tasks_.add(
          problem.tasks[i], solutions[i],
          DualDescent(problem, problem.tasks[i], setup.options.seed, solutions[i], setup.context.stop), gap_ratio);
      if (plan.cache_bytes > 0) descent.use_working_set(plan.cache_bytes / problem.tasks.size(), setup.resident);
      if (plan.few_features) descent.expect_few_features();
      // The paper's own schedule is the paper exactly.
      if (method.schedule == Schedule::recomposed) descent.use_shrinking();
    }
    // Those that a start brings along may be in a file though they would fit the memory.
    duals_in_file_ =
        std::any_of(solutions.begin(), solutions.end(), [](const auto& one) { return one.duals.in_file(); });
  }

  bool measure(const PassEnd& end) override {
    if (setup_.plan.settled) return false;
    use_idle_time(end, setup_.plan);
    return setup_.plan.idle > 0;  // nothing to gain, nothing to save
  }

  void save(FieldWriter& to) const override {
    to("new_chunks", new_chunks_);
    tasks_.save(to);
  }
  void restore(FieldReader& from, const Position& at) override {
    from("new_chunks", new_chunks_);
    const BlockOrder order = order_of(at.pass);
    tasks_.restore(from, [&](auto& task, FieldReader& own) {
      task.descent.restore(own, order, task.done ? order.ends.size() : at.block);
    });
  }

 protected:
  Pass begin_pass(const Position& at) override {
    const Plan& plan = setup_.plan;
    pass_ = at.pass;
    in_work_ = tasks_.in_work();
    rounds_ = {.most = method_.inner.converge ? kConvergeRounds : static_cast<int>(plan.inner),
               .converge = method_.inner.converge,
               .kept_join = !method_.inner.is_auto()};
    for (auto* task : in_work_) {
      if (at.block == 0) task->descent.begin_pass(at.pass);
      task->descent.set_idle(plan.idle);
    }
    return {.order = order_of(at.pass), .save_first = duals_in_file_};
  }

  bool solve_block(const Block& block, size_t number) override {
    DualDescent::Rounds own = rounds_;
    if (is_new(block)) own.most = std::max(own.most, kRoundsOfNew);
    return for_each_task(setup_.context, in_work_.size(),
                         [&](size_t i) { return in_work_[i]->descent.solve_block(block, number, own); });
  }

  // Fixed blocks promise each task the bits that it would have alone, so their certificates never wait for others.
  bool waits() const override {
    return setup_.plan.rows == RowsHeld::streamed && method_.schedule == Schedule::recomposed;
  }

 private:
  BlockOrder order_of(int pass) const {
    BlockOrder order = order_of_pass(*setup_.problem.store,
                                     {.schedule = method_.schedule,
                                      .chunks_per_block = setup_.plan.chunks_per_block,
                                      .blocks = method_.blocks.value_or(0),
                                      .sequence = method_.block_order,
                                      .seed = setup_.options.seed},
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
    return pass_ == 1 && std::all_of(block.numbers.begin(), block.numbers.end(), [&](uint32_t chunk) {
             return std::binary_search(new_chunks_.begin(), new_chunks_.end(), chunk);
           });
  }

  const Dual& method_;
  std::vector<uint32_t> new_chunks_;  // increasing
  bool duals_in_file_ = false;
  // Of the pass in work.
  int pass_ = 1;
  std::vector<Tasks<DualDescent>::TaskRun*> in_work_;
  DualDescent::Rounds rounds_;
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

std::unique_ptr<Solver> Dual::make(const Setup& setup) const { return std::make_unique<DualSolver>(setup, *this); }

}  // namespace linblock
