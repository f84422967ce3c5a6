#include "store/blocks/schedule.h"

#include <algorithm>

#include "base/random.h"
#include "store/blocks/block_source.h"

namespace linblock {

namespace {

constexpr uint64_t kSalt = 0x5c4ed;  // apart from the seed's other uses

void shuffle(std::vector<uint32_t>& numbers, Random& random) {
  for (size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[random.below(i)]);
}

}  // namespace

size_t most_fixed_blocks(const Store& store) {
  return store.info().buckets > 1 ? store.info().buckets : std::max<size_t>(1, store.chunks().size());
}

BlockOrder order_of_pass(const Store& store, const ScheduleOptions& options, uint64_t pass) {
  Random random(mix64(options.seed, kSalt), pass);
  if (options.schedule == Schedule::recomposed) {
    BlockOrder order = BlockOrder::all(store, options.chunks_per_block);
    shuffle(order.chunks, random);
    return order;
  }
  const size_t chunks = store.chunks().size();
  const size_t parts = most_fixed_blocks(store);
  const size_t wanted =
      options.blocks > 0 ? options.blocks : (chunks + options.chunks_per_block - 1) / options.chunks_per_block;
  const size_t blocks = std::clamp<size_t>(wanted, 1, parts);
  std::vector<uint32_t> sequence(blocks);
  for (uint32_t block = 0; block < blocks; ++block) sequence[block] = block;
  if (options.sequence == BlockSequence::permuted) shuffle(sequence, random);
  // Chunks are sorted by bucket, and so by block: each block is a run of them.
  std::vector<uint32_t> first(blocks + 1, 0);
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    const size_t part = store.info().buckets > 1 ? store.chunks()[chunk].bucket : chunk;
    ++first[part * blocks / parts + 1];
  }
  for (size_t block = 0; block < blocks; ++block) first[block + 1] += first[block];
  BlockOrder order;
  for (const uint32_t block : sequence) {
    for (uint32_t chunk = first[block]; chunk < first[block + 1]; ++chunk) {
      order.chunks.push_back(chunk);
      // The end, or all that a block can have.
      if (chunk + 1 == first[block + 1] || (chunk + 1 - first[block]) % BlockSource::kMostChunksPerBlock == 0)
        order.ends.push_back(static_cast<uint32_t>(order.chunks.size()));
    }
  }
  return order;
}

}  // namespace linblock
