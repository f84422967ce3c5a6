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

#include "solve/multiclass/crammer_singer.h"

#include "base/error.h"
#include "solve/core/row_plan.h"
#include "solve/core/task_solver.h"
#include "solve/multiclass/class_descent.h"

namespace linblock {

namespace {

// Duals that are not zero, for each row, in the mean.
constexpr uint64_t kLeastPairs = 3;  // as many as a row's first step can make
constexpr uint64_t kEnoughPairs = 16;
constexpr uint64_t kManyPairs = 64;

// The pairs of classes and duals cannot be known before they are there: as many as may be needed where they leave room
// for the rest, and else what a first pass makes. `room`: for them and the rows.
uint64_t class_duals_bytes(const Problem& problem, const SolveOptions& options, uint64_t weights,
                           const ChunkSums& chunks, uint64_t room) {
  const uint64_t other_classes = problem.classes() - 1;
  const uint64_t v = weights * sizeof(double);
  const uint64_t usual_chunks = options.chunks_per_block > 0 ? options.chunks_per_block : kUsualChunksPerBlock;
  const auto bytes = [&](uint64_t pairs) {
    return problem.tasks.size() * problem.store->info().physical_rows() *
           (SparseDuals::kBytesPerRow + std::min(pairs, other_classes) * SparseDuals::kBytesPerPair);
  };
  const uint64_t for_rows =
      std::min(chunks.encoded, 2 * usual_chunks * chunks.largest) + std::min(v, kLeastCertifyBytes);
  const auto fitting = [&](uint64_t needed) {
    uint64_t pairs = std::max(other_classes, kLeastPairs);
    while (pairs > kLeastPairs && bytes(pairs) + needed > room) --pairs;
    return pairs;
  };
  // Rows that find no room for another class hold up everything; very many pairs are worth less than a certificate in
  // one pass.
  uint64_t pairs = fitting(for_rows);
  const uint64_t window = 2 * chunks.least() + kLeastCertifyBytes;  // then rows are read in each pass
  if (pairs < kEnoughPairs) pairs = std::max(pairs, std::min(kEnoughPairs, fitting(std::min(for_rows, window))));
  if (pairs > kManyPairs) pairs = std::max(kManyPairs, fitting(for_rows + v));
  return bytes(pairs);
}

class CrammerSingerSolver : public TaskSolver<ClassDescent> {
 public:
  explicit CrammerSingerSolver(const Setup& setup) : TaskSolver(setup) {
    const Problem& problem = setup.problem;
    const Plan& plan = setup.plan;
    // Estimates are of losses before a step, and so too high: a certificate that costs but one pass is tried early.
    const bool cheap = plan.certify_bytes >= weights_of_a_task(problem, setup.options.method) * sizeof(double);
    for (size_t i = 0; i < problem.tasks.size(); ++i) {
      Solution& solution = setup.solutions[i];
      if (solution.class_duals.empty()) solution.class_duals = SparseDuals(*problem.store);
      tasks_.add(problem.tasks[i], solution,
                 ClassDescent(problem, problem.tasks[i], setup.options.seed, solution,
                              plan.bytes("duals") / problem.tasks.size(), setup.context.stop),
                 cheap ? 0.5 : 1);
    }
  }

  void save(FieldWriter& to) const override { tasks_.save(to); }
  void restore(FieldReader& from, const Position&) override {
    tasks_.restore(from, [](auto& task, FieldReader& fields) { ClassDescent::visit_fields(task.descent, fields); });
  }

 protected:
  Pass begin_pass(const Position& at) override {
    in_work_ = tasks_.in_work();
    for (auto* task : in_work_)
      if (at.block == 0) task->descent.begin_pass(at.pass);
    return {.order = order_of_pass(*setup_.problem.store,
                                   {.chunks_per_block = setup_.plan.chunks_per_block, .seed = setup_.options.seed},
                                   static_cast<uint64_t>(at.pass))};
  }

  bool solve_block(const Block& block, size_t number) override {
    const bool finished = for_each_task(setup_.context, in_work_.size(), [&](size_t i) {
      return in_work_[i]->descent.solve_block(block, number, setup_.plan.inner);
    });
    check_memory();
    return finished;
  }

  bool waits() const override { return setup_.plan.rows == RowsHeld::streamed; }

 private:
  void check_memory() const {
    uint64_t bytes = 0;
    uint64_t pairs = 0;
    for (const Solution& solution : setup_.solutions) {
      bytes += solution.class_duals.bytes();
      pairs += solution.class_duals.pairs();
    }
    if (bytes <= setup_.plan.bytes("duals")) return;
    fail(ErrorKind::memory,
         "{} duals are not zero and need {}, and the plan has {} for them: give more memory, or lower the cost", pairs,
         human_bytes(bytes), human_bytes(setup_.plan.bytes("duals")));
  }

  std::vector<Tasks<ClassDescent>::TaskRun*> in_work_;
};

}  // namespace

Plan CrammerSinger::plan(const Problem& problem, const SolveOptions& options, const Context& context) const {
  const std::vector<Remedy> remedies = {say("use `multiclass` one-vs-rest, which can train one class after another")};
  const uint64_t weights = problem.weights() * problem.classes();
  Plan plan = plan_rows(
      {.weights = weights,
       .remedies_for_weights = remedies,
       .kept_bytes = [&](const ChunkSums& chunks,
                         uint64_t room) { return class_duals_bytes(problem, options, weights, chunks, room); },
       .remedies_for_rows = remedies,
       .v_bytes = weights * sizeof(double),
       .certifies_in_window = true,
       .open_bytes_per_row = SparseDuals::kOpenBytesPerRow,
       .blocks = Blocks::recomposed},
      problem, options, context);
  plan.inner = static_cast<size_t>(std::max(1, inner));
  return plan;
}

std::unique_ptr<Solver> CrammerSinger::make(const Setup& setup) const {
  return std::make_unique<CrammerSingerSolver>(setup);
}

}  // namespace linblock
