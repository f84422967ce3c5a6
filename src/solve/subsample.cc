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
#include <chrono>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "solve/dual_block.h"

namespace linblock {

namespace {

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
  constexpr double kSettled = 1e-3;  // of its own best: more exact than what leaving rows out costs
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  Summary summary;
  summary.plan = make_plan(problem, method, context);
  context.on_plan(summary.plan);
  const Task& task = problem.tasks.front();
  Solution& solution = solutions.front();
  bool stopped = false;
  {
    BlockOrder order;
    order.chunks = draw_part(*problem.store, method.share, summary.plan.window_bytes, options.seed);
    BlockSource part(*problem.store, RowsHeld::decoded, summary.plan.window_bytes, context.threads, order.chunks);
    for (uint32_t end = 16; end < order.chunks.size(); end += 16) order.ends.push_back(end);
    order.ends.push_back(static_cast<uint32_t>(order.chunks.size()));
    DualDescent descent(problem, task, options.seed, solution);
    for (int pass = 1; pass <= options.max_passes && !stopped; ++pass) {
      descent.begin_pass(pass);
      part.for_each(order, [&](const Block& block, size_t number) {
        descent.solve_block(block, number, 1, false);
        stopped = context.stop != nullptr && *context.stop;
        return !stopped;
      });
      summary.passes = pass;
      double w2 = 0;
      for (const float weight : solution.weights) w2 += double{weight} * double{weight};
      const double primal = 0.5 * w2 + descent.losses();
      const double dual = descent.dual_values() - 0.5 * w2;
      context.observer({.pass = pass,
                        .seconds = seconds(),
                        .primal_estimate = primal,
                        .dual = dual,
                        .bytes_read = part.bytes_read(),
                        .wait_seconds = part.wait_seconds(),
                        .weights = &solution.weights});
      // The estimate leaves out rows that rest, so it is only when a look at all of the part is worth it.
      const double settled = std::min(kSettled, options.tolerance);
      if (primal - dual <= settled * dual && certify(problem, task, solution, order, part).gap() <= settled) break;
      if (options.max_seconds > 0 && seconds() > options.max_seconds) break;
    }
    summary.bytes_read = part.bytes_read();
    summary.read_wait_seconds = part.wait_seconds();
  }
  summary.solve_seconds = seconds() - summary.read_wait_seconds;
  BlockSource blocks(*problem.store, RowsHeld::streamed, summary.plan.window_bytes, context.threads);
  const Certificate certificate = certify(problem, task, solution, BlockOrder::all(*problem.store), blocks);
  summary.certify_seconds = seconds() - summary.solve_seconds - summary.read_wait_seconds;
  summary.bytes_read += blocks.bytes_read();
  summary.termination = stopped                                  ? Termination::interrupted
                        : certificate.gap() <= options.tolerance ? Termination::converged
                                                                 : Termination::pass_limit;
  summary.certificates = {certificate};
  summary.total_seconds = seconds();
  return summary;
}

}  // namespace linblock
