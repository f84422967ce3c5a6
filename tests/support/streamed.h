// Rows that are several times the memory they are trained in, so that they are read again each pass; and rows so small
// that not even their duals fit.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "store/core/store.h"
#include "store/core/store_writer.h"

namespace linblock::test {

// The least that training asks for is about this; the rows below take more, encoded or decoded.
inline constexpr uint64_t kStreamedMemory = uint64_t{12} << 20;

// Dense rows with noisy labels, about 12 MB of them in chunks of 64 KB.
inline Store write_streamed_store(const std::string& path, uint64_t rows = 20000) {
  constexpr uint32_t kFeatures = 150;
  StoreWriter writer(path);
  writer.begin({.chunk_bytes = 64 << 10});
  std::vector<uint32_t> index(kFeatures);
  std::vector<float> value(kFeatures);
  for (uint32_t j = 0; j < kFeatures; ++j) index[j] = j + 1;
  Random random(11);
  for (uint64_t i = 0; i < rows; ++i) {
    double score = random.unit() - 0.5;
    for (uint32_t j = 0; j < kFeatures; ++j) {
      value[j] = static_cast<float>(random.unit() - 0.5);
      score += value[j] * (j % 7 == 0 ? 1 : -0.1);
    }
    writer.add({.label = score > 0 ? 1 : -1, .index = index, .value = value});
  }
  writer.commit();
  return Store::open(path);
}

// Rows of two features with noisy labels, in 300 small chunks: their duals take as much as they do.
inline Store write_tiny_rows(const std::string& path, uint64_t rows) {
  StoreWriter writer(path);
  writer.begin({.buckets = 300, .chunk_bytes = 4096});
  const std::vector<float> ones = {1, 1};
  Random random(5);
  for (uint64_t i = 0; i < rows; ++i) {
    const auto first = static_cast<uint32_t>(1 + random.below(1000));
    const std::vector<uint32_t> index = {first, first + 1 + static_cast<uint32_t>(random.below(1000))};
    const bool positive = (index[1] > 1000) != (random.below(5) == 0);
    writer.add({.label = positive ? 1 : -1, .index = index, .value = ones});
  }
  writer.commit();
  return Store::open(path);
}

}  // namespace linblock::test
