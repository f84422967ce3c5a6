// The index code: the sorted feature numbers of a row as gaps, four to a control byte, each gap in one of four widths
// of whole nibbles (Stream VByte's layout, with nibbles for bytes: 10 to 15% smaller on text and on k-mers).
// A row is its control bytes, then its nibbles, low nibble first, filled up to a byte. docs/format.md has a picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace linblock {

// What encode_indices may write for this many feature numbers, its scratch beyond the end included.
size_t index_code_limit(size_t count);

// Strictly increasing feature numbers. Returns the bytes written, or 0 where a gap is too wide for the set
// (never for set 0; an empty row takes 0 bytes with any set).
size_t encode_indices(std::span<const uint32_t> index, unsigned width_set, unsigned char* out);

// Writes `count` numbers, and up to 3 more, to `out`; reads up to 16 bytes past the row. Returns the largest number,
// or UINT32_MAX where the bytes are not a row of `count` numbers: so one comparison with a limit refuses both.
uint32_t decode_indices(std::span<const unsigned char> row, size_t count, unsigned width_set, uint32_t* out);

// For the choice of a width set: nibbles[k] counts the gaps of k nibbles.
struct GapHistogram {
  uint64_t nibbles[9] = {};
  void add(std::span<const uint32_t> index);
  // One gap: what lies between two numbers, or before the first.
  void add_gap(uint32_t gap);
};
unsigned best_width_set(const GapHistogram& histogram);

namespace detail {
// The portable twin of the vector code, for tests to compare.
uint32_t decode_indices_portable(std::span<const unsigned char> row, size_t count, unsigned width_set, uint32_t* out);
}  // namespace detail

}  // namespace linblock
