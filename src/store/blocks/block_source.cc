#include "store/blocks/block_source.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/clock.h"
#include "base/threads.h"

namespace linblock {

BlockSource::BlockSource(const Store& store, RowsHeld held, uint64_t window_bytes, size_t threads,
                         std::vector<uint32_t> only, bool decode_blocks)
    : store_(store),
      held_(held),
      window_bytes_(window_bytes),
      threads_(std::max<size_t>(1, threads)),
      wanted_(only.empty() ? BlockOrder::all(store).chunks : std::move(only)),
      place_(store.chunks().size(), 0),
      decode_blocks_(decode_blocks && held == RowsHeld::encoded) {
  for (uint32_t i = 0; i < wanted_.size(); ++i) place_[wanted_[i]] = i;
}

// Every chunk once, on all threads; each goes to its own place, so the order of arrival does not matter.
void BlockSource::load() {
  const Stopwatch loading;
  resident_.resize(wanted_.size());
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  run_on_threads(
      threads_,
      [&](size_t) {
        for (size_t number = next++; number < resident_.size(); number = next++) {
          ReadCosts cost{.bytes = store_.chunks()[wanted_[number]].extent()};
          const Stopwatch reading;
          store_.read(wanted_[number], resident_[number]);
          cost.read_seconds = reading.seconds();
          if (held_ == RowsHeld::decoded) resident_[number].decode();
          cost.decode_seconds = reading.seconds() - cost.read_seconds;
          const std::lock_guard lock(mutex);
          costs_ += cost;
        }
      },
      [&] { next = resident_.size(); });
  costs_.wait_seconds += loading.seconds();
}

ReadCosts BlockSource::costs() const {
  ReadCosts sum = costs_;
  if (stream_ != nullptr) sum += stream_->costs();
  return sum;
}

void BlockSource::work_on_resident(const BlockOrder& order, const std::function<bool(const Block&, size_t)>& work,
                                   size_t first) {
  if (resident_.empty()) load();
  Block block;
  const auto encode_again = [&] {
    for (size_t i = 0; i < block.numbers.size() && decode_blocks_; ++i)
      resident_[place_[block.numbers[i]]].encode_again(spaces_[i]);
  };
  for (size_t number = first; number < order.ends.size(); ++number) {
    const std::span<const uint32_t> chunks = order.block(number);
    block.numbers.assign(chunks.begin(), chunks.end());
    block.chunks.clear();
    for (const uint32_t chunk : block.numbers) block.chunks.push_back(&resident_[place_[chunk]]);
    if (decode_blocks_) {
      if (spaces_.size() < block.numbers.size()) spaces_.resize(block.numbers.size());
      const Stopwatch decoding;
      for_each_on_threads(threads_, block.numbers.size(),
                          [&](size_t i) { resident_[place_[block.numbers[i]]].decode_in(spaces_[i]); });
      costs_.decode_seconds += decoding.seconds();
      costs_.wait_seconds += decoding.seconds();
    }
    const bool more = work(block, number);
    encode_again();
    if (!more) return;
  }
}

void BlockSource::for_each(const BlockOrder& order, const std::function<bool(const Block&, size_t)>& work, size_t first,
                           uint64_t window_bytes) {
  if (first >= order.ends.size()) return;
  if (held_ != RowsHeld::streamed) return work_on_resident(order, work, first);
  BlockOrder rest;
  const uint32_t skipped = first == 0 ? 0 : order.ends[first - 1];
  rest.chunks.assign(order.chunks.begin() + skipped, order.chunks.end());
  for (size_t number = first; number < order.ends.size(); ++number) rest.ends.push_back(order.ends[number] - skipped);
  BlockStream stream(
      store_, std::move(rest),
      {.memory_bytes = window_bytes == 0 ? window_bytes_ : window_bytes, .threads = std::max<size_t>(1, threads_ - 1)});
  stream_ = &stream;
  // However it ends: what was read has been read.
  struct Ending {
    BlockSource& source;
    ~Ending() {
      source.costs_ += source.stream_->costs();
      source.stream_ = nullptr;
    }
  };
  const Ending ending{*this};
  Block block;
  for (size_t number = first; const RowBlock* rows = stream.next(); ++number) {
    const std::span<const uint32_t> chunks = order.block(number);
    block.numbers.assign(chunks.begin(), chunks.end());
    block.chunks.clear();
    for (const Chunk& chunk : rows->chunks()) block.chunks.push_back(&chunk);
    if (!work(block, number)) break;
  }
}

}  // namespace linblock
