// From svmlight text to a committed store, in one pass, on all threads, in the memory named.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace linblock {

struct PackOptions {
  uint64_t memory_bytes = uint64_t{1} << 30;
  size_t threads = 1;
  uint64_t seed = 1;
  bool shuffle = true;
  std::optional<uint64_t> chunk_bytes;  // default: 256 KB, less where the memory is small
  std::string codec = "auto";
  bool normalize = false;
  int index_base = -1;  // 0 or 1; -1: found from the data
  std::string weights;  // a file with one number a row; empty: none
  uint64_t max_bad_rows = 0;
  std::string rejects;  // where skipped lines go; empty: nowhere
  std::string source;   // what SOURCE says, of a store that is made for one training; empty: there is no SOURCE
};

inline constexpr uint64_t kLeastPackMemory = uint64_t{16} << 20;

struct PackProgress {
  uint64_t bytes_read = 0;
  uint64_t total_bytes = 0;  // 0: not known
  uint64_t rows = 0;
};

// How the caller follows the work and ends it early.
struct PackContext {
  std::function<void(const PackProgress&)> observer = [](const PackProgress&) {};
  const std::atomic<bool>* stop = nullptr;
};

struct PackReport {
  uint64_t rows = 0;  // of this run
  uint64_t nonzeros = 0;
  uint64_t bad_rows = 0;
  uint64_t text_bytes = 0;  // as read from disk
};

PackReport pack(const std::vector<std::string>& inputs, const std::string& store, const PackOptions& options,
                const PackContext& context = {});
// A new segment. The store's own options hold; of `options` only memory, threads, weights and bad rows count.
PackReport append(const std::vector<std::string>& inputs, const std::string& store, const PackOptions& options,
                  const PackContext& context = {});

}  // namespace linblock
