#include "store/blocks/block_source.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace linblock {

BlockSource::BlockSource(const Store& store, RowsHeld held, uint64_t window_bytes, const Team& team,
                         std::vector<uint32_t> only, bool decode_blocks, uint64_t kept_bytes)
    : store_(store),
      held_(held),
      window_bytes_(window_bytes),
      team_(team),
      wanted_(only.empty() ? BlockOrder::all(store).chunks : std::move(only)),
      place_(store.chunks().size(), 0),
      decode_blocks_(decode_blocks && held == RowsHeld::encoded),
      kept_bytes_(kept_bytes) {
  for (uint32_t i = 0; i < wanted_.size(); ++i) place_[wanted_[i]] = i;
}

// Brings the chunks of the first pass into memory, in the order in which they will be worked on, while others are
// worked on already. Each chunk goes to its own place, so the order of arrival does not matter.
class BlockSource::Loader : public Background {
 public:
  Loader(BlockSource& source, const BlockOrder& order, size_t first_block) : source_(source) {
    source.resident_.resize(source.wanted_.size());
    source.is_loaded_.resize(source.wanted_.size());
    failures_.resize(source.wanted_.size());
    std::vector<uint8_t> listed = source.is_loaded_;
    const auto list = [&](uint32_t chunk) {
      const uint32_t place = source.place_[chunk];
      if (std::exchange(listed[place], uint8_t{1}) == 0) places_.push_back(place);
    };
    const size_t skipped = first_block == 0 ? 0 : order.ends[first_block - 1];
    for (size_t i = skipped; i < order.chunks.size(); ++i) list(order.chunks[i]);
    for (const uint32_t chunk : source.wanted_) list(chunk);
    source_.team_.add(*this);
  }

  ~Loader() override {
    {
      const std::lock_guard lock(source_.mutex_);
      next_ = places_.size();
    }
    source_.team_.remove(*this);
  }

  bool step() override {
    std::unique_lock lock(source_.mutex_);
    return load_one(lock);
  }

  void wait_for(std::span<const uint32_t> chunks) {
    const Stopwatch waiting;
    std::unique_lock lock(source_.mutex_);
    for (const uint32_t chunk : chunks) {
      const uint32_t place = source_.place_[chunk];
      const auto is_there = [&] { return source_.is_loaded_[place] != 0 || failures_[place] != nullptr; };
      while (source_.team_.size() > 1 && !is_there() && load_one(lock)) continue;
      arrived_.wait(lock, is_there);
      if (failures_[place] != nullptr) std::rethrow_exception(failures_[place]);
    }
    source_.costs_.wait_seconds += waiting.seconds();
  }

 private:
  bool load_one(std::unique_lock<std::mutex>& lock) {
    if (next_ == places_.size()) return false;
    const uint32_t place = places_[next_++];
    lock.unlock();
    const uint32_t number = source_.wanted_[place];
    ReadCosts cost{.bytes = source_.store_.chunks()[number].extent()};
    std::exception_ptr failure;
    try {
      const Stopwatch reading;
      Chunk& chunk = source_.resident_[place];
      source_.store_.read(number, chunk);
      cost.read_seconds = reading.seconds();
      if (source_.held_ == RowsHeld::decoded) chunk.decode();
      cost.decode_seconds = reading.seconds() - cost.read_seconds;
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    source_.costs_ += cost;
    failures_[place] = failure;
    if (failure == nullptr) {
      source_.is_loaded_[place] = 1;
      ++source_.chunks_loaded_;
    }
    arrived_.notify_all();
    return true;
  }

  BlockSource& source_;
  std::condition_variable arrived_;
  std::vector<uint32_t> places_;  // in the order of loading
  size_t next_ = 0;
  std::vector<std::exception_ptr> failures_;
};

void BlockSource::load() {
  if (held_ == RowsHeld::streamed || loaded()) return;
  Loader(*this, {}, 0).wait_for(wanted_);
}

ReadCosts BlockSource::costs() const {
  const std::lock_guard lock(mutex_);
  ReadCosts sum = costs_;
  if (stream_ != nullptr) sum += stream_->costs();
  return sum;
}

void BlockSource::work_on_resident(const BlockOrder& order, const std::function<bool(const Block&, size_t)>& work,
                                   size_t first) {
  std::optional<Loader> loader;
  if (!loaded()) loader.emplace(*this, order, first);
  Block block;
  const auto encode_again = [&] {
    for (size_t i = 0; i < block.numbers.size() && decode_blocks_; ++i)
      resident_[place_[block.numbers[i]]].encode_again(spaces_[i]);
  };
  for (size_t number = first; number < order.ends.size(); ++number) {
    const std::span<const uint32_t> chunks = order.block(number);
    if (loader) loader->wait_for(chunks);
    block.numbers.assign(chunks.begin(), chunks.end());
    block.chunks.clear();
    for (const uint32_t chunk : block.numbers) block.chunks.push_back(&resident_[place_[chunk]]);
    if (decode_blocks_) {
      if (spaces_.size() < block.numbers.size()) spaces_.resize(block.numbers.size());
      const Stopwatch decoding;
      team_.for_each(block.numbers.size(),
                     [&](size_t i) { resident_[place_[block.numbers[i]]].decode_in(spaces_[i]); });
      const std::lock_guard lock(mutex_);
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
  BlockStream stream(store_, std::move(rest),
                     {.memory_bytes = window_bytes == 0 ? window_bytes_ : window_bytes, .team = team_},
                     std::exchange(idle_, {}));
  stream_ = &stream;
  // However it ends: what was read has been read.
  struct Ending {
    BlockSource& source;
    ~Ending() {
      source.idle_ = source.stream_->release(source.kept_bytes_);
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
