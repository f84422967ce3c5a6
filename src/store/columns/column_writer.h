// Columns on their way into a store: cut into pieces that fit a chunk, encoded, sealed on all threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/team.h"
#include "store/chunk/row_encoder.h"
#include "store/core/store_writer.h"

namespace linblock {

// Where columns are cut follows from their entries alone: so it is the same in any memory and on any number of threads.
class ColumnWriter {
 public:
  // `columns_per_chunk`: 0 is no limit.
  ColumnWriter(StoreWriter& writer, uint32_t columns_per_chunk, Team team)
      : writer_(writer), columns_per_chunk_(columns_per_chunk), team_(std::move(team)) {}

  // More entries of a column, in the order of the places; columns come by increasing feature.
  void add(uint32_t feature, std::span<const uint32_t> places, std::span<const float> values);
  // The last column is complete.
  void finish();
  uint64_t columns() const { return columns_; }

  // What it and the store writer hold for chunks of this size, at most.
  static uint64_t memory_bytes(uint64_t chunk_bytes, size_t threads);

 private:
  void put(uint32_t place, float value);
  void end_piece();
  void seal();

  StoreWriter& writer_;
  uint32_t columns_per_chunk_;
  Team team_;
  EncodedRows encoded_;
  uint64_t columns_ = 0;
  uint32_t feature_ = 0;
  bool continues_ = false;      // a piece of this column went before
  uint64_t index_nibbles_ = 0;  // of the piece, about
  bool equal_ = true;           // all values of the piece
  std::vector<uint32_t> places_;
  std::vector<float> values_;
};

}  // namespace linblock
