// From rows to feature columns (store/columns.h), in the memory named: entries are parted by feature, through files
// where they do not fit, and sorted part by part.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/option.h"
#include "base/team.h"
#include "store/chunk/codec.h"
#include "store/core/store.h"

namespace linblock {

struct TransposeOptions {
  uint64_t memory_bytes = uint64_t{1} << 30;
  uint64_t chunk_bytes = 0;         // 0: as the rows'
  uint32_t columns_per_chunk = 0;   // 0: no limit but the size
  Team team = 1;                    // the result is the same for any number
  std::optional<Codec> codec = {};  // none given: as the rows'

  static constexpr auto options() {
    return std::tuple{
        option("codec", &TransposeOptions::codec, "NAME", "none, lz4, zstd or zlib (default: the codec of the rows)")};
  }
};

struct TransposeContext {
  // Entries moved so far, of how many; from one thread at a time.
  std::function<void(uint64_t, uint64_t)> observer = [](uint64_t, uint64_t) {};
  const std::atomic<bool>* stop = nullptr;
};

struct TransposeReport {
  uint64_t columns = 0;
  uint64_t nonzeros = 0;
  uint64_t bytes = 0;          // of the columns on disk
  uint64_t spilled_bytes = 0;  // written to files on the way; 0: all fitted the memory
  double seconds = 0;
};

// Less memory_bytes than this are refused.
uint64_t least_transpose_memory(const Store& rows, const TransposeOptions& options);

// Makes the columns anew, whether there are some or not; those are replaced when the new ones are complete. The columns
// of a column store are the rows again, by their places: Row::id is a row's place, Row::index its features.
TransposeReport transpose(const Store& rows, const TransposeOptions& options, const TransposeContext& context = {});

}  // namespace linblock
