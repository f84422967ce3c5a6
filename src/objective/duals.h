// One dual variable a row, and for how many passes the row still rests: what a dual method moves, and what a
// certificate is made of. Pages beside the chunks: all in memory, or, where they do not fit, in a file that travels
// with the chunks (block minimization paper, section 6.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "store/core/store.h"

namespace linblock {

class Duals {
 public:
  static constexpr uint64_t kBytesPerRow = sizeof(double) + 1;

  Duals() = default;
  // All zero, in memory.
  explicit Duals(const Store& store);
  // All zero, in a file; what stands there is kept, so that set_version() can take it up again.
  Duals(const Store& store, const std::string& path);

  bool empty() const { return begin_.empty(); }
  bool in_file() const { return file_.is_open(); }

  // Pages are at hand between fetch() and the next fetch(); in memory they always are. put_back() writes the pages of
  // fetched chunks as a new version. A version never overwrites the one before it, only the one before that: a
  // checkpoint made between two versions finds all that it points to.
  void fetch(std::span<const uint32_t> chunks);
  void put_back(std::span<const uint32_t> chunks, uint32_t version);
  // Which version the next fetch of this chunk reads; 0: zeros.
  void set_version(uint32_t chunk, uint32_t version) { version_[chunk] = version; }
  uint32_t version(uint32_t chunk) const { return version_[chunk]; }
  void sync() const;
  // Versions are counted from here: pass 1 puts back `base` + 1. Not 0 where what comes before it has written pages.
  uint32_t base_version() const { return base_; }
  void set_base_version(uint32_t version) { base_ = version; }

  // Of a row among all.
  size_t row_number(uint32_t chunk, uint32_t row) const { return begin_[chunk] + row; }
  size_t rows() const { return begin_.empty() ? 0 : begin_.back(); }

  // As many as the chunk has rows.
  std::span<double> page(size_t chunk) { return {alpha_.data() + at_[chunk], begin_[chunk + 1] - begin_[chunk]}; }
  std::span<const double> page(size_t chunk) const {
    return {alpha_.data() + at_[chunk], begin_[chunk + 1] - begin_[chunk]};
  }
  std::span<uint8_t> passes_out(size_t chunk) {
    return {passes_out_.data() + at_[chunk], begin_[chunk + 1] - begin_[chunk]};
  }
  // Everything; in memory only.
  std::span<double> all() { return alpha_; }
  std::span<const double> all() const { return alpha_; }
  std::span<uint8_t> all_passes_out() { return passes_out_; }
  // In memory only: a copy of everything times a factor, with no row resting; and others added.
  Duals scaled(double factor) const;
  void add_scaled(const Duals& addend, double factor);
  std::span<const uint8_t> all_passes_out() const { return passes_out_; }

 private:
  uint64_t place_of(uint32_t chunk, uint32_t version) const;
  std::span<unsigned char> bytes_of(uint32_t chunk);

  std::vector<size_t> begin_;  // where a chunk's rows begin among all
  std::vector<size_t> at_;     // where its page stands in alpha_ and passes_out_
  std::vector<double> alpha_;
  std::vector<uint8_t> passes_out_;
  File file_;
  std::vector<uint32_t> version_;
  uint32_t base_ = 0;
  Buffer page_bytes_;
};

}  // namespace linblock
