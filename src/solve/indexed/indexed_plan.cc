#include "solve/indexed/indexed_plan.h"

#include <algorithm>

#include "base/error.h"
#include "base/memory.h"
#include "solve/core/chunk_sums.h"
#include "solve/indexed/indexed_task.h"

namespace linblock {

namespace {

constexpr uint64_t kLeastPages = 4;                     // in the cache
constexpr uint64_t kLeastActive = uint64_t{128} << 10;  // of each task
constexpr double kActiveShare = 0.75;                   // of what pages and active rows have together

}  // namespace

uint64_t active_bytes(const Plan& plan) {
  return static_cast<uint64_t>(kActiveShare * static_cast<double>(plan.cache_bytes)) /
         std::max<uint64_t>(1, plan.tasks);
}

Plan make_indexed_plan(const Problem& problem, const SolveOptions& options, const Context& context) {
  const MetricForest forest = MetricForest::open(*problem.store);
  const ChunkSums pages(forest.pages());
  const ChunkSums chunks(*problem.store);
  const uint64_t tasks = problem.tasks.size();
  const uint64_t rows = forest.pages().info().rows;
  Plan plan;
  plan.method = options.method.index();
  plan.tasks = tasks;
  plan.rows = RowsHeld::streamed;
  plan.chunks_per_block = 1;
  plan.weights_bytes = tasks * problem.weights() * (sizeof(float) + IndexedTask::kBytesPerWeight);
  plan.duals_bytes = tasks * RowFinder::bytes(rows, forest.pages().chunks().size(), problem.weights());
  const uint64_t others =
      context.reserved_bytes + directory_bytes(*problem.store) + directory_bytes(forest.pages()) + forest.table_bytes();
  const uint64_t fixed = kProgramBytes + plan.weights_bytes + plan.duals_bytes + others;
  // A chunk of the sample is in memory before any page is; at the end rows may be asked for again.
  const uint64_t least = std::max(chunks.least(), kLeastPages * pages.largest + tasks * kLeastActive);
  if (fixed + least > context.memory_bytes)
    fail(ErrorKind::memory,
         "{} weights{} need {}, notes on {} rows and the pages of the index {}, directories, the index's tables and "
         "what else is held {}, a few pages and active rows {}: with the program itself {} in all, and --memory allows "
         "{}. Give --memory {} or more, or use --solver dual",
         grouped(problem.weights()), tasks > 1 ? fmt::format(" for each of {} tasks", tasks) : "",
         human_bytes(plan.weights_bytes), grouped(rows), human_bytes(plan.duals_bytes), human_bytes(others),
         human_bytes(least), human_bytes(fixed + least), human_bytes(context.memory_bytes),
         size_of_at_least(fixed + least));
  plan.cache_bytes = context.memory_bytes - fixed;
  plan.window_bytes = plan.certify_window_bytes = chunks.least();
  return plan;
}

std::string describe_indexed_plan(const Plan& plan) {
  const std::string text = fmt::format(
      "pages of the index are read as they are asked for; weights {}, notes on rows and pages {}, pages "
      "and active rows {}",
      human_bytes(plan.weights_bytes), human_bytes(plan.duals_bytes), human_bytes(plan.cache_bytes));
  return plan.tasks > 1 ? fmt::format("{} tasks share the index; ", plan.tasks) + text : text;
}

}  // namespace linblock
