#include "store/index/page_cache.h"

#include "base/clock.h"
#include "base/memory.h"

namespace linblock {

namespace {

constexpr uint64_t kEntryBytes = 160;  // of a page's places in the list and the table
constexpr uint64_t kHoles = 8;         // no more than one such part of the capacity

uint64_t key_of_page(uint32_t number) { return uint64_t{number} << 1; }
uint64_t key_of_node(uint32_t number) { return uint64_t{number} << 1 | 1; }

}  // namespace

const PageCache::CachedPart* PageCache::find(uint64_t key) {
  const auto place = places_.find(key);
  if (place == places_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, place->second);
  return &entries_.front();
}

std::shared_ptr<Chunk> PageCache::take_spare() {
  return spare_ ? std::exchange(spare_, nullptr) : std::make_shared<Chunk>();
}

std::shared_ptr<const Chunk> PageCache::page(uint32_t number) {
  std::shared_ptr<Chunk> chunk;
  {
    const std::lock_guard lock(mutex_);
    if (const CachedPart* entry = find(key_of_page(number))) return entry->page;
    chunk = take_spare();
  }
  // Read without the lock: two threads may read the same page, and both are right.
  const Stopwatch reading;
  forest_.pages().read(number, *chunk);
  const uint64_t bytes = chunk->memory_bytes() + kEntryBytes;
  ReadCosts costs{.bytes = forest_.pages().chunks()[number].extent()};
  costs.read_seconds = costs.wait_seconds = reading.seconds();
  const std::lock_guard lock(mutex_);
  keep({.key = key_of_page(number), .bytes = bytes, .page = chunk}, costs);
  return chunk;
}

std::shared_ptr<const MetricForest::Node> PageCache::node(uint32_t number) {
  {
    const std::lock_guard lock(mutex_);
    if (const CachedPart* entry = find(key_of_node(number))) return entry->node;
  }
  const Stopwatch reading;
  auto node = std::make_shared<MetricForest::Node>(forest_.read_node(number));
  ReadCosts costs{.bytes = forest_.node_bytes(number)};
  costs.read_seconds = costs.wait_seconds = reading.seconds();
  const std::lock_guard lock(mutex_);
  keep({.key = key_of_node(number), .bytes = node->memory_bytes() + kEntryBytes, .node = node}, costs);
  return node;
}

void PageCache::keep(CachedPart entry, const ReadCosts& costs) {
  costs_ += costs;
  if (find(entry.key) != nullptr || entry.bytes > capacity_) return;
  used_ += entry.bytes;
  entries_.push_front(std::move(entry));
  places_[entries_.front().key] = entries_.begin();
  make_room();
}

void PageCache::make_room() {
  while (used_ > capacity_ && !entries_.empty()) {
    used_ -= entries_.back().bytes;
    gone_ += entries_.back().bytes;
    if (entries_.back().page.use_count() == 1) spare_ = std::move(entries_.back().page);
    places_.erase(entries_.back().key);
    entries_.pop_back();
  }
  // Pages of all sizes come and go, and leave holes between those that stay.
  if (gone_ <= capacity_ / kHoles) return;
  return_free_memory();
  gone_ = 0;
}

void PageCache::set_capacity(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  capacity_ = bytes;
  make_room();
}

uint64_t PageCache::capacity() const {
  const std::lock_guard lock(mutex_);
  return capacity_;
}

uint64_t PageCache::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

ReadCosts PageCache::costs() const {
  const std::lock_guard lock(mutex_);
  return costs_;
}

void PageCache::add_costs(const ReadCosts& costs) {
  const std::lock_guard lock(mutex_);
  costs_ += costs;
}

}  // namespace linblock
