// Blocks of rows in a given order, read, checked and decoded ahead on other threads, in bounded memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/team.h"
#include "store/chunk/row_block.h"
#include "store/core/store.h"

namespace linblock {

// Chunks in the order of reading; block b is chunks[ends[b - 1]] up to chunks[ends[b]].
struct BlockOrder {
  std::vector<uint32_t> chunks;
  std::vector<uint32_t> ends;

  // Every chunk of the store once, as it lies, `chunks_per_block` to a block.
  static BlockOrder all(const Store& store, size_t chunks_per_block = 1);

  std::span<const uint32_t> block(size_t number) const {
    const size_t begin = number == 0 ? 0 : ends[number - 1];
    return std::span<const uint32_t>(chunks).subspan(begin, ends[number] - begin);
  }
};

struct BlockStreamOptions {
  uint64_t memory_bytes = uint64_t{64} << 20;  // for the block in use and those read ahead
  Team team = 1;                               // reads ahead
  bool decode = true;                          // false: rows stay encoded until they are looked at
};

// What reading has cost. Reading and decoding are added up over the threads that do it.
struct ReadCosts {
  uint64_t bytes = 0;
  double read_seconds = 0;  // from disk, checked, decompressed
  double decode_seconds = 0;
  double wait_seconds = 0;  // of whoever works on the blocks: reading was slower than working

  static void visit_fields(auto& self, auto&& field) {
    field("bytes", self.bytes);
    field("read_seconds", self.read_seconds);
    field("decode_seconds", self.decode_seconds);
    field("wait_seconds", self.wait_seconds);
  }

  ReadCosts& operator+=(const ReadCosts& other) {
    bytes += other.bytes;
    read_seconds += other.read_seconds;
    decode_seconds += other.decode_seconds;
    wait_seconds += other.wait_seconds;
    return *this;
  }
  ReadCosts operator-(const ReadCosts& other) const {
    return {bytes - other.bytes, read_seconds - other.read_seconds, decode_seconds - other.decode_seconds,
            wait_seconds - other.wait_seconds};
  }
};

class BlockStream {
 public:
  // The store must outlive the stream. A block that cannot fit in memory is ErrorKind::memory, at once. `idle`: chunks
  // whose memory is used again, as release() gives them.
  BlockStream(const Store& store, BlockOrder order, const BlockStreamOptions& options, std::vector<Chunk> idle = {});
  ~BlockStream();
  BlockStream(const BlockStream&) = delete;
  BlockStream& operator=(const BlockStream&) = delete;

  // The next block, valid until the next call; null after the last. What failed on another thread is thrown here,
  // when its block's turn has come.
  const RowBlock* next();

  // Of the chunks read so far.
  ReadCosts costs() const;

  // Ends the reading. Chunks for the next stream to read into, with up to so many bytes of memory in all.
  std::vector<Chunk> release(uint64_t most_bytes);

 private:
  class Reader;
  std::unique_ptr<Reader> state_;
};

}  // namespace linblock
