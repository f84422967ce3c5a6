// A row cache beside a plain list of what should be in it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "store/blocks/row_cache.h"
#include "support/arbitrary_rows.h"
#include "support/chunks.h"

namespace linblock::test {

constexpr uint64_t kPlenty = uint64_t{16} << 20;

class WorkingSet {
 public:
  // Rows are copied, unless `resident` says that they are only pointed to.
  WorkingSet(const Store& store, uint64_t bytes, bool resident = false, bool decoded = false)
      : chunks_(chunks_of(store, decoded)), cache_(store, bytes, resident ? &chunks_ : nullptr) {}

  RowCache& cache() { return cache_; }
  const std::vector<Chunk>& chunks() const { return chunks_; }

  bool add(uint32_t chunk, uint32_t row) {
    RowBuffer encoded;
    if (!cache_.add({chunk, row}, chunks_[chunk].encoded(row, encoded))) return false;
    expected_.push_back({chunk, row});
    return true;
  }
  // How many fit.
  size_t add_all() {
    const size_t before = expected_.size();
    for (uint32_t chunk = 0; chunk < chunks_.size(); ++chunk)
      for (uint32_t row = 0; row < chunks_[chunk].rows(); ++row) add(chunk, row);
    return expected_.size() - before;
  }
  void keep(const std::vector<uint8_t>& keep) {
    cache_.keep(keep);
    std::vector<RowCache::Origin> left;
    for (size_t i = 0; i < expected_.size(); ++i)
      if (keep[i] != 0) left.push_back(expected_[i]);
    expected_ = left;
  }
  void expect_the_rows_of(const WorkingSet& other) { expected_ = other.expected_; }

  // Empty, or the first thing that is not as it should be.
  std::string difference() const {
    if (cache_.size() != expected_.size())
      return std::to_string(cache_.size()) + " rows instead of " + std::to_string(expected_.size());
    if (cache_.used() > cache_.capacity()) return "more than its capacity";
    uint64_t sum = 0;
    RowBuffer one;
    RowBuffer other;
    for (size_t i = 0; i < expected_.size(); ++i) {
      const RowCache::Origin origin = cache_.origin(i);
      const std::string where = "row " + std::to_string(i) + ": ";
      if (origin.chunk != expected_[i].chunk || origin.row != expected_[i].row) return where + "of another origin";
      OwnedRow expected = own(chunks_[origin.chunk].row(origin.row, one));
      OwnedRow found = own(cache_.row(i, other));
      expected.id = found.id = 0;
      if (!same_rows({found}, {expected})) return where + "not as it was";
      if (cache_.nonzeros(i) != expected.index.size()) return where + "of other nonzeros";
      sum += cache_.bytes_of(i);
    }
    return sum == cache_.used() ? "" : "its rows take " + std::to_string(sum) + " of " + std::to_string(cache_.used());
  }

 private:
  std::vector<Chunk> chunks_;
  RowCache cache_;
  std::vector<RowCache::Origin> expected_;
};

}  // namespace linblock::test
