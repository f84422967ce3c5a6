#include "solve/solver.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"

namespace linblock {

namespace {

constexpr uint64_t kProgramBytes = uint64_t{8} << 20;  // code, libraries and stacks
constexpr size_t kLeastChunksPerBlock = 8;             // fewer mix badly
constexpr size_t kUsualChunksPerBlock = 16;            // more does not help data in memory: small blocks stay in cache

void check(const Problem& problem) {
  if (problem.store->info().rows == 0) fail(ErrorKind::input, "'{}' has no rows", problem.store->path());
  for (const Task& task : problem.tasks) {
    const auto& labels = problem.store->info().labels;
    if (!labels.contains(task.positive))
      fail(ErrorKind::input, "no row of '{}' has the label {}", problem.store->path(), task.positive);
    if (labels.size() < 2)
      fail(ErrorKind::input, "every row of '{}' has the label {}: a classifier needs two classes",
           problem.store->path(), task.positive);
    if (!(task.cost > 0) || !std::isfinite(task.cost)) fail(ErrorKind::usage, "the cost must be a positive number");
  }
}

}  // namespace

std::string Plan::describe() const {
  const char* held = rows == RowsHeld::decoded   ? "all rows stay in memory, decoded"
                     : rows == RowsHeld::encoded ? "all rows stay in memory, encoded"
                                                 : "rows are read each pass";
  return fmt::format("{}; weights {}, duals {}, rows {}, {} chunks a block", held, human_bytes(weights_bytes),
                     human_bytes(duals_bytes), human_bytes(window_bytes), chunks_per_block);
}

void Plan::save(SnapshotWriter& to) const {
  to.put("plan", std::span<const uint64_t>(std::array<uint64_t, 5>{static_cast<uint64_t>(rows), weights_bytes,
                                                                   duals_bytes, window_bytes, chunks_per_block}));
}

Plan Plan::restore(const SnapshotReader& from) {
  std::array<uint64_t, 5> numbers{};
  from.take("plan", std::span<uint64_t>(numbers));
  if (numbers[0] > static_cast<uint64_t>(RowsHeld::streamed) || numbers[4] == 0)
    fail(ErrorKind::damaged, "the checkpoint's plan cannot be understood: --fresh begins anew");
  return {.rows = static_cast<RowsHeld>(numbers[0]),
          .weights_bytes = numbers[1],
          .duals_bytes = numbers[2],
          .window_bytes = numbers[3],
          .chunks_per_block = numbers[4]};
}

std::string_view name_of(const Method& method) {
  constexpr std::array<std::string_view, 4> kNames = {"dual", "pegasos", "average", "subsample"};
  return kNames[method.index()];
}

Plan make_plan(const Problem& problem, const Method& method, const Context& context) {
  const Store& store = *problem.store;
  Plan plan;
  const uint64_t weights = problem.weights();
  plan.weights_bytes = weights * (sizeof(float) + sizeof(double)) * problem.tasks.size();
  plan.duals_bytes = store.info().rows * (sizeof(double) + 1) * problem.tasks.size();
  const uint64_t directory = store.chunks().size() * sizeof(ChunkInfo);
  const uint64_t fixed = kProgramBytes + plan.weights_bytes + plan.duals_bytes + directory;
  uint64_t encoded = 0;
  uint64_t decoded = 0;
  uint64_t largest = 0;
  for (const ChunkInfo& chunk : store.chunks()) {
    const uint64_t raw = std::max<uint64_t>(chunk.raw_bytes, chunk.extent());
    encoded += Chunk::memory_limit(raw, chunk.rows, chunk.nonzeros, false);
    decoded += Chunk::memory_limit(raw, chunk.rows, chunk.nonzeros, true);
    largest = std::max(largest, Chunk::memory_limit(raw, chunk.rows, chunk.nonzeros, true));
  }
  const uint64_t least = 4 * largest;
  if (fixed + least > context.memory_bytes)
    fail(
        ErrorKind::memory,
        "{} weights need {}, {} rows {} of duals, and a few chunks {}: with the program itself {} in all, and --memory "
        "allows {}. Give more memory, or fewer features",
        weights, human_bytes(plan.weights_bytes), store.info().rows, human_bytes(plan.duals_bytes), human_bytes(least),
        human_bytes(fixed + least), human_bytes(context.memory_bytes));
  const uint64_t free = context.memory_bytes - fixed;
  const size_t chunks = store.chunks().size();
  if (decoded <= free) {
    plan.rows = RowsHeld::decoded;
    plan.window_bytes = decoded;
  } else if (encoded <= free) {
    plan.rows = RowsHeld::encoded;
    plan.window_bytes = encoded;
  } else {
    plan.rows = RowsHeld::streamed;
    plan.window_bytes = free;
  }
  // Half of the window is worked on while the other half is read.
  const size_t fitting = plan.rows == RowsHeld::streamed ? std::max<size_t>(1, free / 2 / largest) : chunks;
  plan.chunks_per_block =
      std::clamp<size_t>(std::min(fitting, BlockSource::kMostChunksPerBlock), 1, std::max<size_t>(1, chunks));
  const DualBlock* dual = std::get_if<DualBlock>(&method);
  if (dual != nullptr && dual->schedule == Schedule::recomposed)
    plan.chunks_per_block = std::min(plan.chunks_per_block, std::max(kLeastChunksPerBlock, kUsualChunksPerBlock));
  return plan;
}

Summary solve(const Problem& problem, const SolveOptions& options, std::vector<Solution>& solutions,
              const Context& context) {
  check(problem);
  solutions.resize(problem.tasks.size());
  struct Run {
    const Problem& problem;
    const SolveOptions& options;
    std::vector<Solution>& solutions;
    const Context& context;
    Summary operator()(const DualBlock& method) const {
      return solve_dual_block(problem, options, method, solutions, context);
    }
    Summary operator()(const Pegasos& method) const {
      return solve_pegasos(problem, options, method, solutions, context);
    }
    Summary operator()(const Average& method) const {
      return solve_average(problem, options, method, solutions, context);
    }
    Summary operator()(const Subsample& method) const {
      return solve_subsample(problem, options, method, solutions, context);
    }
  };
  return std::visit(Run{problem, options, solutions, context}, options.method);
}

Certificate certify(const Problem& problem, const Task& task, const Solution& solution, const BlockOrder& order,
                    BlockSource& blocks, std::vector<double>* dual_weights) {
  Certifier certifier(problem, task);
  blocks.for_each(order, [&](const Block& block, size_t) {
    for (size_t i = 0; i < block.chunks.size(); ++i)
      certifier.add(*block.chunks[i], solution.duals.page(block.numbers[i]), solution.weights);
    return true;
  });
  if (dual_weights != nullptr) dual_weights->assign(certifier.dual_weights().begin(), certifier.dual_weights().end());
  return certifier.finish(solution.weights);
}

}  // namespace linblock
