// The products of a row with all pivots of a node, in one pass over its nonzeros.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "store/chunk/row.h"

namespace linblock {

// Pivots stand feature by feature, sixteen side by side, so that one load serves sixteen products. With few features
// there is a place for each; with many, only for those that a pivot has, found by hashing. The bits are the same.
class PivotProducts {
 public:
  static constexpr size_t kLanes = 16;

  // `dense_bytes`: what places for all features may take.
  PivotProducts(uint64_t features, uint64_t most_pivots, uint64_t dense_bytes);

  // Each times its scale. The rows need not stay.
  void set(std::span<const Row> pivots, std::span<const double> scales);
  // products[k] = x . (scale_k pivot_k), x times `row_scale`, for k below the number of pivots rounded up to whole
  // lanes.
  void of(const Row& row, double row_scale, std::vector<float>& products) const;

  // What it takes for so many pivots, of so many nonzeros together, at most.
  static uint64_t memory_limit(uint64_t features, uint64_t dense_bytes, uint64_t pivots, uint64_t nonzeros);

 private:
  static constexpr uint32_t kFree = UINT32_MAX;

  size_t slot(uint32_t feature) const;
  template <bool kDense, bool kScaled>
  void multiply(const Row& row, double row_scale, size_t block, float* products) const;

  uint64_t features_;
  bool dense_;
  size_t width_;                // of a slot: whole blocks of kLanes pivots
  size_t blocks_ = 0;           // of those that are set
  std::vector<float> table_;    // slot x width
  std::vector<uint32_t> used_;  // dense: the features that are not all zero
  std::vector<uint32_t> keys_;  // hashed: the feature in each slot
};

}  // namespace linblock
