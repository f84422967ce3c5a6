// Blocks in a given order, from memory where all rows fit, else from a stream that reads ahead: a solver cannot tell.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "store/blocks/block_stream.h"
#include "store/blocks/row_cache.h"

namespace linblock {

enum class RowsHeld {
  decoded,   // all in memory
  encoded,   // all in memory, decoded row by row when looked at
  streamed,  // read again each pass
};
constexpr RowsHeld last_of(RowsHeld) { return RowsHeld::streamed; }

// Some chunks of the store, and which they are. A row's place in it is a number: chunk, then row. Rows kept from other
// blocks stand behind the chunks.
struct Block {
  static constexpr unsigned kRowBits = 20;

  std::vector<const Chunk*> chunks;
  std::vector<uint32_t> numbers;  // of the chunks in the store

  const RowCache* cache = nullptr;

  static uint32_t place(uint32_t chunk, uint32_t row) { return chunk << kRowBits | row; }
  static uint32_t chunk_of(uint32_t place) { return place >> kRowBits; }
  static uint32_t row_of(uint32_t place) { return place & ((1U << kRowBits) - 1); }
  // As numbers beyond the chunks: at most 2^20 times as many as a block may still have chunks.
  uint32_t cached_place(size_t number) const {
    return (static_cast<uint32_t>(chunks.size()) << kRowBits) + static_cast<uint32_t>(number);
  }
  bool is_cached(uint32_t place) const { return chunk_of(place) >= chunks.size(); }
  size_t cached_number(uint32_t place) const { return place - cached_place(0); }
  Row row(uint32_t place, RowBuffer& buffer) const {
    return is_cached(place) ? cache->row(cached_number(place), buffer)
                            : chunks[chunk_of(place)]->row(row_of(place), buffer);
  }
  // Where it stands in the store.
  RowCache::Origin origin(uint32_t place) const {
    return is_cached(place) ? cache->origin(cached_number(place))
                            : RowCache::Origin{numbers[chunk_of(place)], row_of(place)};
  }
};

static_assert(format::kMostChunkRows <= uint64_t{1} << Block::kRowBits);

class BlockSource {
 public:
  static constexpr size_t kMostChunksPerBlock = (size_t{1} << (32 - Block::kRowBits)) / 2;

  // `window_bytes` bounds what a stream holds. The team reads ahead. `only`: the
  // chunks that will be asked for, where not all are. `decode_blocks`: a block's rows are looked at several times, so
  // rows held encoded are decoded for as long as they are worked on. `kept_bytes`: of a stream's window, what stays
  // allocated from one pass to the next.
  BlockSource(const Store& store, RowsHeld held, uint64_t window_bytes, const Team& team,
              std::vector<uint32_t> only = {}, bool decode_blocks = false, uint64_t kept_bytes = 0);

  // Calls `work` for each block from number `first` on; it ends early when `work` returns false. A stream holds
  // `window_bytes`, where they are given, instead of its usual window.
  void for_each(const BlockOrder& order, const std::function<bool(const Block&, size_t number)>& work, size_t first = 0,
                uint64_t window_bytes = 0);

  // All rows that stay in memory, now. Otherwise a chunk is loaded before it is first worked on.
  void load();
  // Every chunk of the store by its number, once loaded; null where they do not all stay in memory.
  const std::vector<Chunk>* resident() const {
    return held_ != RowsHeld::streamed && wanted_.size() == place_.size() ? &resident_ : nullptr;
  }
  // So far, loading included.
  ReadCosts costs() const;
  // Whether it can stand for another that would be made so: all rows of this store in memory, held as asked.
  bool serves(const Store& store, RowsHeld held, bool decode_blocks) const {
    return &store_ == &store && held == held_ && resident() != nullptr && loaded() &&
           decode_blocks_ == (decode_blocks && held == RowsHeld::encoded);
  }

 private:
  class Loader;

  void work_on_resident(const BlockOrder& order, const std::function<bool(const Block&, size_t)>& work, size_t first);
  bool loaded() const { return chunks_loaded_ == wanted_.size() && !wanted_.empty(); }

  const Store& store_;
  RowsHeld held_;
  uint64_t window_bytes_;
  Team team_;
  std::vector<uint32_t> wanted_;  // the chunks that are held in memory
  std::vector<uint32_t> place_;   // of a chunk in resident_
  std::vector<Chunk> resident_;   // as wanted_, or none
  mutable std::mutex mutex_;      // of what follows, while rows are loaded
  std::vector<uint8_t> is_loaded_;
  size_t chunks_loaded_ = 0;
  ReadCosts costs_;
  bool decode_blocks_;
  std::vector<Chunk::Space> spaces_;  // for the chunks of a block
  const uint64_t kept_bytes_;
  std::vector<Chunk> idle_;        // what a stream has left for the next
  BlockStream* stream_ = nullptr;  // while blocks come from it
};

}  // namespace linblock
