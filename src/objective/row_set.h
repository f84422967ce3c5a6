// A set of rows, a bit for each id: what a solver learns of rows, such as which are outliers.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace linblock {

class RowSet {
 public:
  RowSet() = default;
  // Of ids below `ids`; empty.
  explicit RowSet(uint64_t ids) : words_(words_of(ids), 0) {}
  static uint64_t bytes(uint64_t ids) { return words_of(ids) * sizeof(uint64_t); }

  bool has(uint64_t id) const { return (words_[id / 64] >> (id % 64) & 1) != 0; }
  void set(uint64_t id) { words_[id / 64] |= uint64_t{1} << (id % 64); }
  void clear(uint64_t id) { words_[id / 64] &= ~(uint64_t{1} << (id % 64)); }
  void put(uint64_t id, bool in) { in ? set(id) : clear(id); }
  uint64_t count() const {
    uint64_t sum = 0;
    for (const uint64_t word : words_) sum += static_cast<uint64_t>(std::popcount(word));
    return sum;
  }
  bool operator==(const RowSet&) const = default;

  // Read into a set of as many ids.
  static void visit_fields(auto& self, auto&& field) { field("words", std::span(self.words_)); }

 private:
  static uint64_t words_of(uint64_t ids) { return (ids + 63) / 64; }

  std::vector<uint64_t> words_;
};

}  // namespace linblock
