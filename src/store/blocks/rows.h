// The rows of a store, or its columns, as they are held now: in memory, or read again in each pass. Whoever drives
// several solvers owns them, so that what is in memory stays there from one solver to the next.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "store/blocks/block_source.h"

namespace linblock {

class Rows {
 public:
  struct As {
    const Store* store = nullptr;  // outlives what is held
    RowsHeld held = RowsHeld::streamed;
    uint64_t window_bytes = 0;
    uint64_t kept_bytes = 0;  // of it, what stays allocated between passes
    Team team = 1;
    std::vector<uint32_t> only = {};  // the chunks that will be asked for; none: all
    bool decode_blocks = false;

    bool operator==(const As&) const = default;
  };

  // From now on blocks come from there. What is in memory stays if it is what is asked for; otherwise its memory is
  // free before the next rows come in.
  void hold(const As& as);
  void release();
  // Blocks of any of its chunks can be asked for.
  bool holds(const Store& store) const { return source_ && as_.store == &store && as_.only.empty(); }

  // Otherwise rows that stay in memory are loaded when they are first worked on. What a checkpoint points to is not
  // worked on first.
  void load() {
    if (source_) source_->load();
  }
  // Every chunk of the store by its number, once loaded; null if they do not all stay in memory.
  const std::vector<Chunk>* resident() const { return source_ ? source_->resident() : nullptr; }
  void for_each(const BlockOrder& order, const std::function<bool(const Block&, size_t number)>& work, size_t first = 0,
                uint64_t window_bytes = 0) {
    source_->for_each(order, work, first, window_bytes);
  }
  // Of everything that was ever read here.
  ReadCosts costs() const;

 private:
  As as_;
  std::unique_ptr<BlockSource> source_;
  ReadCosts earlier_;  // of what is no longer held
};

}  // namespace linblock
