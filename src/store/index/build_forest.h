// Makes the index of a row store (store/metric_forest.h), or adds trees for rows that were appended, in the memory
// named: rows are read once, in random sets of chunks, and a tree is built of each.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/option.h"
#include "base/team.h"
#include "store/index/metric_forest.h"

namespace linblock {

inline constexpr uint64_t kMostTreeRows = 1'000'000'000'000;

// What is not given is as in the index that is there, or the default.
struct ForestOptions {
  std::optional<uint64_t> tree_rows = {};   // about so many rows a tree
  std::optional<uint32_t> branch = {};      // pivots of a node, at most
  std::optional<double> bias = {};          // below 0: none
  std::optional<uint64_t> seed = {};        // decides which rows share a tree, and which are pivots
  std::optional<uint64_t> page_bytes = {};  // of rows in a page, at most; 0: chosen
  bool force = false;                       // anew, though it is fresh
  uint64_t memory_bytes = uint64_t{1} << 30;
  Team team = 1;  // the result is the same for any number

  static constexpr auto options() {
    return std::tuple{
        option("tree_rows", &ForestOptions::tree_rows, "N",
               "Rows per tree, about; fewer in little memory (default: 100000)", {.from = 1, .to = kMostTreeRows}),
        option("branch", &ForestOptions::branch, "N", "Most pivots of a node (default: 16)",
               {.from = format::kLeastBranch, .to = format::kMostBranch}),
        option_as<std::optional<NumberOrNone<-1>>>("bias", &ForestOptions::bias, "X",
                                                   "Bias of the models that will use the index (default: none)"),
        option("seed", &ForestOptions::seed, "N", "Random seed (default: 1)"),
        option_as<std::optional<SizeText>>("page_bytes", &ForestOptions::page_bytes, "SIZE",
                                           "Most bytes of rows in a page, 4K to 64K (default: 32K, less for few rows)"),
        option("force", &ForestOptions::force, "", "Build the index again even if it is up to date")};
  }
};

inline constexpr uint64_t kDefaultTreeRows = 100000;
inline constexpr uint32_t kDefaultBranch = 16;
inline constexpr uint64_t kDefaultPageBytes = uint64_t{32} << 10;
inline constexpr uint64_t kMostPageBytes = uint64_t{64} << 10;

struct ForestContext {
  // Rows in their pages so far, of how many; from one thread at a time.
  std::function<void(uint64_t, uint64_t)> observer = [](uint64_t, uint64_t) {};
  const std::atomic<bool>* stop = nullptr;
};

struct ForestReport {
  bool changed = false;   // false: it was fresh, and made with these options
  bool extended = false;  // only trees for new rows were added
  uint64_t rows = 0;      // of what was built now, as nonzeros and trees
  uint64_t nonzeros = 0;
  uint64_t trees = 0;
  uint64_t rows_per_tree = 0;  // of the largest: less than tree_rows where the memory is small
  double seconds = 0;
};

// Brings the index up to date. Less memory than a tree of the store's largest chunk needs is refused with the numbers
// (ErrorKind::memory).
ForestReport build_forest(const Store& rows, const ForestOptions& options, const ForestContext& context = {});

// Less memory_bytes than this are refused.
uint64_t least_forest_memory(const Store& rows, const ForestOptions& options);

}  // namespace linblock
