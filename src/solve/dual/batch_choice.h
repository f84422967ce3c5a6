// Whether rows can be stepped along in batches, from a sample of them.
//
// The largest eigenvalue of the Gram matrix of rows of unit length says how many rows may step at the same weights:
// with L that of n rows, less the diagonal, divided by n, batches of 3 / L rows cost no passes on any data set that was
// tried. Where a few frequent features stand in most rows, it is large because of them; the head takes them out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "store/chunk/row.h"

namespace linblock {

struct BatchChoice {
  uint64_t rows = 1;  // of a batch to begin with; 1: no batches
  uint64_t head = 0;  // so many of the most frequent features are kept exact
};

class BatchSample {
 public:
  static constexpr size_t kMostRows = 256;

  // False: it has enough rows.
  bool add(const Row& row);
  BatchChoice choose() const;

 private:
  struct Entry {
    uint32_t feature = 0;
    float value = 0;  // of a row of unit length
  };

  std::vector<uint32_t> renumbered() const;  // the features of all entries, by their first occurrence
  double interference(uint64_t head, const std::vector<uint32_t>& numbers) const;  // L

  std::vector<Entry> entries_;
  std::vector<size_t> ends_;  // of the rows
};

}  // namespace linblock
