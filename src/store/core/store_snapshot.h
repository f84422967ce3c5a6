// A snapshot: a second store with the rows that a store has now. It shares the files that never change by hard links;
// what is done to one of the two does not change the other.
#pragma once

#include <cstdint>
#include <string>

namespace linblock {

struct StoreSnapshotReport {
  uint64_t id = 0;  // of the store, and so of the snapshot
  uint64_t rows = 0;
  uint64_t files = 0;  // that both have now
  uint64_t bytes = 0;  // of these files
};

// `to` must not exist. Readers of the store go on; a writer at work is ErrorKind::io.
StoreSnapshotReport snapshot_store(const std::string& store, const std::string& to);

}  // namespace linblock
