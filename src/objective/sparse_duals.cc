#include "objective/sparse_duals.h"

#include <algorithm>

#include "base/error.h"

namespace linblock {

SparseDuals::SparseDuals(const Store& store)
    : classes_(store.info().labels.size()),
      begin_(row_begins(store)),
      packed_(store.chunks().size()),
      at_(store.chunks().size(), 0) {
  counts_.assign(begin_.back(), 0);
  passes_out_.assign(begin_.back(), 0);
}

void SparseDuals::fetch(std::span<const uint32_t> chunks) {
  places_.clear();
  open_.clear();
  for (const uint32_t chunk : chunks) {
    at_[chunk] = static_cast<uint32_t>(places_.size());
    const Page from = page(chunk);
    size_t pair = 0;
    for (const uint16_t count : from.counts) {
      places_.push_back({.begin = static_cast<uint32_t>(open_.size()), .count = count, .room = count});
      for (const size_t end = pair + count; pair < end; ++pair)
        open_.push_back({.number = from.classes[pair], .dual = from.duals[pair]});
    }
  }
}

void SparseDuals::set_row(uint32_t chunk, uint32_t row, std::span<const ClassDual> pairs) {
  PairsPlace& place = places_[at_[chunk] + row];
  const auto count = static_cast<uint16_t>(pairs.size());
  if (count > place.room) {  // what it leaves behind is gone when the pages are put back
    place.begin = static_cast<uint32_t>(open_.size());
    place.room = count;
    open_.resize(open_.size() + count);
  }
  place.count = count;
  std::copy(pairs.begin(), pairs.end(), open_.begin() + place.begin);
}

void SparseDuals::put_back(std::span<const uint32_t> chunks) {
  for (const uint32_t chunk : chunks) {
    const size_t rows = begin_[chunk + 1] - begin_[chunk];
    size_t total = 0;
    for (size_t i = 0; i < rows; ++i) total += places_[at_[chunk] + i].count;
    Packed& packed = packed_[chunk];
    pairs_ -= packed.classes.size();
    pairs_ += total;
    packed = {};  // and with it its memory, so that what is held is what is counted
    packed.classes.reserve(total);
    packed.duals.reserve(total);
    for (uint32_t i = 0; i < rows; ++i) {
      const std::span<const ClassDual> row_duals = row(chunk, i);
      counts_[begin_[chunk] + i] = static_cast<uint16_t>(row_duals.size());
      for (const ClassDual& dual : row_duals) {
        packed.classes.push_back(static_cast<uint16_t>(dual.number));
        packed.duals.push_back(dual.dual);
      }
    }
  }
  places_.clear();
  open_.clear();
}

SparseDuals::Page SparseDuals::page(size_t chunk) const {
  return {.counts = {counts_.data() + begin_[chunk], begin_[chunk + 1] - begin_[chunk]},
          .classes = packed_[chunk].classes,
          .duals = packed_[chunk].duals};
}

void SparseDuals::save(FieldWriter& to) const {
  to("counts", counts_);
  to("passes_out", passes_out_);
  to.begin<uint16_t>("classes", pairs_);
  for (const Packed& packed : packed_) to.add_piece(std::span<const uint16_t>(packed.classes));
  to.begin<double>("duals", pairs_);
  for (const Packed& packed : packed_) to.add_piece(std::span<const double>(packed.duals));
}

void SparseDuals::restore(FieldReader& from) {
  from("counts", std::span(counts_));
  from("passes_out", std::span(passes_out_));
  const uint64_t all = from.count<uint16_t>("classes");
  if (all != from.count<double>("duals")) from.refuse_value("duals");
  pairs_ = 0;
  for (size_t chunk = 0; chunk < packed_.size(); ++chunk) {
    size_t total = 0;
    for (size_t i = begin_[chunk]; i < begin_[chunk + 1]; ++i) total += counts_[i];
    if (total > all - pairs_) from.refuse_value("counts");
    packed_[chunk].classes.resize(total);
    packed_[chunk].duals.resize(total);
    from.take_part("classes", pairs_, std::span(packed_[chunk].classes));
    from.take_part("duals", pairs_, std::span(packed_[chunk].duals));
    for (const uint16_t number : packed_[chunk].classes)
      if (number >= classes_) from.refuse_value("classes");
    pairs_ += total;
  }
  if (pairs_ != all) from.refuse_value("counts");
}

}  // namespace linblock
