// One tree of an index, from rows in memory: which rows share a page, and the nodes above the pages.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "store/chunk/chunk.h"
#include "store/index/forest_file.h"
#include "store/index/pivot_products.h"

namespace linblock {

struct TreeOptions {
  uint32_t branch = 16;
  double bias = -1;  // below 0: none
  uint64_t page_bytes = 0;
  uint64_t seed = 0;         // of this tree
  uint64_t features = 0;     // feature numbers are below this
  uint64_t dense_bytes = 0;  // PivotProducts
};

// A row of `chunks`.
struct TreeRow {
  uint32_t chunk = 0;
  uint32_t row = 0;
};

// Pages and nodes are numbered from 0, the root is node 0, and children have larger numbers than their parents.
struct TreeDraft {
  std::vector<TreeRow> rows;           // page by page, by id within one
  std::vector<uint32_t> page_begin;    // pages + 1
  std::vector<uint32_t> page_parents;  // nodes
  std::vector<ForestNode> nodes;
  std::vector<uint32_t> node_parents;
  double nearest_angle = 0;  // as in ForestInfo::Trees
  double mean_angle = 0;
};

// Of all rows of decoded chunks that are not removed; there is at least one. `tick` is called for every node, and may
// throw.
TreeDraft build_tree(const std::vector<Chunk>& chunks, const TreeOptions& options, const std::function<void()>& tick);

// What it takes beside the chunks, for so many rows, at most: without the products and the nodes.
inline constexpr uint64_t kTreeBytesPerRow = sizeof(TreeRow) + sizeof(double) + 4 * sizeof(uint32_t);

}  // namespace linblock
