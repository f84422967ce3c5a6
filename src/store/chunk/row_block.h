// The rows a solver works on: some verified chunks, held encoded or decoded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "store/chunk/chunk.h"

namespace linblock {

class RowBlock {
 public:
  size_t size() const { return first_row_.back(); }
  Row row(size_t number, RowBuffer& buffer) const {
    const auto after = std::upper_bound(first_row_.begin(), first_row_.end(), number);
    const auto chunk = static_cast<size_t>(after - first_row_.begin()) - 1;
    return chunks_[chunk].row(number - first_row_[chunk], buffer);
  }

  const std::vector<Chunk>& chunks() const { return chunks_; }
  void add(Chunk chunk) {
    first_row_.push_back(size() + chunk.rows());
    chunks_.push_back(std::move(chunk));
  }
  // Gives the chunks back, so that their memory can be used again.
  std::vector<Chunk> release() {
    first_row_.assign(1, 0);
    return std::exchange(chunks_, {});
  }

 private:
  std::vector<Chunk> chunks_;
  std::vector<size_t> first_row_ = {0};
};

}  // namespace linblock
