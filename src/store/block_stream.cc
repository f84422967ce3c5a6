#include "store/block_stream.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

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

// Slots are chunks in order. A reader takes the next slot only when the memory of everything taken and not yet given
// back leaves room for it; since slots are taken in order, the one that next() waits for always has its room.
class BlockStream::State {
 public:
  State(const Store& store, BlockOrder order, const BlockStreamOptions& options)
      : store_(store), order_(std::move(order)), options_(options), slots_(order_.chunks.size()) {
    for (size_t block = 0, begin = 0; block < order_.ends.size(); begin = order_.ends[block++]) {
      uint64_t needed = 0;
      for (size_t slot = begin; slot < order_.ends[block]; ++slot) needed += cost(slot);
      if (needed > options_.memory_bytes)
        fail(ErrorKind::memory,
             "a block of {} chunks needs {} of memory, and {} are allowed: use smaller blocks or more "
             "memory",
             order_.ends[block] - begin, human_bytes(needed), human_bytes(options_.memory_bytes));
    }
    for (size_t i = 0; i < options_.threads; ++i) readers_.emplace_back([this] { read_ahead(); });
  }

  ~State() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    readers_.clear();
  }

  const RowBlock* next() {
    std::unique_lock lock(mutex_);
    give_back();
    changed_.notify_all();
    if (block_ == order_.ends.size()) return nullptr;
    const size_t end = order_.ends[block_++];
    const auto begin_waiting = std::chrono::steady_clock::now();
    for (; given_ < end; ++given_) {
      Slot& slot = slots_[given_];
      changed_.wait(lock, [&] { return slot.chunk || slot.failure; });
      if (slot.failure) std::rethrow_exception(slot.failure);
      in_use_ += cost(given_);
      current_.add(std::move(*slot.chunk));
      slot.chunk.reset();
    }
    waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_waiting).count();
    return &current_;
  }

  uint64_t bytes_read() const {
    const std::lock_guard lock(mutex_);
    return bytes_read_;
  }

  double wait_seconds() const {
    const std::lock_guard lock(mutex_);
    return waited_;
  }

 private:
  struct Slot {
    std::optional<Chunk> chunk;
    std::exception_ptr failure;
  };

  uint64_t cost(size_t slot) const {
    const ChunkInfo& chunk = store_.chunks()[order_.chunks[slot]];
    return Chunk::memory_limit(std::max<uint64_t>(chunk.raw_bytes, chunk.extent()), chunk.rows, chunk.nonzeros,
                               options_.decode);
  }

  void give_back() {
    for (Chunk& chunk : current_.release()) {
      if (idle_.size() > options_.threads) break;
      idle_bytes_ += chunk.memory_bytes();
      idle_.push_back(std::move(chunk));
    }
    held_ -= in_use_;
    in_use_ = 0;
  }

  // Memory to use again, if it is not more than this chunk may have; and none is kept beyond the limit.
  Chunk take_idle(uint64_t most) {
    Chunk taken;
    while (!idle_.empty()) {
      Chunk chunk = std::move(idle_.back());
      idle_.pop_back();
      idle_bytes_ -= chunk.memory_bytes();
      if (chunk.memory_bytes() <= most) {
        taken = std::move(chunk);
        break;
      }
    }
    while (!idle_.empty() && held_ + idle_bytes_ > options_.memory_bytes) {
      idle_bytes_ -= idle_.back().memory_bytes();
      idle_.pop_back();
    }
    return taken;
  }

  void read_ahead() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(
          lock, [&] { return stopped_ || taken_ == slots_.size() || held_ + cost(taken_) <= options_.memory_bytes; });
      if (stopped_ || taken_ == slots_.size()) return;
      const size_t slot = taken_++;
      held_ += cost(slot);
      Chunk chunk = take_idle(cost(slot));
      lock.unlock();
      std::exception_ptr failure;
      try {
        store_.read(order_.chunks[slot], chunk);
        if (options_.decode) chunk.decode();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      bytes_read_ += store_.chunks()[order_.chunks[slot]].extent();
      if (failure)
        slots_[slot].failure = failure;
      else
        slots_[slot].chunk = std::move(chunk);
      changed_.notify_all();
    }
  }

  const Store& store_;
  const BlockOrder order_;
  const BlockStreamOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::vector<Slot> slots_;
  std::vector<Chunk> idle_;
  uint64_t idle_bytes_ = 0;
  size_t taken_ = 0;     // slots that readers have begun
  size_t given_ = 0;     // slots handed out
  size_t block_ = 0;     // blocks handed out
  uint64_t held_ = 0;    // memory of slots taken and not given back
  uint64_t in_use_ = 0;  // of it, in the current block
  uint64_t bytes_read_ = 0;
  double waited_ = 0;
  RowBlock current_;
  std::vector<std::jthread> readers_;  // last: they stop before what they use goes away
};

BlockStream::BlockStream(const Store& store, BlockOrder order, const BlockStreamOptions& options)
    : state_(std::make_unique<State>(store, std::move(order), options)) {}

BlockStream::~BlockStream() = default;

const RowBlock* BlockStream::next() { return state_->next(); }

uint64_t BlockStream::bytes_read() const { return state_->bytes_read(); }

double BlockStream::wait_seconds() const { return state_->wait_seconds(); }

}  // namespace linblock
