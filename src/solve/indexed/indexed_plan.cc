#include "solve/indexed/indexed_plan.h"

#include <algorithm>

#include "base/error.h"
#include "base/memory.h"
#include "solve/core/chunk_sums.h"
#include "solve/indexed/indexed_task.h"

namespace linblock {

namespace {

constexpr uint64_t kTornHeap = uint64_t{1} << 19;  // active rows come and go, and malloc cannot give all of it back
constexpr uint64_t kLeastPages = 4;                // in the cache
constexpr uint64_t kLeastActive = uint64_t{128} << 10;  // of each task
constexpr double kActiveShare = 0.75;                   // of what pages and active rows have together

}  // namespace

uint64_t active_bytes(const Plan& plan) {
  return static_cast<uint64_t>(kActiveShare * static_cast<double>(plan.cache_bytes)) /
         std::max<uint64_t>(1, plan.tasks);
}

Plan plan_indexed(const Problem& problem, const Context& context) {
  const MetricForest forest = MetricForest::open(*problem.store);
  const ChunkSums pages(forest.pages());
  const ChunkSums chunks(*problem.store);
  const uint64_t tasks = problem.tasks.size();
  const uint64_t rows = forest.pages().info().rows;
  Plan plan;
  plan.tasks = tasks;
  plan.rows = RowsHeld::streamed;
  plan.chunks_per_block = 1;
  plan.index = true;
  const uint64_t weights = tasks * problem.weights() * (sizeof(float) + IndexedTask::kBytesPerWeight);
  const uint64_t bounds = tasks * RowSearch::bytes(rows, forest.pages().chunks().size(), problem.weights());
  const std::vector<Remedy> remedies = {use("solver", "dual")};
  plan.add_part("weights", weights, remedies, features_words(problem));
  plan.add_part("bounds of rows and pages", bounds, remedies);
  const uint64_t tables =
      context.reserved_bytes + directory_bytes(*problem.store) + directory_bytes(forest.pages()) + forest.table_bytes();
  const uint64_t fixed = kProgramBytes + kTornHeap + weights + bounds + tables;
  // A chunk of the sample is in memory before any page is; at the end rows may be asked for again.
  const uint64_t least = std::max(chunks.least(), kLeastPages * pages.largest + tasks * kLeastActive);
  if (fixed + least > context.memory_bytes) {
    plan.add_part("chunk tables, trees and what the caller holds", tables);
    plan.add_part("a few pages and active rows", least, remedies);
    refuse_memory(plan, fixed + least, context.memory_bytes);
  }
  plan.cache_bytes = context.memory_bytes - fixed;
  plan.add_part("pages and active rows", plan.cache_bytes);
  plan.window_bytes = plan.certify_window_bytes = chunks.least();
  return plan;
}

}  // namespace linblock
