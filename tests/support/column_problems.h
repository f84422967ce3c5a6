// Problems for the methods that go over feature columns: a store with its columns, cut as a test asks.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "solve/solve.h"
#include "store/columns/columns.h"
#include "store/columns/transpose.h"
#include "support/small_problems.h"

namespace linblock::test {

inline constexpr uint32_t kAllColumns = 0;

inline void write_columns(const Store& store, uint32_t columns_per_chunk = kAllColumns, uint64_t chunk_bytes = 0) {
  transpose(store,
            {.memory_bytes = uint64_t{64} << 20, .chunk_bytes = chunk_bytes, .columns_per_chunk = columns_per_chunk});
}

inline Store write_store_with_columns(const Folder& folder, const Data& data, uint32_t columns_per_chunk = kAllColumns,
                                      size_t rows_per_chunk = 40) {
  Store store = write_store(folder, data, rows_per_chunk);
  write_columns(store, columns_per_chunk);
  return store;
}

// Values that are all 1.
inline Data with_equal_values(Data data) {
  for (OwnedRow& row : data.rows)
    for (float& value : row.value) value = 1;
  return data;
}

// 1/2 |w|^2 + losses at float weights, where feature numbers are original indices.
inline double primal_at(const std::string& loss, const std::vector<DenseRow>& rows, const std::vector<float>& weights,
                        bool bias = false) {
  double sum = 0;
  for (const float weight : weights) sum += 0.5 * double{weight} * double{weight};
  for (const DenseRow& row : rows) {
    double margin = 0;
    const size_t features = row.x.size() - (bias ? 1 : 0);
    for (size_t j = 0; j < features; ++j) margin += row.x[j] * double{weights[j + 1]};
    if (bias) margin += row.x.back() * double{weights.back()};
    if (row.cost > 0) sum += row.cost * reference_loss(loss, row.y * margin);
  }
  return sum;
}

inline Summary solve_columns(const Problem& problem, const AnyMethod& method, double tolerance,
                             std::vector<Solution>& solutions, Context context = {}, int max_passes = 5000) {
  return solve(problem, {.method = method, .tolerance = tolerance, .max_passes = max_passes, .chunks_per_block = 1},
               solutions, context);
}

}  // namespace linblock::test
