// What the chunks of a store take in memory: what plans are made of.
#pragma once

#include <algorithm>
#include <cstdint>

#include "store/core/store.h"

namespace linblock {

struct ChunkSums {
  static constexpr size_t kLeastHeld = 4;

  uint64_t encoded = 0;
  uint64_t decoded = 0;
  uint64_t largest = 0;        // decoded
  uint64_t largest_space = 0;  // more than encoded, while a chunk is decoded
  uint64_t most_rows = 0;      // of one; of a column store, columns or pieces of them
  uint64_t rows = 0;           // likewise

  explicit ChunkSums(const Store& store) {
    for (const ChunkInfo& chunk : store.chunks()) {
      const uint64_t whole = chunk.memory_bytes(true);
      const uint64_t packed = chunk.memory_bytes(false);
      encoded += packed;
      decoded += whole;
      largest = std::max(largest, whole);
      largest_space = std::max(largest_space, whole - packed);
      most_rows = std::max<uint64_t>(most_rows, chunk.rows);
      rows += chunk.rows;
    }
  }
  uint64_t least() const { return kLeastHeld * largest; }
};

// What an open store holds beside its rows.
inline uint64_t directory_bytes(const Store& store) {
  return store.chunks().size() * (sizeof(ChunkInfo) + 4 * sizeof(uint64_t)) +
         store.info().removed.rows * sizeof(uint64_t);
}

}  // namespace linblock
