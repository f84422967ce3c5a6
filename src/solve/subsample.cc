// A random part of the rows that fits the memory, solved there.
//
// Problem:  min over w  1/2 |w|^2 + C sum over the part of losses
// Update:   dual coordinate descent, the part in memory all the time
// Paper:    Yu, Hsieh, Chang, Lin: section 7.1 and Figure 6 (sub-sampling).
// Reads:    the part once, and the whole store once for the certificate.
//
// Rows that were left out have alpha 0, which is feasible: the answer is certified for the WHOLE problem, and the gap
// says what leaving them out has cost.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "solve/dual_block.h"
#include "solve/run.h"

namespace linblock {

namespace {

constexpr double kSettled = 1e-3;  // of its own best: more exact than what leaving rows out costs
constexpr uint32_t kChunksPerBlock = 16;

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
    const ChunkInfo& chunk = store.chunks()[chunks[count]];
    held += Chunk::memory_limit(std::max<uint64_t>(chunk.raw_bytes, chunk.extent()), chunk.rows, chunk.nonzeros, true);
    if (held > bytes && count > 0) break;
  }
  chunks.resize(count);
  return chunks;
}

}  // namespace

Summary solve_subsample(const Problem& problem, const SolveOptions& options, const Subsample& method,
                        std::vector<Solution>& solutions, const Context& context) {
  Run run(problem, options, method, context);
  const Task& task = problem.tasks.front();
  Solution& solution = solutions.front();
  if (solution.duals.empty()) solution.duals = run.make_duals();
  BlockOrder order;
  const Plan& plan = run.plan();
  // Where rows are streamed, the certificate's sums come out of the window.
  const uint64_t room = plan.window_bytes - (plan.rows == RowsHeld::streamed ? plan.certify_bytes : 0);
  order.chunks = draw_part(*problem.store, method.share, room, options.seed);
  for (uint32_t end = kChunksPerBlock; end < order.chunks.size(); end += kChunksPerBlock) order.ends.push_back(end);
  order.ends.push_back(static_cast<uint32_t>(order.chunks.size()));
  run.hold(order.chunks);
  DualDescent descent(problem, task, options.seed, solution, context.stop);
  const auto save = [&](SnapshotWriter& to) { descent.save(to); };
  if (const auto checkpoint = run.take_checkpoint()) descent.restore(*checkpoint, order, run.block);
  const double settled = std::min(kSettled, options.tolerance);
  for (;; ++run.pass, run.block = 0) {
    descent.begin_pass(run.pass);
    run.work_on_pass(
        order, [&](const Block& block, size_t number) { return descent.solve_block(block, number, {}); }, save,
        plan.duals_in_file);
    PassReport report = run.pass_report();
    const double w2 = descent.squared_weights();
    report.primal_estimate = 0.5 * w2 + descent.losses();
    report.dual = descent.dual_values() - 0.5 * w2;
    report.weights = &solution.weights;
    run.report(report);
    // The estimate leaves out rows that rest, so it is only when a look at all of the part is worth it.
    if (run.last_pass() || (report.gap_estimate() <= settled &&
                            run.certify(task, solution, {.mend_above = settled, .order = &order}).gap() <= settled))
      break;
  }
  const Termination limit = run.last_pass() ? run.limit() : Termination::pass_limit;
  run.hold({});
  const Certificate certificate = run.certify(task, solution);
  return run.finish(certificate.gap() <= options.tolerance ? Termination::converged : limit, certificate);
}

}  // namespace linblock
