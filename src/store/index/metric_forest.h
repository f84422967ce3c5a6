// The index of a row store: all its rows once more, in pages of rows that point the same way, under trees of pivots.
// Made by build_forest(); a store of its own in the folder STORE/index, whose chunks are the pages.
//
// Rows are told apart by the angle acos(cos^2) of the lines they point along, with the bias as one more coordinate
// where it is not negative. Each row of a tree belongs to the child with the nearest pivot, on every level; small
// children of a node share a page.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "store/core/store.h"
#include "store/index/forest_file.h"

namespace linblock {

enum class ForestState {
  absent,
  stale,   // made from other rows: some were removed since, or compacted
  behind,  // rows were only appended since: new trees for those are missing
  fresh,
};

ForestState forest_state(const Store& rows);
// The same for whoever has read the index's manifest.
ForestState forest_state(const StoreInfo& rows, const StoreInfo& index);
// A store's index goes, where it has one.
void remove_forest(const std::string& store);
// How long it took to make what is there, in seconds; 0 where that is not known. Nothing depends on it.
double forest_build_seconds(const std::string& store);

class MetricForest {
 public:
  using Tree = ForestTree;
  using Child = ForestChild;
  using Node = ForestNode;
  static constexpr uint32_t kNone = kNoNode;

  // Throws ErrorKind::input where it is absent, stale or behind, with the remedy; ErrorKind::damaged.
  static MetricForest open(const Store& rows);
  // Whatever the rows are by now.
  static MetricForest open_pages(Store pages);

  // Chunk number = page number.
  const Store& pages() const { return pages_; }
  const ForestInfo& info() const { return pages_.info().forest; }
  std::span<const Tree> trees() const { return trees_; }
  size_t nodes() const { return first_node_.back(); }
  // kNone at a root.
  uint32_t parent_of_node(uint32_t node) const;
  uint32_t parent_of_page(uint32_t page) const;
  // Verified; safe from several threads.
  Node read_node(uint32_t node) const;
  // On disk.
  uint64_t node_bytes(uint32_t node) const;
  // What the tables take in memory, beside the directory of the pages.
  uint64_t table_bytes() const;

 private:
  explicit MetricForest(Store pages);

  Store pages_;
  std::vector<ForestFile> files_;
  std::vector<uint32_t> first_node_;  // of each file, and the end
  std::vector<uint32_t> first_page_;
  std::vector<Tree> trees_;
};

// Every node is read and every child found in its place; the rows in the pages are verify()'s. Throws
// ErrorKind::damaged.
void check_forest(const MetricForest& forest);

}  // namespace linblock
