// The columns of a store, made the slow way from its rows, and as they were read back.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "store/columns/columns.h"
#include "store/columns/transpose.h"
#include "support/packing.h"

namespace linblock::test {

// feature -> (place, value)
using ColumnMap = std::map<uint64_t, std::vector<std::pair<uint32_t, float>>>;

inline ColumnMap expected_columns(const Store& rows) {
  ColumnMap columns;
  Chunk chunk;
  RowBuffer buffer;
  uint32_t place = 0;
  for (size_t number = 0; number < rows.chunks().size(); ++number) {
    rows.read(number, chunk);
    for (size_t row = 0; row < chunk.rows(); ++row, ++place) {
      if (chunk.removed(row)) continue;
      const Row view = chunk.row(row, buffer);
      for (size_t i = 0; i < view.index.size(); ++i)
        columns[rows.features().index(view.index[i])].emplace_back(place, view.value[i]);
    }
  }
  return columns;
}

// Pieces put together again; every rule of store/columns.h is looked at on the way.
inline ColumnMap columns_in(const Store& store) {
  ColumnMap columns;
  Chunk chunk;
  RowBuffer buffer;
  for (size_t number = 0; number < store.chunks().size(); ++number) {
    store.read(number, chunk);
    for (size_t row = 0; row < chunk.rows(); ++row) {
      const Row view = chunk.row(row, buffer);
      EXPECT_FALSE(view.index.empty());
      EXPECT_EQ(view.weight, 1);
      if (!columns.empty()) {
        const auto& [last_feature, last] = *columns.rbegin();
        EXPECT_TRUE(view.id > last_feature || (view.id == last_feature && row == 0)) << "chunk " << number;
        if (view.id == last_feature) {
          EXPECT_GT(view.index[0], last.back().first);
        }
      }
      for (size_t i = 0; i < view.index.size(); ++i) columns[view.id].emplace_back(view.index[i], view.value[i]);
    }
  }
  return columns;
}

inline TransposeOptions small_transpose(size_t threads = 1) {
  TransposeOptions options;
  options.memory_bytes = uint64_t{16} << 20;
  options.team = threads;
  return options;
}

}  // namespace linblock::test
