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
#include "solve/dual/task_group.h"

namespace linblock {

namespace {

constexpr int kMostInner = 10;
constexpr int kRoundsOfNew = 5;        // over rows that a warm start does not know
constexpr double kWarmGapRatio = 0.1;  // the rows that are new make estimates of the first passes far too high

// A step's nanoseconds for a nonzero. A constant, so that the same command gives the same bits on every machine.
constexpr double kNanosecondsPerNonzero = 4;

// Work is free while the disk is waited for: half of it for more rounds over the blocks, half for kept rows. How long
// that is follows from the bytes of the rows before any codec, which pack may have chosen by a clock, their nonzeros
// and the speed of the disk that the user names.
void use_idle_time(const Store& store, double bytes_per_second, Plan& plan) {
  double bytes = 0;
  for (const ChunkInfo& chunk : store.chunks()) bytes += static_cast<double>(chunk.raw_bytes);
  const double work = 1e-9 * kNanosecondsPerNonzero *
                      static_cast<double>(std::max<uint64_t>(1, store.info().nonzeros + kRowWork * store.info().rows));
  plan.idle = std::max(0.0, std::floor(bytes / bytes_per_second / work - 1));
  plan.inner = static_cast<size_t>(std::clamp(1 + plan.idle / 2, 1.0, double{kMostInner}));
}

// Batches need many rows with few features in common, and threads that have nothing else to do: several tasks share the
// threads among themselves. Weights that fit the cache of one core are faster without, and so is little work.
bool uses_batches(const Problem& problem, const Dual& method, bool few_features) {
  constexpr uint64_t kManyWeights = uint64_t{1} << 18;
  constexpr uint64_t kManyNonzeros = uint64_t{1} << 20;
  if (method.batch) return *method.batch > 1 && problem.tasks.size() == 1;
  return method.schedule == Schedule::recomposed && !few_features && problem.tasks.size() == 1 &&
         problem.weights() >= kManyWeights && problem.store->info().nonzeros >= kManyNonzeros;
}

// Several tasks go over a block together, row by row. With a working set, or a mean of the weights, each goes alone; so
// does it in the paper's own schedule, where it has the bits of a run of its own.
bool steps_together(const Problem& problem, const Dual& method, const Plan& plan) {
  return problem.tasks.size() > 1 && method.schedule == Schedule::recomposed && plan.cache_bytes == 0 &&
         !plan.few_features;
}

class DualSolver : public TaskSolver<DualDescent> {
 public:
  DualSolver(const Setup& setup, const Dual& method) : TaskSolver(setup), method_(method) {
    const Problem& problem = setup.problem;
    const Plan& plan = setup.plan;
    std::vector<Solution>& solutions = setup.solutions;
    // Estimates are of losses before a step, and so too high, the more so where a mean is better than the weights that
    // made them. A certificate costs one reading, so it is tried early.
    const bool warm =
        std::any_of(solutions.begin(), solutions.end(), [](const auto& solution) { return !solution.duals.empty(); });
    const double gap_ratio = warm ? kWarmGapRatio : plan.few_features ? 0.3 : 0.5;
    if (method.schedule == Schedule::recomposed) new_chunks_ = setup.options.new_chunks;
    for (size_t i = 0; i < problem.tasks.size(); ++i) {
      const std::vector<float>& start = solutions[i].weights;
      const bool cold = solutions[i].duals.empty() &&
                        std::all_of(start.begin(), start.end(), [](float weight) { return weight == 0; });
      if (solutions[i].duals.empty()) solutions[i].duals = make_duals(setup, i);
      DualDescent& descent = tasks_.add(
          problem.tasks[i], solutions[i],
          DualDescent(problem, problem.tasks[i], setup.options.seed, solutions[i], setup.context.stop), gap_ratio);
      descent.set_drift_bound(cold ? 0 : DriftBound::kUnknown);
      if (plan.cache_bytes > 0)
        descent.use_working_set(plan.cache_bytes / problem.tasks.size(), plan.kept_rows, setup.resident);
      if (plan.few_features) descent.expect_few_features();
      if (plan.batches) descent.use_batches(setup.context.team, method.batch, plan.rows == RowsHeld::decoded);
      // The paper's own schedule is the paper exactly.
      if (method.schedule == Schedule::recomposed) descent.use_shrinking();
    }
    // Those that a start brings along may be in a file though they would fit in memory.
    duals_in_file_ =
        std::any_of(solutions.begin(), solutions.end(), [](const auto& solution) { return solution.duals.in_file(); });
  }

  void save(FieldWriter& to) const override {
    side_by_side_.put_back(setup_.context.team);
    to("new_chunks", new_chunks_);
    tasks_.save(to);
  }
  void restore(FieldReader& from, const Position& at) override {
    from("new_chunks", new_chunks_);
    const BlockOrder order = order_of(at.pass);
    tasks_.restore(from, [&](auto& task, FieldReader& fields) {
      task.descent.restore(fields, order, task.done ? order.ends.size() : at.block);
    });
  }

 protected:
  Pass begin_pass(const Position& at) override {
    const Plan& plan = setup_.plan;
    pass_ = at.pass;
    in_work_ = tasks_.in_work();
    rounds_ = {.most = method_.inner.converge ? kConvergeRounds : static_cast<int>(plan.inner),
               .converge = method_.inner.converge,
               .kept_join = method_.inner.converge || method_.schedule == Schedule::fixed};
    setup_.context.team.for_each(in_work_.size(), [&](size_t i) {
      if (at.block == 0) in_work_[i]->descent.begin_pass(at.pass);
      in_work_[i]->descent.set_idle(plan.idle);
    });
    if (steps_together(setup_.problem, method_, plan)) group_tasks();
    return {.order = order_of(at.pass), .save_first = duals_in_file_};
  }

  bool solve_block(const Block& block, size_t number) override {
    DualDescent::Rounds rounds = rounds_;
    if (is_new(block)) rounds.most = std::max(rounds.most, kRoundsOfNew);
    if (!groups_.empty())
      return for_each_task(setup_.context, groups_.size(),
                           [&](size_t i) { return groups_[i].solve_block(block, number, rounds); });
    return for_each_task(setup_.context, in_work_.size(),
                         [&](size_t i) { return in_work_[i]->descent.solve_block(block, number, rounds); });
  }

  void end_steps() override { side_by_side_.put_back(setup_.context.team); }

  // Fixed blocks promise each task the bits that it would have alone, so their certificates never wait for others.
  bool waits() const override {
    return setup_.plan.rows == RowsHeld::streamed && method_.schedule == Schedule::recomposed;
  }

 private:
  // Those in work. Weights may have changed since the last pass.
  void group_tasks() {
    const Team& team = setup_.context.team;
    std::vector<std::span<float>> weights;
    for (auto* task : in_work_) weights.emplace_back(task->solution.weights);
    const size_t bytes_of_a_task = std::max<size_t>(1, setup_.problem.weights()) * sizeof(float);
    const size_t columns = setup_.plan.bytes(kSideBySide) / bytes_of_a_task;
    if (!side_by_side_.is_of(weights))
      side_by_side_ = SideBySide(std::move(weights), columns, team.size(), setup_.problem.bias);
    side_by_side_.make_zeros_positive();
    side_by_side_.load(team);
    groups_.clear();
    for (const WeightGroup& group : side_by_side_.groups()) {
      std::vector<DualDescent*> tasks;
      for (size_t i = 0; i < group.width(); ++i) tasks.push_back(&in_work_[group.first() + i]->descent);
      groups_.emplace_back(std::move(tasks), group);
    }
  }

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
  SideBySide side_by_side_;
  std::vector<TaskGroup> groups_;  // none: each task goes alone
};

}  // namespace

Plan Dual::plan(const Problem& problem, const SolveOptions& options, const Context& context) const {
  const bool recomposed = schedule == Schedule::recomposed;
  const bool few_features = recomposed && has_few_features(problem);
  const bool side_by_side = problem.tasks.size() > 1 && recomposed && !few_features && cache_fraction.value_or(0) == 0;
  const auto plan_with = [&](bool batches) {
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
                           .few_features = few_features,
                           .side_by_side_bytes = side_by_side ? problem.weights() * sizeof(float) : 0,
                           .batch_bytes = batches ? Batches::memory_bytes() : 0,
                           .remembered_bytes_per_row = batches ? Batches::kBytesPerRow : 0},
                          problem, options, context);
    plan.batches = batches;
    return plan;
  };
  const bool wanted = uses_batches(problem, *this, few_features);
  Plan plan = plan_with(wanted && batch.has_value());
  // By themselves only where all rows stay in memory, with room to spare: elsewhere lists of rows are short, and
  // batches were slower.
  if (wanted && !batch && plan.rows == RowsHeld::decoded)
    if (Plan larger = plan_with(true); larger.rows == RowsHeld::decoded) plan = std::move(larger);
  plan.inner = inner.count == 0 ? 1 : static_cast<size_t>(inner.count);
  if (inner.is_auto() && plan.rows == RowsHeld::streamed)
    use_idle_time(*problem.store, static_cast<double>(disk_rate), plan);
  return plan;
}

std::unique_ptr<Solver> Dual::make(const Setup& setup) const { return std::make_unique<DualSolver>(setup, *this); }

}  // namespace linblock
