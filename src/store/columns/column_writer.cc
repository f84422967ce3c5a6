#include "store/columns/column_writer.h"

#include <algorithm>
#include <bit>

namespace linblock {

namespace {

constexpr uint64_t kMostEntriesShare = 2;  // a piece has at most chunk_bytes / 2 entries, however short they are

}  // namespace

void ColumnWriter::add(uint32_t feature, std::span<const uint32_t> places, std::span<const float> values) {
  if (places.empty()) return;
  if (columns_ == 0 || feature != feature_) {
    finish();
    feature_ = feature;
    ++columns_;
    places_.reserve(writer_.info().chunk_bytes / kMostEntriesShare);
    values_.reserve(writer_.info().chunk_bytes / kMostEntriesShare);
  }
  for (size_t i = 0; i < places.size(); ++i) put(places[i], values[i]);
}

void ColumnWriter::put(uint32_t place, float value) {
  const uint64_t limit = writer_.info().chunk_bytes;
  const uint32_t gap = places_.empty() ? place : place - places_.back() - 1;
  const auto nibbles = (static_cast<uint64_t>(std::bit_width(gap)) + 3) / 4 + 1;  // about half a nibble for its code
  const bool equal =
      equal_ && (values_.empty() || std::bit_cast<uint32_t>(value) == std::bit_cast<uint32_t>(values_[0]));
  const uint64_t bytes = (index_nibbles_ + nibbles) / 2 + (equal ? 4 : 4 * (places_.size() + 1));
  if (!places_.empty() && (bytes > limit || places_.size() >= limit / kMostEntriesShare)) {
    writer_.close_bucket(0);  // so that a directory shows what goes on: its chunk has but this piece
    end_piece();
    continues_ = true;
    put(place, value);
    return;
  }
  index_nibbles_ += nibbles;
  equal_ = equal;
  places_.push_back(place);
  values_.push_back(value);
}

void ColumnWriter::end_piece() {
  // A piece that continues a column begins its chunk.
  if (continues_ || (columns_per_chunk_ > 0 && writer_.open_rows(0) >= columns_per_chunk_)) writer_.close_bucket(0);
  encoded_.clear();
  writer_.encoder().add(0, 1, places_, values_, encoded_);
  writer_.route(feature_, encoded_[0]);
  places_.clear();
  values_.clear();
  index_nibbles_ = 0;
  equal_ = true;
  if (writer_.pending() >= team_.size()) seal();
}

void ColumnWriter::finish() {
  if (!places_.empty()) end_piece();
  continues_ = false;
}

// A few chunks at a time, so that few wait.
void ColumnWriter::seal() {
  team_.run_loops(
      team_.size(),
      [this] {
        while (writer_.seal_one()) continue;
      },
      [this] { writer_.abandon(); });
}

uint64_t ColumnWriter::memory_bytes(uint64_t chunk_bytes, size_t threads) {
  // The piece as it comes (8 bytes an entry) and encoded (up to 13); then for each thread a chunk as built, laid out
  // and compressed, and two more on their way.
  return (8 + 13) * chunk_bytes / kMostEntriesShare + (threads + 2) * 4 * chunk_bytes;
}

}  // namespace linblock
