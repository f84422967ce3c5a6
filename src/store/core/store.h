// A packed store, open for reading. Any number of processes may read while one appends, removes rows or compacts:
// what is open stays as it was.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/team.h"
#include "store/chunk/chunk.h"
#include "store/chunk/feature_map.h"
#include "store/chunk/row_block.h"
#include "store/core/feature_names.h"
#include "store/core/manifest.h"

namespace linblock {

struct ChunkInfo {
  uint32_t segment = 0;  // position in StoreInfo::segments
  uint32_t bucket = 0;
  uint64_t number = 0;  // within the segment
  uint64_t offset = 0;
  uint32_t stored_bytes = 0;
  uint32_t raw_bytes = 0;
  uint32_t rows = 0;
  uint32_t nonzeros = 0;
  uint64_t first_row = 0;
  uint64_t checksum = 0;

  // On disk, with what fills its last page.
  uint64_t extent() const { return round_up<uint64_t>(stored_bytes, format::kPageBytes); }
  // In memory, at most.
  uint64_t memory_bytes(bool decoded) const {
    return Chunk::memory_limit(std::max<uint64_t>(raw_bytes, extent()), rows, nonzeros, decoded);
  }
};

class Store {
 public:
  // Reads and checks MANIFEST, FEATURES and every directory; chunks are checked when they are read.
  static Store open(const std::string& path);

  const std::string& path() const { return path_; }
  const StoreInfo& info() const { return info_; }
  // Read again when it is first asked for: training has no use for it, and every byte counts there. Not for several
  // threads at once.
  const FeatureMap& features() const;
  // Of the features that have one; they stay readable as long as this or a copy is there.
  const FeatureNames& feature_names() const { return feature_names_; }
  // By bucket, and in the order of the input within one.
  std::span<const ChunkInfo> chunks() const { return chunks_; }
  uint64_t bytes() const { return info_.bytes(); }
  // The ids of the chunk's rows that were removed, increasing.
  std::span<const uint64_t> removed_from(size_t chunk) const;
  // All of them, increasing.
  std::vector<uint64_t> removed_ids() const;
  // The chunk that holds this row if any does, removed or not; of a column in pieces, the last. Not for
  // an index, whose chunks are not in the order of their rows: nor is gather().
  std::optional<size_t> chunk_with(uint64_t row_id) const;

  // One verified chunk, its rows still encoded; removed ones have no weight. Safe from several threads.
  void read(size_t chunk, Chunk& into) const;
  // These rows, in the order of their ids; a row that is not in the store, or no longer, is ErrorKind::input.
  void gather(std::span<const uint64_t> row_ids, RowBlock& into) const;
  // "'store/segment-000001.rows', chunk 17 at offset 4096": for messages.
  std::string name_of(const ChunkInfo& chunk) const;

 private:
  void read_files();
  void read_directory(uint32_t segment);
  void read_removed();
  // The path leads to another state by now, or to none.
  bool was_replaced() const;
  [[noreturn]] void refuse_replaced() const;
  FeatureMap read_features() const;

  std::string path_;
  StoreInfo info_;
  mutable std::optional<FeatureMap> features_;
  FeatureNames feature_names_;
  std::vector<File> segments_;
  std::vector<ChunkInfo> chunks_;
  std::vector<uint64_t> removed_;        // chunk by chunk
  std::vector<uint64_t> removed_begin_;  // chunks + 1; empty where nothing is removed
};

// Where a chunk's rows begin among all rows, as they lie: what stands beside each row is found by it. One more than
// there are chunks.
std::vector<uint64_t> row_begins(const Store& store);

// Reads everything, on all threads: every checksum, every row, and the sums in the manifest.
struct VerifyReport {
  uint64_t chunks = 0;
  uint64_t rows = 0;
  uint64_t bytes = 0;
};
// `observer` is told the bytes checked so far, from one thread at a time.
VerifyReport verify(
    const Store& store, const Team& team, const std::function<void(uint64_t)>& observer = [](uint64_t) {});

}  // namespace linblock
