// Stores of a few rows made by hand, and all of their chunks in memory.
#pragma once

#include <string>
#include <vector>

#include "store/core/store.h"
#include "store/core/store_writer.h"
#include "support/rows.h"

namespace linblock::test {

// In the order given. Width set 8 holds gaps below 2^16: a row with a wider one is a wide row.
inline Store write_rows(const std::string& path, const std::vector<OwnedRow>& rows, unsigned width_set = 8,
                        uint64_t chunk_bytes = 4096) {
  StoreWriter writer(path);
  writer.begin({.shuffle = false, .chunk_bytes = chunk_bytes}, {}, width_set);
  for (const OwnedRow& row : rows) writer.add(row.view());
  writer.commit();
  return Store::open(path);
}

inline std::vector<Chunk> chunks_of(const Store& store, bool decode = false) {
  std::vector<Chunk> chunks(store.chunks().size());
  for (size_t number = 0; number < chunks.size(); ++number) {
    store.read(number, chunks[number]);
    if (decode) chunks[number].decode();
  }
  return chunks;
}

}  // namespace linblock::test
