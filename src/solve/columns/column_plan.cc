#include "solve/columns/column_plan.h"

#include <algorithm>

#include "base/error.h"
#include "base/memory.h"
#include "solve/columns/column_blocks.h"
#include "solve/columns/column_task.h"
#include "solve/core/chunk_sums.h"
#include "store/columns/columns.h"

namespace linblock {

namespace {

constexpr size_t kLeastUsualChunks = 8;  // small blocks let reading and work overlap ...
constexpr size_t kUsualBlocks = 32;      // ... and few of them mix features well

// The map from original indices to the feature numbers of the answer.
uint64_t feature_map_bytes(const StoreInfo& info) {
  return info.frequent_features * 3 * sizeof(uint32_t) + info.feature_numbers() / 4;
}

std::vector<Remedy> remedies() { return {use("solver", "newton or dual")}; }

struct Needs {
  uint64_t weights = 0;
  uint64_t rows = 0;    // what is kept of each, for all tasks
  uint64_t facts = 0;   // of the rows, while tasks are set up
  uint64_t tables = 0;  // directories, the feature map, what the caller holds
  uint64_t fixed() const { return kProgramBytes + weights + rows + tables; }
};

Needs needs_of(const ColumnNeeds& column_needs, const Problem& problem, const Store& columns, const Context& context) {
  const uint64_t rows = columns.info().row_facts.rows;
  const bool weighted = columns.info().row_facts.weighted;
  const uint64_t tasks = problem.tasks.size();
  return {.weights =
              tasks * problem.weights() * (sizeof(float) + ColumnTask::kBytesPerWeight + column_needs.bytes_per_weight),
          .rows = tasks * rows * ColumnTask::kBytesPerRow + ColumnRows::bytes(rows, weighted),
          .facts = rows * (sizeof(uint64_t) + sizeof(int32_t) + (weighted ? sizeof(float) : 0)),
          .tables = context.reserved_bytes + directory_bytes(*problem.store) + directory_bytes(columns) +
                    feature_map_bytes(problem.store->info())};
}

[[noreturn]] void refuse(Plan plan, const Context& context, const Needs& needs, uint64_t least,
                         const std::string& for_what) {
  plan.add_part("chunk tables and what the caller holds", needs.tables);
  plan.add_part(for_what, least, remedies());
  refuse_memory(plan, needs.fixed() + least, context.memory_bytes);
}

// Of a block. Also where all columns are in memory: a permutation of all of them misses the cache at each, and took
// half as long again for a pass; it mixes features no better.
size_t usual_chunks(const Store& columns) {
  return std::max(kLeastUsualChunks, columns.chunks().size() / kUsualBlocks);
}

// All columns stay, decoded or at least encoded. False: they do not fit.
bool hold_all(const ChunkSums& chunks, const Store& columns, uint64_t free, Plan& plan) {
  const uint64_t visits = (chunks.rows + 1) * ColumnVisits::kBytesPerColumn;
  // Each thread decodes a column at a time; the plan does not know how many there are.
  const uint64_t space = std::min<uint64_t>(kPlannedThreads, plan.tasks) * chunks.largest_space;
  if (chunks.decoded + visits <= free)
    plan.rows = RowsHeld::decoded;
  else if (chunks.encoded + space + visits <= free)
    plan.rows = RowsHeld::encoded;
  else
    return false;
  plan.window_bytes = plan.rows == RowsHeld::decoded ? chunks.decoded : chunks.encoded + space;
  plan.chunks_per_block = std::clamp<size_t>(columns.chunks().size(), 1, usual_chunks(columns));
  return true;
}

}  // namespace

Plan plan_columns(const ColumnNeeds& column_needs, const Problem& problem, const SolveOptions& options,
                  const Context& context) {
  const Columns opened = Columns::open(*problem.store);
  const Store& columns = opened.store();
  const ChunkSums chunks(columns);
  const Needs needs = needs_of(column_needs, problem, columns, context);
  Plan plan;
  plan.columns = true;
  plan.tasks = problem.tasks.size();
  plan.add_part("weights", needs.weights, remedies(), features_words(problem));
  plan.add_part("margins", needs.rows, remedies(), grouped(columns.info().row_facts.rows) + " rows");
  // At the end rows may be asked for, in the memory of the columns.
  uint64_t answer = 0;
  if (context.rows_at_end)
    for (const ChunkInfo& chunk : problem.store->chunks()) answer = std::max(answer, 2 * chunk.memory_bytes(true));
  const uint64_t whole = chunks.encoded + chunks.largest_space;
  const uint64_t least_window = std::max({std::min(chunks.least(), whole), needs.facts, answer});
  const uint64_t notes = chunks.most_rows * ColumnVisits::kBytesPerColumn;  // of a chunk in work
  const size_t unit = ColumnUnits(columns).largest();
  const uint64_t least_streamed = unit * (chunks.largest + notes);
  if (needs.fixed() + least_window > context.memory_bytes)
    refuse(plan, context, needs, std::max(least_window, least_streamed), "a few chunks of columns");
  const uint64_t free = context.memory_bytes - needs.fixed();
  if (!hold_all(chunks, columns, free, plan)) {
    plan.rows = RowsHeld::streamed;
    if (least_streamed > free)
      refuse(plan, context, needs, least_streamed, fmt::format("a column that takes {} chunks", unit));
    const uint64_t fitting = std::max<uint64_t>(1, free / std::max<uint64_t>(1, 2 * chunks.largest + notes));
    plan.chunks_per_block = std::min<uint64_t>(fitting, usual_chunks(columns));
    plan.window_bytes = free - std::max<uint64_t>(plan.chunks_per_block, unit) * notes;
  }
  if (options.chunks_per_block > 0) plan.chunks_per_block = std::min(plan.chunks_per_block, options.chunks_per_block);
  plan.window_bytes = std::max(plan.window_bytes, std::min(answer, free));
  plan.certify_window_bytes = plan.window_bytes;
  plan.add_part("columns", plan.window_bytes);
  return plan;
}

}  // namespace linblock
