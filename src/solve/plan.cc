// The plan: what the memory is used for.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "solve/run.h"

namespace linblock {

namespace {

constexpr size_t kUsualChunksPerBlock = 8;  // fewer mix badly, more does not help: small blocks stay in cache
constexpr uint64_t kLeastCertifyBytes = uint64_t{1} << 20;  // below, a certificate takes too many passes
constexpr double kLeastCacheShare = 0.4;                    // of the memory for rows, where a split is to be chosen
constexpr size_t kLeastChunksHeld = 4;
constexpr uint64_t kManyRows = 16;      // for each feature
constexpr uint64_t kKeptRowsShare = 3;  // one in so many rows may be kept where all are in memory ...
constexpr uint64_t kKeptRowBytes = 64;  // ... on a list with so many bytes a row

// What chunks take in memory.
struct ChunkSums {
  uint64_t raw = 0;
  uint64_t encoded = 0;
  uint64_t decoded = 0;
  uint64_t largest = 0;  // decoded

  explicit ChunkSums(const Store& store) {
    for (const ChunkInfo& chunk : store.chunks()) {
      const uint64_t bytes = std::max<uint64_t>(chunk.raw_bytes, chunk.extent());
      const uint64_t whole = Chunk::memory_limit(bytes, chunk.rows, chunk.nonzeros, true);
      raw += bytes;
      encoded += Chunk::memory_limit(bytes, chunk.rows, chunk.nonzeros, false);
      decoded += whole;
      largest = std::max(largest, whole);
    }
  }
};

// Rows come anew each pass: a window for them, and what is left for rows near the margin.
void split_memory(const Problem& problem, const DualBlock* dual, const ChunkSums& chunks, uint64_t free, Plan& plan) {
  const uint64_t v = problem.weights() * sizeof(double);
  const uint64_t least = kLeastChunksHeld * chunks.largest;
  const bool recomposed = dual != nullptr && dual->schedule == Schedule::recomposed;
  uint64_t window = free;
  if (dual != nullptr && dual->cache_fraction) {
    window = static_cast<uint64_t>(static_cast<double>(free) * (1 - *dual->cache_fraction));
  } else if (recomposed && !plan.duals_in_file) {
    // Two blocks, or what a certificate needs to be made in one pass, and a little.
    const auto most = static_cast<uint64_t>(static_cast<double>(free) * (1 - kLeastCacheShare));
    window = std::max(std::min(2 * kUsualChunksPerBlock * chunks.largest, most), v) + least;
  }
  plan.window_bytes = std::clamp(window, least, free);
  plan.cache_bytes = plan.duals_in_file ? 0 : free - plan.window_bytes;
  if (dual == nullptr) plan.cache_bytes = 0;
  // Sub-sampling certifies with its window full.
  plan.certify_bytes = std::min(v, dual != nullptr ? plan.window_bytes - least / 2 : plan.window_bytes / 4);
  plan.certify_window_bytes = plan.window_bytes - plan.certify_bytes;
  const auto fitting = std::max<size_t>(1, plan.window_bytes / 2 / chunks.largest);
  plan.chunks_per_block = recomposed ? std::min(fitting, kUsualChunksPerBlock) : fitting;
}

}  // namespace

Plan make_plan(const Problem& problem, const Method& method, const Context& context) {
  const Store& store = *problem.store;
  const DualBlock* const dual = std::get_if<DualBlock>(&method);
  const ChunkSums chunks(store);
  const size_t count = store.chunks().size();
  const uint64_t rows = store.info().rows;
  Plan plan;
  const uint64_t vectors = std::holds_alternative<Average>(method) ? 2 : 1;
  plan.weights_bytes = problem.weights() * sizeof(float) * vectors;
  plan.duals_bytes = std::holds_alternative<Pegasos>(method) ? 0 : rows * Duals::kBytesPerRow;
  const uint64_t directory = count * (sizeof(ChunkInfo) + 4 * sizeof(uint64_t));
  const uint64_t fixed = kProgramBytes + context.reserved_bytes + plan.weights_bytes + directory;
  const uint64_t least = kLeastChunksHeld * chunks.largest;
  // The duals of the rows in work are always here; all of them, as long as they leave room for rows.
  if (context.checkpoint.wanted() && fixed + plan.duals_bytes + least + least / 2 > context.memory_bytes &&
      plan.duals_bytes > 0) {
    plan.duals_in_file = true;
    plan.duals_bytes = std::min(plan.duals_bytes, rows * Duals::kBytesPerRow / count * (kUsualChunksPerBlock + 1));
  }
  const uint64_t taken = fixed + plan.duals_bytes;
  if (taken + least > context.memory_bytes)
    fail(ErrorKind::memory,
         "{} weights need {}, the duals of {} rows {}, the store's directory {}, a few chunks {}{}: with the program "
         "itself {} in all, and --memory allows {}. Give more memory, pack with smaller chunks (--chunk-bytes), or use "
         "fewer features",
         problem.weights(), human_bytes(plan.weights_bytes), rows, human_bytes(plan.duals_bytes),
         human_bytes(directory), human_bytes(least),
         context.reserved_bytes > 0 ? ", the test data " + human_bytes(context.reserved_bytes) : "",
         human_bytes(taken + least), human_bytes(context.memory_bytes));
  const uint64_t free = context.memory_bytes - taken;
  const uint64_t v = problem.weights() * sizeof(double);
  plan.inner = dual == nullptr || dual->inner == 0 ? 1 : static_cast<size_t>(dual->inner);
  // Kept rows need no memory of their own where all are here, only a list; and their duals at hand.
  const bool keeps_rows = dual != nullptr && dual->schedule == Schedule::recomposed &&
                          dual->cache_fraction.value_or(1) > 0 && !plan.duals_in_file;
  const uint64_t list = keeps_rows ? rows / kKeptRowsShare * kKeptRowBytes : 0;
  if (chunks.decoded + v + list <= free || chunks.encoded + std::min(v, kLeastCertifyBytes) <= free) {
    plan.rows = chunks.decoded + v + list <= free ? RowsHeld::decoded : RowsHeld::encoded;
    plan.window_bytes = plan.rows == RowsHeld::decoded ? chunks.decoded : chunks.encoded;
    plan.certify_bytes = std::min(v, free - plan.window_bytes);
    plan.cache_bytes = std::min(free - plan.window_bytes - plan.certify_bytes, list);
    plan.chunks_per_block = dual != nullptr && dual->schedule == Schedule::recomposed ? kUsualChunksPerBlock : count;
  } else {
    split_memory(problem, dual, chunks, free, plan);
  }
  plan.chunks_per_block = std::clamp<size_t>(std::min(plan.chunks_per_block, BlockSource::kMostChunksPerBlock), 1,
                                             std::max<size_t>(1, count));
  const uint64_t block_nonzeros = store.info().nonzeros / count * plan.chunks_per_block;
  plan.few_features = dual != nullptr && dual->schedule == Schedule::recomposed &&
                      rows > kManyRows * problem.weights() && block_nonzeros > kManyRows * problem.weights();
  const bool measured = dual != nullptr && dual->inner == 0 && !dual->converge;
  plan.settled = !measured || plan.rows != RowsHeld::streamed;
  return plan;
}

std::string Plan::describe() const {
  std::string text = rows == RowsHeld::decoded   ? "all rows stay in memory, decoded"
                     : rows == RowsHeld::encoded ? "all rows stay in memory, encoded"
                                                 : "rows are read each pass";
  text += fmt::format("; weights {}, duals {}{}, rows {}, {} chunks a block", human_bytes(weights_bytes),
                      human_bytes(duals_bytes), duals_in_file ? " (the others in a file)" : "",
                      human_bytes(window_bytes), chunks_per_block);
  if (cache_bytes > 0 && rows == RowsHeld::streamed)
    text += fmt::format(", {} for rows near the margin", human_bytes(cache_bytes));
  return text;
}

void Plan::save(SnapshotWriter& to) const {
  to.put("plan", std::span<const uint64_t>(std::array<uint64_t, 13>{
                     static_cast<uint64_t>(rows), duals_in_file ? 1U : 0U, weights_bytes, duals_bytes, window_bytes,
                     cache_bytes, certify_bytes, certify_window_bytes, chunks_per_block, inner,
                     static_cast<uint64_t>(idle), settled ? 1U : 0U, few_features ? 1U : 0U}));
}

Plan Plan::restore(const SnapshotReader& from) {
  std::array<uint64_t, 13> numbers{};
  from.take("plan", std::span<uint64_t>(numbers));
  if (numbers[0] > static_cast<uint64_t>(RowsHeld::streamed) || numbers[8] == 0 || numbers[9] == 0)
    fail(ErrorKind::damaged, "the checkpoint's plan cannot be understood: --fresh begins anew");
  return {.rows = static_cast<RowsHeld>(numbers[0]),
          .duals_in_file = numbers[1] != 0,
          .weights_bytes = numbers[2],
          .duals_bytes = numbers[3],
          .window_bytes = numbers[4],
          .cache_bytes = numbers[5],
          .certify_bytes = numbers[6],
          .certify_window_bytes = numbers[7],
          .chunks_per_block = numbers[8],
          .few_features = numbers[12] != 0,
          .inner = numbers[9],
          .idle = static_cast<double>(numbers[10]),
          .settled = numbers[11] != 0};
}

}  // namespace linblock
