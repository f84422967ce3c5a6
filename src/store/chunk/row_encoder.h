// From rows of text (original feature indices) to rows of a chunk (feature numbers in the index code).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "store/chunk/chunk.h"
#include "store/chunk/feature_map.h"
#include "store/chunk/row.h"

namespace linblock {

// Encoded rows side by side in memory that is used again and again.
class EncodedRows {
 public:
  void clear();
  size_t size() const { return heads_.size(); }
  EncodedRow operator[](size_t row) const;
  size_t memory_bytes() const;

 private:
  friend class RowEncoder;
  struct Head {
    int32_t label = 0;
    float weight = 1;
    uint32_t count = 0;
    uint32_t index_bytes_and_flags = 0;  // bytes x 4, + 2 for equal values, + 1 for wide
    uint32_t index_begin = 0;
    uint32_t value_begin = 0;
  };
  std::vector<Head> heads_;
  std::vector<unsigned char> indices_;
  size_t indices_used_ = 0;
  std::vector<float> values_;
  size_t values_used_ = 0;
  std::vector<uint32_t> numbers_;  // scratch
};

// Safe from several threads.
class RowEncoder {
 public:
  RowEncoder(const FeatureMap& features, unsigned width_set) : features_(features), width_set_(width_set) {}

  RowEncoder(FeatureMap&& features, unsigned width_set) = delete;  // it only refers to the map

  // `index` in increasing order.
  void add(int32_t label, float weight, std::span<const uint32_t> index, std::span<const float> value,
           EncodedRows& out) const;

 private:
  const FeatureMap& features_;
  unsigned width_set_;
};

}  // namespace linblock
