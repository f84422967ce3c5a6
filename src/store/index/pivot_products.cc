#include "store/index/pivot_products.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/bytes.h"

namespace linblock {

namespace {

uint64_t whole_blocks(uint64_t pivots) { return round_up<uint64_t>(pivots, PivotProducts::kLanes); }

size_t hashed_slots(uint64_t nonzeros) { return std::bit_ceil(std::max<size_t>(16, 2 * nonzeros)); }

}  // namespace

PivotProducts::PivotProducts(uint64_t features, uint64_t most_pivots, uint64_t dense_bytes)
    : features_(features),
      dense_(features * whole_blocks(most_pivots) * sizeof(float) <= dense_bytes),
      width_(whole_blocks(most_pivots)) {
  if (dense_) table_.assign(features * width_, 0.0F);
}

uint64_t PivotProducts::memory_limit(uint64_t features, uint64_t dense_bytes, uint64_t pivots, uint64_t nonzeros) {
  const uint64_t slot_bytes = whole_blocks(pivots) * sizeof(float);
  const bool dense = features * slot_bytes <= dense_bytes;
  return nonzeros * sizeof(uint32_t) +
         (dense ? features * slot_bytes : hashed_slots(nonzeros) * (slot_bytes + sizeof(uint32_t)));
}

size_t PivotProducts::slot(uint32_t feature) const {
  const size_t mask = keys_.size() - 1;
  size_t at = (uint64_t{feature} * 0x9e3779b97f4a7c15ULL >> 32) & mask;
  while (keys_[at] != feature && keys_[at] != kFree) at = (at + 1) & mask;
  return at;
}

void PivotProducts::set(std::span<const Row> pivots, std::span<const double> scales) {
  blocks_ = whole_blocks(pivots.size()) / kLanes;
  if (dense_) {
    for (const uint32_t feature : used_) std::fill_n(table_.data() + feature * width_, width_, 0.0F);
    used_.clear();
  } else {
    uint64_t nonzeros = 0;
    for (const Row& pivot : pivots) nonzeros += pivot.index.size();
    keys_.assign(hashed_slots(nonzeros), kFree);
    table_.assign(keys_.size() * width_, 0.0F);
  }
  for (size_t k = 0; k < pivots.size(); ++k)
    for (size_t i = 0; i < pivots[k].index.size(); ++i) {
      const uint32_t feature = pivots[k].index[i];
      size_t at = feature;
      if (dense_) {
        used_.push_back(feature);
      } else {
        at = slot(feature);
        keys_[at] = feature;
      }
      table_[at * width_ + k] = static_cast<float>(pivots[k].value[i] * scales[k]);
    }
}

template <bool kDense, bool kScaled>
void PivotProducts::multiply(const Row& row, double row_scale, size_t block, float* products) const {
  const float* const table = table_.data() + block * kLanes;
  std::array<float, kLanes> sums{};
  for (size_t i = 0; i < row.index.size(); ++i) {
    size_t at = row.index[i];
    if constexpr (!kDense) {
      at = slot(row.index[i]);
      if (keys_[at] == kFree) continue;
    }
    const float* const from = table + at * width_;
    const float value = kScaled ? static_cast<float>(row.value[i] * row_scale) : row.value[i];
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += value * from[lane];
  }
  std::copy(sums.begin(), sums.end(), products + block * kLanes);
}

void PivotProducts::of(const Row& row, double row_scale, std::vector<float>& products) const {
  products.resize(blocks_ * kLanes);
  for (size_t block = 0; block < blocks_; ++block) {
    if (row_scale != 1)
      dense_ ? multiply<true, true>(row, row_scale, block, products.data())
             : multiply<false, true>(row, row_scale, block, products.data());
    else
      dense_ ? multiply<true, false>(row, 1, block, products.data())
             : multiply<false, false>(row, 1, block, products.data());
  }
}

}  // namespace linblock
