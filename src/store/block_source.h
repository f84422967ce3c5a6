// Blocks in a given order, from memory where all rows fit, else from a stream that reads ahead: a solver cannot tell.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "store/block_stream.h"

namespace linblock {

enum class RowsHeld {
  decoded,   // all in memory
  encoded,   // all in memory, decoded row by row when looked at
  streamed,  // read again each pass
};

// Some chunks of the store, and which they are. A row's place in it is a number: chunk, then row.
struct Block {
  static constexpr unsigned kRowBits = 20;

  std::vector<const Chunk*> chunks;
  std::vector<uint32_t> numbers;  // of the chunks in the store

  static uint32_t place(uint32_t chunk, uint32_t row) { return chunk << kRowBits | row; }
  static uint32_t chunk_of(uint32_t place) { return place >> kRowBits; }
  static uint32_t row_of(uint32_t place) { return place & ((1U << kRowBits) - 1); }
  Row row(uint32_t place, RowBuffer& buffer) const { return chunks[chunk_of(place)]->row(row_of(place), buffer); }
};

static_assert(format::kMostChunkRows <= uint64_t{1} << Block::kRowBits);

class BlockSource {
 public:
  static constexpr size_t kMostChunksPerBlock = size_t{1} << (32 - Block::kRowBits);

  // `window_bytes` bounds what a stream holds. With more than one thread, others than this read ahead. `only`: the
  // chunks that will be asked for, where not all are.
  BlockSource(const Store& store, RowsHeld held, uint64_t window_bytes, size_t threads,
              std::vector<uint32_t> only = {});

  // Calls `work` for each block from number `first` on; it ends early when `work` returns false.
  void for_each(const BlockOrder& order, const std::function<bool(const Block&, size_t number)>& work,
                size_t first = 0);

  uint64_t bytes_read() const { return bytes_read_; }
  // Spent waiting for blocks, loading included.
  double wait_seconds() const { return wait_seconds_; }

 private:
  void load();

  const Store& store_;
  RowsHeld held_;
  uint64_t window_bytes_;
  size_t threads_;
  std::vector<uint32_t> wanted_;  // the chunks that are held in memory
  std::vector<uint32_t> place_;   // of a chunk in resident_
  std::vector<Chunk> resident_;   // as wanted_, or none
  uint64_t bytes_read_ = 0;
  double wait_seconds_ = 0;
};

}  // namespace linblock
