// Which columns make a block, in which order they are visited, and how one is looked at.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "solve/columns/column_rows.h"
#include "solve/core/solver.h"
#include "store/blocks/block_source.h"

namespace linblock {

// Chunks in which one long column goes on belong together: a unit of the schedule.
class ColumnUnits {
 public:
  explicit ColumnUnits(const Store& columns);

  // In chunks.
  size_t largest() const;
  // Units in the order of the pass, cut into blocks of at most so many chunks, or of one unit that has more. A function
  // of its arguments alone.
  BlockOrder order_of_pass(ColumnOrder order, size_t chunks_per_block, uint64_t seed, int pass) const;

 private:
  std::vector<uint32_t> begin_;  // units + 1
};

// Where a column begins in a block; the bias stands in no chunk.
struct ColumnPlace {
  static constexpr uint32_t kBias = UINT32_MAX;
  uint32_t chunk = 0;
  uint32_t row = 0;
  bool is_bias() const { return chunk == kBias; }
};

// The columns of a block in the order in which they are visited: the same for all tasks.
class ColumnVisits {
 public:
  static constexpr uint64_t kBytesPerColumn = 2 * sizeof(ColumnPlace);  // drawn anew beside what they are drawn from

  void collect(const Block& block, bool with_bias);
  // What the order asks for, drawn from these numbers.
  void arrange(ColumnOrder order, Random random);

  size_t size() const { return places_.size(); }
  ColumnPlace operator[](size_t number) const { return places_[number]; }
  // Columns are visited in random order: they, and the weights of their features, are on their way from memory before
  // their turn comes.
  void prefetch(const Block& block, size_t at, const double* weights) const;

 private:
  std::vector<ColumnPlace> places_;
};

// One column of a block. A column in one piece is decoded once, one in several each time it is gone over.
class ColumnView {
 public:
  // `bias` and `rows`: what the bias column is made of.
  ColumnView(const Block& block, ColumnPlace place, double bias, size_t rows, RowBuffer& buffer)
      : block_(block), place_(place), bias_{bias, rows}, buffer_(buffer) {
    if (place.is_bias()) return;
    pieces_ = pieces_of(block, place);
    if (pieces_ == 1) only_ = block.chunks[place.chunk]->row(place.row, buffer);
  }

  bool is_bias() const { return place_.is_bias(); }
  // The original index.
  uint32_t feature() const { return static_cast<uint32_t>(block_.chunks[place_.chunk]->id(place_.row)); }

  // Calls work(piece) for each, in the order of the rows.
  template <class Work>
  void for_each_piece(const Work& work) const {
    if (is_bias()) return work(bias_);
    const bool equal = block_.chunks[place_.chunk]->equal_values();
    if (pieces_ == 1) return work_on(only_, equal, work);
    for (uint32_t i = 0; i < pieces_; ++i) {
      const Chunk& chunk = *block_.chunks[place_.chunk + i];
      work_on(chunk.row(i == 0 ? place_.row : 0, buffer_), chunk.equal_values(), work);
    }
  }

 private:
  static uint32_t pieces_of(const Block& block, ColumnPlace place);
  template <class Work>
  static void work_on(const Row& row, bool equal, const Work& work) {
    if (equal && !row.value.empty())
      work(EqualPiece{row.index.data(), double{row.value[0]}, row.index.size()});
    else
      work(MixedPiece{row.index.data(), row.value.data(), row.index.size()});
  }

  const Block& block_;
  ColumnPlace place_;
  BiasPiece bias_;
  RowBuffer& buffer_;
  uint32_t pieces_ = 1;
  Row only_;
};

}  // namespace linblock
