#include "store/blocks/block_stream.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace linblock {

BlockOrder BlockOrder::all(const Store& store, size_t chunks_per_block) {
  BlockOrder order;
  for (uint32_t chunk = 0; chunk < store.chunks().size(); ++chunk) {
    order.chunks.push_back(chunk);
    if (order.chunks.size() % chunks_per_block == 0) order.ends.push_back(chunk + 1);
  }
  if (order.ends.empty() || order.ends.back() != order.chunks.size())
    if (!order.chunks.empty()) order.ends.push_back(static_cast<uint32_t>(order.chunks.size()));
  return order;
}

// Slots are chunks in order. A thread takes the next slot only when the memory of everything taken and not yet given
// back leaves room for it; since slots are taken in order, the one that next() waits for always has its room.
class BlockStream::Reader : public Background {
 public:
  Reader(const Store& store, BlockOrder order, const BlockStreamOptions& options, std::vector<Chunk> idle)
      : store_(store), order_(std::move(order)), options_(options), chunk_bytes_(largest_chunk()) {
    keep(std::move(idle), options_.memory_bytes);
    for (size_t block = 0, begin = 0; block < order_.ends.size(); begin = order_.ends[block++]) {
      const uint64_t needed = (order_.ends[block] - begin) * chunk_bytes_;
      if (needed > options_.memory_bytes)
        fail(ErrorKind::memory,
             "a block of {} chunks needs {} of memory, and {} are allowed: use smaller blocks or more "
             "memory",
             order_.ends[block] - begin, human_bytes(needed), human_bytes(options_.memory_bytes));
    }
    options_.team.add(*this);
  }

  ~Reader() override { stop(); }
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    options_.team.remove(*this);
  }

  std::vector<Chunk> release(uint64_t most_bytes) {
    stop();
    idle_bytes_ = 0;
    std::vector<Chunk> all = std::exchange(idle_, {});
    for (Chunk& chunk : current_.release()) all.push_back(std::move(chunk));
    for (Slot& slot : slots_)
      if (slot.chunk) all.push_back(std::move(*slot.chunk));
    slots_.clear();
    keep(std::move(all), most_bytes);
    return std::move(idle_);
  }

  const RowBlock* next() {
    std::unique_lock lock(mutex_);
    give_back();
    options_.team.wake();
    if (block_ == order_.ends.size()) return nullptr;
    const size_t end = order_.ends[block_++];
    const Stopwatch waiting;
    wanted_ = end;
    const auto is_there = [&] { return ready_ >= wanted_ || failed_; };
    // Whoever waits reads too; alone, there is a thread for it.
    while (options_.team.size() > 1 && !is_there() && read_one(lock)) continue;
    filled_.wait(lock, is_there);
    wanted_ = SIZE_MAX;
    for (; given_ < end; ++given_) {
      // What failed may be behind this block, or behind a slot that is still being read.
      filled_.wait(lock, [&] { return !slots_.empty() && slots_.front().filled(); });
      if (slots_.front().failure) std::rethrow_exception(slots_.front().failure);
      in_use_ += chunk_bytes_;
      current_.add(std::move(*slots_.front().chunk));
      slots_.pop_front();
    }
    costs_.wait_seconds += waiting.seconds();
    return &current_;
  }

  bool step() override {
    std::unique_lock lock(mutex_);
    return read_one(lock);
  }

  ReadCosts costs() const {
    const std::lock_guard lock(mutex_);
    return costs_;
  }

 private:
  struct Slot {
    std::optional<Chunk> chunk;
    std::exception_ptr failure;
    bool filled() const { return chunk || failure; }
  };

  uint64_t largest_chunk() const {
    uint64_t largest = 0;
    for (const uint32_t number : order_.chunks)
      largest = std::max(largest, store_.chunks()[number].memory_bytes(options_.decode));
    return largest;
  }

  void give_back() {
    held_ -= in_use_;
    in_use_ = 0;
    keep(current_.release(), options_.memory_bytes - std::min(options_.memory_bytes, held_));
  }

  // Their memory is used again, up to so many bytes: new memory costs a page fault every 4 KB.
  void keep(std::vector<Chunk> chunks, uint64_t most_bytes) {
    for (Chunk& chunk : chunks) {
      if (idle_bytes_ + chunk.memory_bytes() > most_bytes) break;
      idle_bytes_ += chunk.memory_bytes();
      idle_.push_back(std::move(chunk));
    }
  }

  // Memory to use again; none is kept beyond the limit.
  Chunk take_idle() {
    Chunk taken;
    if (!idle_.empty()) {
      taken = std::move(idle_.back());
      idle_.pop_back();
      idle_bytes_ -= taken.memory_bytes();
    }
    while (!idle_.empty() && held_ + idle_bytes_ > options_.memory_bytes) {
      idle_bytes_ -= idle_.back().memory_bytes();
      idle_.pop_back();
    }
    return taken;
  }

  // The next chunk, where there is room for it. False: there is not.
  bool read_one(std::unique_lock<std::mutex>& lock) {
    const bool has_room = held_ + chunk_bytes_ <= options_.memory_bytes;
    if (stopped_ || taken_ == order_.chunks.size() || !has_room) return false;
    const size_t slot = taken_++;
    slots_.emplace_back();
    held_ += chunk_bytes_;
    Chunk chunk = take_idle();
    lock.unlock();
    std::exception_ptr failure;
    ReadCosts cost{.bytes = store_.chunks()[order_.chunks[slot]].extent()};
    try {
      const Stopwatch reading;
      store_.read(order_.chunks[slot], chunk);
      cost.read_seconds = reading.seconds();
      if (options_.decode) chunk.decode();
      cost.decode_seconds = reading.seconds() - cost.read_seconds;
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    costs_ += cost;
    if (failure)
      slots_[slot - given_].failure = failure;
    else
      slots_[slot - given_].chunk = std::move(chunk);
    failed_ = failed_ || failure;
    while (ready_ - given_ < slots_.size() && slots_[ready_ - given_].filled()) ++ready_;
    // Once a block and not once a chunk: a wake-up costs as much as reading a small chunk.
    if (ready_ >= wanted_ || failed_) filled_.notify_one();
    return true;
  }

  const Store& store_;
  const BlockOrder order_;
  const BlockStreamOptions options_;
  const uint64_t chunk_bytes_;  // of the largest, and so of any: whatever chunk was there before, its memory will do
  mutable std::mutex mutex_;
  std::condition_variable filled_;  // all that is wanted has been read
  bool stopped_ = false;
  std::deque<Slot> slots_;  // taken and not handed out; the front is number given_
  std::vector<Chunk> idle_;
  uint64_t idle_bytes_ = 0;
  size_t taken_ = 0;          // slots that were begun
  size_t given_ = 0;          // slots handed out
  size_t block_ = 0;          // blocks handed out
  size_t ready_ = 0;          // slots that are filled, up to the first that is not
  size_t wanted_ = SIZE_MAX;  // what next() waits for
  bool failed_ = false;
  uint64_t held_ = 0;    // memory of slots taken and not given back
  uint64_t in_use_ = 0;  // of it, in the current block
  ReadCosts costs_;
  RowBlock current_;
};

BlockStream::BlockStream(const Store& store, BlockOrder order, const BlockStreamOptions& options,
                         std::vector<Chunk> idle)
    : state_(std::make_unique<Reader>(store, std::move(order), options, std::move(idle))) {}

BlockStream::~BlockStream() = default;

const RowBlock* BlockStream::next() { return state_->next(); }

std::vector<Chunk> BlockStream::release(uint64_t most_bytes) { return state_->release(most_bytes); }

ReadCosts BlockStream::costs() const { return state_->costs(); }

}  // namespace linblock
