// What a column store knows of the rows: their ids, labels and weights, once, in a file that its manifest names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/file.h"
#include "store/chunk/row.h"
#include "store/core/manifest.h"

namespace linblock {

// By place: a row's rank in the row store as it lies, chunk by chunk. Removed rows keep their places, with the weight
// -0 that their chunk gives them.
struct RowFacts {
  std::vector<uint64_t> ids;
  std::vector<int32_t> labels;
  std::vector<float> weights;  // empty: all 1
};

// Writes the file as the rows come, in the memory of one piece.
class RowFactsWriter {
 public:
  RowFactsWriter(const std::string& columns, uint64_t seal, uint64_t number, bool weighted);

  void add(const Row& row);
  // Syncs and closes; what the manifest must say.
  RowFactsInfo finish();

 private:
  void flush();

  File file_;
  RowFactsInfo info_;
  Checksum checksum_;
  std::vector<unsigned char> bytes_;
};

// Throws ErrorKind::damaged.
RowFacts read_row_facts(const std::string& columns, const StoreInfo& info);
// The same check without keeping anything.
void check_row_facts(const std::string& columns, const StoreInfo& info);

}  // namespace linblock
