// A random part of the rows that fits the memory, solved there.
//
// Problem:  min over w  1/2 |w|^2 + C sum over the part of losses
// Update:   dual coordinate descent, the part in memory all the time
// Paper:    Yu, Hsieh, Chang, Lin: section 7.1 and Figure 6 (sub-sampling).
// Reads:    the part once, and the whole store once for the certificate.
//
// Rows that were left out have alpha 0, which is feasible: the answer is certified for the WHOLE problem, and the gap
// says what leaving them out has cost.
#include "solve/baselines/subsample.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "solve/core/row_plan.h"
#include "solve/core/run.h"
#include "solve/dual/dual_descent.h"

namespace linblock {

namespace {

constexpr double kSettled = 1e-3;  // of its own best: more exact than what leaving rows out costs

// Whole chunks: packing has put random rows in each.
std::vector<uint32_t> draw_part(const Store& store, double share, uint64_t bytes, uint64_t seed) {
  std::vector<uint32_t> chunks(store.chunks().size());
  std::iota(chunks.begin(), chunks.end(), 0U);
  Random random(seed, chunks.size());
  for (size_t i = chunks.size(); i > 1; --i) std::swap(chunks[i - 1], chunks[random.below(i)]);
  const auto most =
      share > 0 ? static_cast<size_t>(std::ceil(share * static_cast<double>(chunks.size()))) : chunks.size();
  uint64_t held = 0;
  size_t count = 0;
  for (; count < std::min(most, chunks.size()); ++count) {
    held += store.chunks()[chunks[count]].memory_bytes(true);
    if (held > bytes && count > 0) break;
  }
  chunks.resize(count);
  return chunks;
}

}  // namespace

// It certifies with its window full.
Plan Subsample::plan(const Problem& problem, const SolveOptions& options, const Context& context) const {
  return plan_rows({.weights = problem.weights(),
                    .bytes_per_row = Duals::kBytesPerRow,
                    .may_be_filed = true,
                    .v_bytes = problem.weights() * sizeof(double),
                    .blocks = Blocks::part,
                    .part_chunks = kChunksPerBlock},
                   problem, options, context);
}

Summary Subsample::solve(const Problem& problem, const SolveOptions& options, std::vector<Solution>& solutions,
                         const Context& context) const {
  Run run(problem, options, context);
  BlockOrder order;
  const Plan& plan = run.plan();
  // Where rows are streamed, the certificate's sums come out of the window.
  const uint64_t room = plan.window_bytes - (plan.rows == RowsHeld::streamed ? plan.certify_bytes : 0);
  order.chunks = draw_part(*problem.store, share.value_or(0), room, options.seed);
  // The duals of a block are in memory together: where they come from a file, of as many chunks as the plan has.
  const auto per_block = plan.duals_in_file ? static_cast<uint32_t>(plan.chunks_per_block) : Subsample::kChunksPerBlock;
  for (uint32_t end = per_block; end < order.chunks.size(); end += per_block) order.ends.push_back(end);
  order.ends.push_back(static_cast<uint32_t>(order.chunks.size()));
  run.hold(order.chunks);
  std::vector<DualDescent> tasks;
  for (size_t i = 0; i < problem.tasks.size(); ++i) {
    if (solutions[i].duals.empty()) solutions[i].duals = run.make_duals(i);
    tasks.emplace_back(problem, problem.tasks[i], options.seed, solutions[i], context.stop);
    tasks.back().let_rows_rest();
  }
  run.restore([&](FieldReader& from) {
    for (size_t i = 0; i < tasks.size(); ++i) {
      FieldReader own = from.inside(numbered("task", i));
      tasks[i].restore(own, order, run.block);
    }
  });
  const double settled = std::min(kSettled, options.tolerance);
  // Estimates leave out rows that rest, so they only say when a look at all of the part is worth it.
  const auto is_settled = [&] {
    std::vector<Run::Certifying> those;
    for (size_t i = 0; i < tasks.size(); ++i)
      those.push_back({.task = &problem.tasks[i], .solution = &solutions[i], .mend_above = settled});
    run.certify(those, &order);
    return std::all_of(those.begin(), those.end(), [&](const auto& one) { return one.certificate.gap() <= settled; });
  };
  for (;; ++run.pass, run.block = 0) {
    for (DualDescent& descent : tasks) descent.begin_pass(run.pass);
    run.work_on_pass(
        order,
        [&](const Block& block, size_t number) {
          return run.for_each_task(tasks.size(), [&](size_t i) { return tasks[i].solve_block(block, number, {}); });
        },
        [&](FieldWriter& to) {
          for (size_t i = 0; i < tasks.size(); ++i) {
            FieldWriter own = to.inside(numbered("task", i));
            tasks[i].save(own);
          }
        },
        plan.duals_in_file);
    PassReport report = run.pass_report();
    for (const DualDescent& descent : tasks) {
      const double w2 = descent.squared_weights();
      report.add_task(0.5 * w2 + descent.losses(), descent.dual_values() - 0.5 * w2);
    }
    report.tasks_left = tasks.size();
    report.solutions = &solutions;
    run.report(report);
    if (run.last_pass() || (report.gap_estimate() <= settled && is_settled())) break;
  }
  const Termination limit = run.last_pass() ? run.limit() : Termination::pass_limit;
  run.hold({});
  std::vector<Certificate> certificates = run.certify_all(solutions);
  const bool converged = std::all_of(certificates.begin(), certificates.end(),
                                     [&](const Certificate& one) { return one.gap() <= options.tolerance; });
  return run.finish(converged ? Termination::converged : limit, std::move(certificates));
}

}  // namespace linblock
