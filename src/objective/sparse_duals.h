// The dual variables of a problem with several classes: for each row the few (class, dual) pairs that are not zero, in
// memory. Pages beside the chunks, as Duals has them; packed, 3 bytes a row and 10 a pair, and a page is open only
// while its block is worked on.
//
// How many pairs there will be is known when they are there. A plan counts a bounded number for each row, and a solver
// goes by bytes(): where that memory is nearly full, a row that has its share gets a new class only in place of
// another; and if it were exceeded nevertheless, the run ends after that block, with the numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/fields.h"
#include "store/core/store.h"

namespace linblock {

// How strongly a row pushes this class away from itself, and its own class towards it.
struct ClassDual {
  uint32_t number = 0;  // of the class, not the row's own
  double dual = 0;      // above 0
};

class SparseDuals {
 public:
  static constexpr uint64_t kBytesPerRow = sizeof(uint16_t) + sizeof(uint8_t);
  static constexpr uint64_t kBytesPerPair = sizeof(uint16_t) + sizeof(double);
  // Of a block that is open, about: a place for each row, and a few pairs unpacked.
  static constexpr uint64_t kOpenBytesPerRow = 64;

  SparseDuals() = default;
  // All zero.
  explicit SparseDuals(const Store& store);

  bool empty() const { return begin_.empty(); }
  uint64_t pairs() const { return pairs_; }
  uint64_t bytes() const { return counts_.size() * kBytesPerRow + pairs_ * kBytesPerPair; }

  // The pairs of these chunks' rows can be looked at and replaced between fetch() and put_back().
  void fetch(std::span<const uint32_t> chunks);
  void put_back(std::span<const uint32_t> chunks);
  std::span<const ClassDual> row(uint32_t chunk, uint32_t row) const {
    const PairsPlace& place = places_[at_[chunk] + row];
    return {open_.data() + place.begin, place.count};
  }
  void set_row(uint32_t chunk, uint32_t row, std::span<const ClassDual> pairs);

  // As put back, row after row: so many pairs each, and the pairs.
  struct Page {
    std::span<const uint16_t> counts = {};
    std::span<const uint16_t> classes = {};
    std::span<const double> duals = {};
  };
  Page page(size_t chunk) const;
  // For how many passes a row still rests.
  std::span<uint8_t> passes_out(size_t chunk) {
    return {passes_out_.data() + begin_[chunk], begin_[chunk + 1] - begin_[chunk]};
  }
  void wake_all() { std::fill(passes_out_.begin(), passes_out_.end(), uint8_t{0}); }

  void save(FieldWriter& to) const;
  void restore(FieldReader& from);

 private:
  struct Packed {
    std::vector<uint16_t> classes;
    std::vector<double> duals;
  };
  struct PairsPlace {
    uint32_t begin = 0;  // in open_
    uint16_t count = 0;
    uint16_t room = 0;
  };

  size_t classes_ = 0;
  std::vector<size_t> begin_;  // where a chunk's rows begin among all
  std::vector<uint16_t> counts_;
  std::vector<uint8_t> passes_out_;
  std::vector<Packed> packed_;
  uint64_t pairs_ = 0;
  // Of the open pages.
  std::vector<uint32_t> at_;  // where a chunk's rows begin among the places
  std::vector<PairsPlace> places_;
  std::vector<ClassDual> open_;
};

}  // namespace linblock
