// Which chunks make a block, and in which order blocks are worked on.
#pragma once

#include <cstdint>

#include "store/blocks/block_stream.h"

namespace linblock {

enum class Schedule {
  recomposed,  // every pass draws a new random order of chunks and cuts new blocks from it
  fixed,       // whole buckets, the same blocks every pass: the block minimization paper; of one bucket, runs of chunks
};
enum class BlockSequence { permuted, sequential };

struct ScheduleOptions {
  Schedule schedule = Schedule::recomposed;
  size_t chunks_per_block = 1;
  size_t blocks = 0;  // fixed: how many; 0: as many as chunks_per_block asks for
  BlockSequence sequence = BlockSequence::permuted;
  uint64_t seed = 1;
};

size_t most_fixed_blocks(const Store& store);

// A function of its arguments alone: a run that is taken up again sees the same blocks.
BlockOrder order_of_pass(const Store& store, const ScheduleOptions& options, uint64_t pass);

}  // namespace linblock
