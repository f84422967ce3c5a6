// The file of trees beside a segment of an index: node bodies, read one by one, and behind them the tables that say
// where they are, which stay in memory. docs/format.md, "Index".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/file.h"
#include "store/core/manifest.h"

namespace linblock {

inline constexpr uint32_t kNoNode = UINT32_MAX;

// Half-open ranges; the root is a node of the tree's.
struct ForestTree {
  uint32_t root = 0;
  uint32_t first_node = 0;
  uint32_t last_node = 0;
  uint32_t first_page = 0;
  uint32_t last_page = 0;
};

// What is known of all rows below a child. Norms and distances are of the values alone, without the bias; the bounds
// are true ones: rounded outwards.
struct ForestChild {
  bool is_page = true;
  uint32_t number = 0;  // of the page or the node
  uint32_t rows = 0;
  uint64_t label_bits = 0;  // bit (uint32(label) mod 64) of every label
  float radius = 0;         // the largest |x - pivot|
  float smallest_norm = 0;
  float largest_norm = 0;
};

inline uint64_t label_bit(int32_t label) { return uint64_t{1} << (static_cast<uint32_t>(label) % 64); }

// A node with its children, and for each a pivot: a row of the data, with the store's feature numbers.
struct ForestNode {
  std::vector<ForestChild> children;
  std::vector<uint32_t> begin;  // children + 1: where a pivot's entries are
  std::vector<uint32_t> index;
  std::vector<float> value;
  std::vector<double> norm2;   // of the pivots, the bias among them
  std::vector<float> cosines;  // children x children, likewise

  float cosine(size_t i, size_t j) const { return cosines[i * children.size() + j]; }
  std::span<const uint32_t> pivot_index(size_t child) const {
    return std::span(index).subspan(begin[child], begin[child + 1] - begin[child]);
  }
  std::span<const float> pivot_value(size_t child) const {
    return std::span(value).subspan(begin[child], begin[child + 1] - begin[child]);
  }
  uint64_t memory_bytes() const;
};

// Where a node is, and whose child.
struct ForestPlace {
  uint32_t parent = kNoNode;
  uint32_t bytes = 0;
  uint64_t checksum = 0;
};

std::vector<unsigned char> encode_node(const ForestNode& node);
// The bytes have passed their checksum; throws ErrorKind::damaged where they make no sense all the same.
ForestNode decode_node(std::span<const unsigned char> bytes, const std::string& where);

// Numbers are those of one segment: the first page and the first node are 0. Trees come one after another, and so do
// the nodes of each, the root first.
class ForestFileWriter {
 public:
  ForestFileWriter(const std::string& index, uint64_t seal, uint64_t number);

  // A tree with `nodes` nodes, whose bodies follow, and the parents of its pages.
  void add_tree(uint32_t nodes, std::span<const uint32_t> parents_of_pages);
  void add_node(uint32_t parent, std::span<const unsigned char> body);
  uint32_t nodes() const { return static_cast<uint32_t>(places_.size()); }
  uint32_t pages() const { return static_cast<uint32_t>(page_parents_.size()); }
  // Syncs and closes; what the manifest must say, without the angles.
  ForestInfo::Trees finish();

 private:
  void flush();

  File file_;
  uint64_t seal_;
  ForestInfo::Trees info_;
  std::vector<unsigned char> header_;
  std::vector<unsigned char> pending_;
  std::vector<std::pair<uint32_t, uint32_t>> trees_;  // nodes and pages of each
  std::vector<ForestPlace> places_;
  std::vector<uint32_t> page_parents_;
};

// One such file, open: its tables checked, its bodies when they are read.
class ForestFile {
 public:
  // `pages`: how many chunks the segment has.
  ForestFile(const std::string& index, const StoreInfo& info, const ForestInfo::Trees& trees, uint64_t pages);

  std::span<const ForestTree> trees() const { return trees_; }
  size_t nodes() const { return places_.size(); }
  uint32_t parent_of_node(uint32_t node) const { return places_[node].parent; }
  uint32_t parent_of_page(uint32_t page) const { return page_parents_[page]; }
  uint32_t node_bytes(uint32_t node) const { return places_[node].bytes; }
  // Verified; safe from several threads.
  ForestNode read_node(uint32_t node) const;
  uint64_t table_bytes() const;

 private:
  File file_;
  uint64_t seal_;
  uint64_t number_;
  std::vector<ForestTree> trees_;
  std::vector<ForestPlace> places_;
  std::vector<uint64_t> offsets_;
  std::vector<uint32_t> page_parents_;
};

}  // namespace linblock
