// An index looked at the slow way: every row below every child, in double.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "store/index/build_forest.h"
#include "support/packing.h"

namespace linblock::test {

inline ForestOptions small_forest(size_t threads = 1) {
  ForestOptions options;
  options.tree_rows = 500;
  options.branch = 4;
  options.page_bytes = 4096;
  options.memory_bytes = uint64_t{32} << 20;
  options.team = threads;
  return options;
}

inline ForestReport make_forest(const std::string& path, const ForestOptions& options = small_forest()) {
  return build_forest(Store::open(path), options);
}

using DenseRow = std::map<uint32_t, double>;

inline DenseRow dense(std::span<const uint32_t> index, std::span<const float> value) {
  DenseRow row;
  for (size_t i = 0; i < index.size(); ++i) row[index[i]] = value[i];
  return row;
}
inline double dot(const DenseRow& a, const DenseRow& b) {
  double sum = 0;
  for (const auto& [index, value] : a)
    if (const auto found = b.find(index); found != b.end()) sum += value * found->second;
  return sum;
}
inline double distance(const DenseRow& a, const DenseRow& b) {
  double sum = 0;
  for (const auto& [index, value] : a) {
    const auto found = b.find(index);
    sum += std::pow(value - (found == b.end() ? 0 : found->second), 2);
  }
  for (const auto& [index, value] : b)
    if (!a.contains(index)) sum += value * value;
  return std::sqrt(sum);
}

struct PageRow {
  uint64_t id = 0;
  int32_t label = 0;
  DenseRow row;
};

inline std::vector<PageRow> rows_of_page(const MetricForest& forest, uint32_t page) {
  Chunk chunk;
  RowBuffer buffer;
  forest.pages().read(page, chunk);
  std::vector<PageRow> rows;
  for (size_t i = 0; i < chunk.rows(); ++i) {
    const Row row = chunk.row(i, buffer);
    rows.push_back({row.id, row.label, dense(row.index, row.value)});
  }
  return rows;
}

inline std::vector<PageRow> rows_below(const MetricForest& forest, const MetricForest::Child& child) {
  if (child.is_page) return rows_of_page(forest, child.number);
  std::vector<PageRow> rows;
  for (const MetricForest::Child& below : forest.read_node(child.number).children)
    for (PageRow& row : rows_below(forest, below)) rows.push_back(std::move(row));
  return rows;
}

// What an index must be, for every child of every node. Returns how many rows of all nodes are not with their nearest
// pivot, where small children were joined or rows cut by id.
inline size_t expect_true_bounds(const MetricForest& forest) {
  const double bias2 = std::pow(std::max(0.0, forest.info().bias), 2);
  constexpr float kMost = std::numeric_limits<float>::max();  // bounds beyond it are infinite
  size_t elsewhere = 0;
  for (uint32_t number = 0; number < forest.nodes(); ++number) {
    const MetricForest::Node node = forest.read_node(number);
    const size_t count = node.children.size();
    EXPECT_LE(count, forest.info().branch);
    std::vector<DenseRow> pivots;
    for (size_t k = 0; k < count; ++k) pivots.push_back(dense(node.pivot_index(k), node.pivot_value(k)));
    const auto cosine = [&](const DenseRow& a, const DenseRow& b) {
      const double norms = std::sqrt((dot(a, a) + bias2) * (dot(b, b) + bias2));
      return norms == 0 ? 0 : (dot(a, b) + bias2) / norms;
    };
    for (size_t k = 0; k < count; ++k) {
      const MetricForest::Child& child = node.children[k];
      EXPECT_NEAR(node.norm2[k], dot(pivots[k], pivots[k]) + bias2, 1e-9 * (1 + node.norm2[k]));
      for (size_t j = 0; j < k; ++j) {
        EXPECT_NEAR(node.cosine(k, j), cosine(pivots[k], pivots[j]), 1e-6);
        EXPECT_EQ(node.cosine(k, j), node.cosine(j, k));
      }
      EXPECT_EQ(child.is_page ? forest.parent_of_page(child.number) : forest.parent_of_node(child.number), number);
      const std::vector<PageRow> rows = rows_below(forest, child);
      EXPECT_EQ(rows.size(), child.rows);
      uint64_t labels = 0;
      double radius = 0;
      double least = INFINITY;
      double most = 0;
      bool pivot_found = false;
      for (const PageRow& row : rows) {
        const double norm = std::sqrt(dot(row.row, row.row));
        radius = std::max(radius, distance(row.row, pivots[k]));
        least = std::min(least, norm);
        most = std::max(most, norm);
        labels |= uint64_t{1} << (static_cast<uint32_t>(row.label) % 64);
        pivot_found = pivot_found || row.row == pivots[k];
        double best = 0;
        for (const DenseRow& pivot : pivots) best = std::max(best, std::abs(cosine(row.row, pivot)));
        if (std::abs(cosine(row.row, pivots[k])) < best - 1e-5) ++elsewhere;
      }
      EXPECT_TRUE(pivot_found) << "a pivot is a row below its child";
      EXPECT_EQ(child.label_bits, labels);
      EXPECT_GE(child.radius, radius);
      EXPECT_LE(std::min(child.radius, kMost), radius * (1 + 1e-6));
      EXPECT_LE(child.smallest_norm, least);
      EXPECT_GE(child.smallest_norm, std::min<double>(kMost, least) * (1 - 1e-6));
      EXPECT_GE(child.largest_norm, most);
      EXPECT_LE(std::min(child.largest_norm, kMost), most * (1 + 1e-6));
    }
  }
  return elsewhere;
}

// Whole, every row once and as it is in the store.
inline void expect_whole(const std::string& path) {
  const Store rows = Store::open(path);
  const MetricForest forest = MetricForest::open(rows);
  verify(forest.pages(), 1);
  std::vector<OwnedRow> expected;
  for (OwnedRow& row : rows_by_chunk(rows)) expected.push_back(std::move(row));
  const std::vector<uint64_t> removed = rows.removed_ids();
  std::erase_if(expected,
                [&](const OwnedRow& row) { return std::binary_search(removed.begin(), removed.end(), row.id); });
  EXPECT_TRUE(rows_by_chunk(forest.pages()) == expected);
}

}  // namespace linblock::test
