// Pages of an index that were looked at lately, in a bounded amount of memory: leaf pages with rows, and nodes of its
// trees. What is asked for and not here is read, and what was not asked for longest goes. Safe from several threads.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "store/blocks/block_stream.h"
#include "store/index/metric_forest.h"

namespace linblock {

class PageCache {
 public:
  PageCache(const MetricForest& forest, uint64_t bytes) : forest_(forest), capacity_(bytes) {}

  std::shared_ptr<const Chunk> page(uint32_t number);
  std::shared_ptr<const MetricForest::Node> node(uint32_t number);

  // Less, as others need memory: what is too much goes at once.
  void set_capacity(uint64_t bytes);
  uint64_t capacity() const;
  uint64_t used() const;
  // Of everything that was read, here and for others.
  ReadCosts costs() const;
  void add_costs(const ReadCosts& costs);

 private:
  struct CachedPart {
    uint64_t key = 0;
    uint64_t bytes = 0;
    std::shared_ptr<Chunk> page = {};
    std::shared_ptr<const MetricForest::Node> node = {};
  };
  // Null where it is not here.
  const CachedPart* find(uint64_t key);
  void keep(CachedPart entry, const ReadCosts& costs);
  void make_room();
  // To read a page into: one that went, since buffers that come and go would tear the heap to pieces.
  std::shared_ptr<Chunk> take_spare();

  const MetricForest& forest_;
  mutable std::mutex mutex_;
  uint64_t capacity_;
  uint64_t used_ = 0;
  std::list<CachedPart> entries_;  // the latest first
  std::unordered_map<uint64_t, std::list<CachedPart>::iterator> places_;
  ReadCosts costs_;
  std::shared_ptr<Chunk> spare_;
  uint64_t gone_ = 0;  // bytes of entries, since free memory was last given back
};

}  // namespace linblock
