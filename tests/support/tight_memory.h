// Small problems in so little memory that their rows are streamed, or their duals go to a file.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "solve/solve.h"
#include "support/memory_folder.h"
#include "support/small_problems.h"

namespace linblock::test {

// 60 buckets of a few rows, a chunk each, in a folder in memory: a chunk takes a few pages to hold, so that all
// together take several times what a run needs at the least.
struct ManyChunks {
  explicit ManyChunks(uint32_t features, size_t rows_per_chunk = 5)
      : ManyChunks(make_data(kChunks * rows_per_chunk, features, 1)) {}
  explicit ManyChunks(Data rows) : data(std::move(rows)), store(write(folder / "store", data)) {}
  // So few features that steps are longer, and that a mean of the weights is kept.
  static ManyChunks with_few_features() { return ManyChunks(5, 25); }

  const MemoryFolder folder;
  const Data data;
  const Store store;

 private:
  static constexpr uint32_t kChunks = 60;

  static Store write(const std::string& path, const Data& data) {
    StoreWriter writer(path);
    writer.begin({.buckets = kChunks, .chunk_bytes = 4096});
    for (const OwnedRow& row : data.rows) writer.add(row.view());
    writer.commit();
    return Store::open(path);
  }
};

inline Context context_with(uint64_t memory_bytes, const std::string& checkpoint = "") {
  Context context{.memory_bytes = memory_bytes};
  context.checkpoint.path = checkpoint;
  return context;
}

// The least memory for which there is a plan that `is_good`, to the kilobyte.
template <typename Condition>
uint64_t least_memory_where(const Problem& problem, const AnyMethod& method, const std::string& checkpoint,
                            Condition&& is_good) {
  const auto is_enough = [&](uint64_t bytes) {
    try {
      return is_good(make_plan(problem, method, context_with(bytes, checkpoint)));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::memory) << error.what();
      return false;
    }
  };
  uint64_t refused = 0;
  uint64_t enough = uint64_t{1} << 30;
  while (enough - refused > 1024) {
    const uint64_t middle = refused + (enough - refused) / 2;
    (is_enough(middle) ? enough : refused) = middle;
  }
  return enough;
}

inline uint64_t least_memory(const Problem& problem, const AnyMethod& method, const std::string& checkpoint = "") {
  return least_memory_where(problem, method, checkpoint, [](const Plan&) { return true; });
}

// All rows stay, and for no byte less they would not: so they are encoded.
inline uint64_t memory_for_encoded_rows(const Problem& problem, const AnyMethod& method,
                                        const std::string& checkpoint) {
  return least_memory_where(problem, method, checkpoint,
                            [](const Plan& plan) { return plan.rows != RowsHeld::streamed && !plan.duals_in_file; });
}

// Three quarters of the rows would fit; their duals do.
inline uint64_t streaming_memory(const Problem& problem) {
  const uint64_t least = least_memory(problem, Dual{});
  const uint64_t enough =
      least_memory_where(problem, Dual{}, "", [](const Plan& plan) { return plan.rows != RowsHeld::streamed; });
  return least + (enough - least) * 3 / 4;
}

// Not even the duals fit, where there is a checkpoint that they can travel with.
inline uint64_t memory_without_duals(const Problem& problem) { return least_memory(problem, Dual{}, "somewhere"); }

}  // namespace linblock::test
