// Rewrites a store as one segment without its removed rows: the same row ids, labels, weights and feature numbers.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "base/team.h"

namespace linblock {

struct CompactOptions {
  uint64_t memory_bytes = uint64_t{1} << 30;
  Team team = 1;  // the result is the same for any number
};

struct CompactContext {
  // Bytes read so far, of how many; from one thread at a time.
  std::function<void(uint64_t, uint64_t)> observer = [](uint64_t, uint64_t) {};
  const std::atomic<bool>* stop = nullptr;
};

struct CompactReport {
  bool changed = false;  // false: there was one segment, and no row was removed
  uint64_t segments_before = 0;
  uint64_t removed_rows = 0;  // that took up space
  uint64_t bytes_before = 0;
  uint64_t bytes = 0;
};

CompactReport compact(const std::string& store, const CompactOptions& options, const CompactContext& context = {});

}  // namespace linblock
