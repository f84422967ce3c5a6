// One dual variable a row, in pages beside the chunks: what a dual method moves, and what a certificate is made of.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "store/store.h"

namespace linblock {

class Duals {
 public:
  Duals() = default;
  explicit Duals(const Store& store) : begin_(store.chunks().size() + 1, 0) {
    for (size_t chunk = 0; chunk < store.chunks().size(); ++chunk)
      begin_[chunk + 1] = begin_[chunk] + store.chunks()[chunk].rows;
    alpha_.assign(begin_.back(), 0);
  }

  bool empty() const { return begin_.empty(); }
  // As many as the chunk has rows.
  std::span<double> page(size_t chunk) { return {alpha_.data() + begin_[chunk], begin_[chunk + 1] - begin_[chunk]}; }
  std::span<const double> page(size_t chunk) const {
    return {alpha_.data() + begin_[chunk], begin_[chunk + 1] - begin_[chunk]};
  }
  // Where a chunk's page begins among all.
  size_t offset(size_t chunk) const { return begin_[chunk]; }
  std::span<double> all() { return alpha_; }
  std::span<const double> all() const { return alpha_; }

 private:
  std::vector<size_t> begin_;
  std::vector<double> alpha_;
};

}  // namespace linblock
