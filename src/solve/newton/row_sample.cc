#include "solve/newton/row_sample.h"

#include <algorithm>

namespace linblock {

namespace {

constexpr float kEveryRow = 1 / RowSample::kLeastWeight;  // a bound with which every row is taken
constexpr float kUsual = 1;                               // with which each is taken as its weight says
constexpr float kThinnest = 0x1p-40F;

}  // namespace

RowSample::RowSample(const Store& store, uint64_t bytes, uint64_t enough, const std::vector<Chunk>* resident)
    : cache_(store, bytes, resident), bytes_(bytes), enough_(enough) {
  clear();
}

void RowSample::clear() {
  cache_.keep(std::vector<uint8_t>(cache_.size(), 0));
  known_.clear();
  nonzeros_ = 0;
  bound_ = kEveryRow;
  complete_ = true;
}

bool RowSample::has_room_for(uint64_t bytes) const {
  return cache_.used() + bytes + (known_.size() + 1) * kBytesPerRow <= bytes_;
}

void RowSample::add(const Chunk& chunk, uint32_t chunk_number, uint32_t row, const Known& known, RowBuffer& buffer) {
  const EncodedRow encoded = chunk.encoded(row, buffer);
  while (takes(known.rarity)) {
    const bool enough = nonzeros_ + encoded.count > enough_ && bound_ > kUsual;
    if (!enough && has_room_for(cache_.bytes_of(encoded)) && cache_.add({chunk_number, row}, encoded)) {
      known_.push_back(known);
      nonzeros_ += encoded.count;
      return;
    }
    if (bound_ < kThinnest) break;
    thin_out();
  }
  complete_ = false;
}

// Half as many, about. What stays follows from the bound alone, not from the order in which rows came.
void RowSample::thin_out() {
  bound_ /= 2;
  std::vector<uint8_t> keep(known_.size());
  size_t kept = 0;
  for (size_t i = 0; i < known_.size(); ++i) {
    keep[i] = takes(known_[i].rarity) ? 1 : 0;
    if (keep[i] == 0) {
      nonzeros_ -= cache_.nonzeros(i);
      complete_ = false;
      continue;
    }
    known_[kept++] = known_[i];
  }
  cache_.keep(keep);
  known_.resize(kept);
}

void RowSample::save(FieldWriter& to) const {
  to("cache", cache_);
  to("count", uint64_t{known_.size()});
  to("known", known_);
  to("nonzeros", nonzeros_);
  to("bound", bound_);
  to("complete", complete_);
}

void RowSample::restore(FieldReader& from) {
  from("cache", cache_);
  if (from.take<uint64_t>("count") != cache_.size()) from.refuse_value("count");
  known_.resize(cache_.size());
  from("known", std::span(known_));
  from("nonzeros", nonzeros_);
  from("bound", bound_);
  from("complete", complete_);
  uint64_t nonzeros = 0;
  for (size_t i = 0; i < cache_.size(); ++i) nonzeros += cache_.nonzeros(i);
  if (nonzeros != nonzeros_) from.refuse_value("nonzeros");
  if (!(bound_ > 0) || bound_ > kEveryRow) from.refuse_value("bound");
}

}  // namespace linblock
