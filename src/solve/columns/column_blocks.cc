#include "solve/columns/column_blocks.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"

namespace linblock {

namespace {

constexpr uint64_t kSalt = 0xc01u;  // apart from the seed's other uses

template <typename T>
void shuffle(std::vector<T>& values, Random& random) {
  for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

// The chunk's first column is the one that the chunk before it ends with.
bool continues(const Block& block, size_t chunk) {
  if (chunk == 0 || block.numbers[chunk] != block.numbers[chunk - 1] + 1) return false;
  const Chunk& before = *block.chunks[chunk - 1];
  return before.rows() > 0 && block.chunks[chunk]->rows() > 0 &&
         before.id(before.rows() - 1) == block.chunks[chunk]->id(0);
}

}  // namespace

// A column that goes on has its first piece, and each but the last, in a chunk of its own.
ColumnUnits::ColumnUnits(const Store& columns) {
  const std::span<const ChunkInfo> chunks = columns.chunks();
  uint64_t pieces = 0;
  uint64_t joined = 0;
  for (uint32_t chunk = 0; chunk < chunks.size(); ++chunk) {
    pieces += chunks[chunk].rows;
    const bool goes_on =
        chunk > 0 && chunks[chunk - 1].rows == 1 && chunks[chunk - 1].first_row == chunks[chunk].first_row;
    if (goes_on)
      ++joined;
    else
      begin_.push_back(chunk);
  }
  begin_.push_back(static_cast<uint32_t>(chunks.size()));
  if (pieces - joined != columns.info().columns)
    fail(ErrorKind::damaged, {rebuild("columns", parent_directory(columns.path()))},
         "'{}' has {} columns in {} pieces, of which {} go on in another chunk: that does not add up", columns.path(),
         columns.info().columns, pieces, joined);
}

size_t ColumnUnits::largest() const {
  size_t most = 0;
  for (size_t unit = 0; unit + 1 < begin_.size(); ++unit)
    most = std::max<size_t>(most, begin_[unit + 1] - begin_[unit]);
  return most;
}

BlockOrder ColumnUnits::order_of_pass(ColumnOrder order, size_t chunks_per_block, uint64_t seed, int pass) const {
  std::vector<uint32_t> units(begin_.size() - 1);
  for (uint32_t unit = 0; unit < units.size(); ++unit) units[unit] = unit;
  if (order != ColumnOrder::cyclic) {
    Random random(mix64(seed, kSalt), order == ColumnOrder::once ? 0 : static_cast<uint64_t>(pass));
    shuffle(units, random);
  }
  BlockOrder blocks;
  size_t in_block = 0;
  for (const uint32_t unit : units) {
    const uint32_t chunks = begin_[unit + 1] - begin_[unit];
    if (in_block > 0 && in_block + chunks > chunks_per_block) {
      blocks.ends.push_back(static_cast<uint32_t>(blocks.chunks.size()));
      in_block = 0;
    }
    for (uint32_t chunk = begin_[unit]; chunk < begin_[unit + 1]; ++chunk) blocks.chunks.push_back(chunk);
    in_block += chunks;
  }
  if (in_block > 0) blocks.ends.push_back(static_cast<uint32_t>(blocks.chunks.size()));
  return blocks;
}

void ColumnVisits::collect(const Block& block, bool with_bias) {
  places_.clear();
  size_t most = with_bias ? 1 : 0;
  for (const Chunk* chunk : block.chunks) most += chunk->rows();
  places_.reserve(most);
  for (uint32_t chunk = 0; chunk < block.chunks.size(); ++chunk)
    for (uint32_t row = continues(block, chunk) ? 1 : 0; row < block.chunks[chunk]->rows(); ++row)
      places_.push_back({chunk, row});
  if (with_bias) places_.push_back({ColumnPlace::kBias, 0});
}

void ColumnVisits::arrange(ColumnOrder order, Random random) {
  if (order == ColumnOrder::cyclic) return;
  if (order != ColumnOrder::online) return shuffle(places_, random);
  // As many steps as there are columns, each along any of them.
  std::vector<ColumnPlace> drawn(places_.size());
  for (ColumnPlace& place : drawn) place = places_[random.below(places_.size())];
  places_ = std::move(drawn);
}

void ColumnVisits::prefetch(const Block& block, size_t at, const double* weights) const {
  // First where a column stands, a few visits later the column itself.
  constexpr size_t kFar = 12;
  constexpr size_t kNear = 6;
  if (at + kFar < places_.size()) {
    if (const ColumnPlace place = places_[at + kFar]; !place.is_bias()) {
      block.chunks[place.chunk]->prefetch_place(place.row);
      block.chunks[place.chunk]->prefetch_id(place.row);
    }
  }
  if (at + kNear < places_.size()) {
    if (const ColumnPlace place = places_[at + kNear]; !place.is_bias()) {
      block.chunks[place.chunk]->prefetch(place.row);
      __builtin_prefetch(weights + block.chunks[place.chunk]->id(place.row));
    }
  }
}

uint32_t ColumnView::pieces_of(const Block& block, ColumnPlace place) {
  uint32_t pieces = 1;
  size_t chunk = place.chunk;
  if (place.row + 1 != block.chunks[chunk]->rows()) return pieces;
  while (chunk + 1 < block.chunks.size() && continues(block, chunk + 1)) {
    ++pieces;
    ++chunk;
    if (block.chunks[chunk]->rows() > 1) break;
  }
  return pieces;
}

}  // namespace linblock
