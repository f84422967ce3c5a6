#include "store/blocks/row_cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "store/chunk/index_code.h"

namespace linblock {

// Memory that is not used is never touched.
RowCache::RowCache(const Store& store, uint64_t bytes, const std::vector<Chunk>* resident)
    : store_(&store),
      resident_(resident),
      memory_(resident != nullptr ? 0 : bytes),
      capacity_(bytes),
      features_(store.info().feature_numbers()),
      narrow_(features_ <= uint64_t{UINT16_MAX} + 1),
      width_set_(store.info().width_set) {
  entries_.reserve(bytes / kEntryBytes);
}

uint64_t RowCache::bytes_of(const EncodedRow& row) const {
  if (resident_ != nullptr) return kEntryBytes;
  const uint64_t index_bytes = narrow_ ? row.count * sizeof(uint16_t) : row.indices.size();
  return round_up<uint64_t>(index_bytes + row.values.size_bytes(), 4) + kEntryBytes;
}

void RowCache::decode(std::span<const unsigned char> indices, size_t count, bool wide, uint32_t* out) const {
  const uint32_t largest = decode_indices(indices, count, wide ? 0 : width_set_, out);
  if (largest >= features_ && count > 0) fail(ErrorKind::damaged, "a row's feature numbers are not valid");
}

Row RowCache::row(size_t number, RowBuffer& buffer) const {
  const CachedRow& entry = entries_[number];
  if (resident_ != nullptr) return (*resident_)[entry.origin.chunk].row(entry.origin.row, buffer);
  const unsigned char* const values = memory_.data() + entry.offset;
  if (buffer.index.size() < entry.count + 4) buffer.index.resize(entry.count + 4);
  const unsigned char* const indices = values + entry.value_bytes;
  if (narrow_)
    for (size_t i = 0; i < entry.count; ++i) buffer.index[i] = load_le<uint16_t>(indices + sizeof(uint16_t) * i);
  else
    decode({indices, entry.index_bytes}, entry.count, entry.wide != 0, buffer.index.data());
  Row view{.label = entry.label, .weight = entry.weight, .index = {buffer.index.data(), entry.count}};
  if (entry.value_bytes == 4 * uint64_t{entry.count}) {
    view.value = {reinterpret_cast<const float*>(values), entry.count};
    return view;
  }
  if (buffer.value.size() < entry.count) buffer.value.resize(entry.count);
  std::fill_n(buffer.value.data(), entry.count, entry.value_bytes == 0 ? 1.0F : load_le<float>(values));
  view.value = {buffer.value.data(), entry.count};
  return view;
}

bool RowCache::add(Origin origin, const EncodedRow& row) {
  if (used() + bytes_of(row) > capacity_) return false;
  if (resident_ != nullptr) {
    entries_.push_back({.origin = origin, .count = row.count});
    return true;
  }
  const CachedRow entry{
      .origin = origin,
      .offset = used_,
      .count = row.count,
      .index_bytes = static_cast<uint32_t>(narrow_ ? row.count * sizeof(uint16_t) : row.indices.size()),
      .value_bytes = static_cast<uint32_t>(row.values.size_bytes()),
      .label = row.label,
      .weight = row.weight,
      .wide = row.wide ? 1U : 0U};
  unsigned char* const to = memory_.data() + used_;
  if (!row.values.empty()) std::memcpy(to, row.values.data(), entry.value_bytes);
  if (narrow_) {
    if (decoded_.size() < row.count + 4) decoded_.resize(row.count + 4);
    decode(row.indices, row.count, row.wide, decoded_.data());
    for (size_t i = 0; i < row.count; ++i)
      linblock::store_le(to + entry.value_bytes + sizeof(uint16_t) * i, static_cast<uint16_t>(decoded_[i]));
  } else if (!row.indices.empty()) {
    std::memcpy(to + entry.value_bytes, row.indices.data(), entry.index_bytes);
  }
  used_ += entry.bytes();
  entries_.push_back(entry);
  return true;
}

void RowCache::keep(const std::vector<uint8_t>& keep) {
  size_t kept = 0;
  used_ = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (keep[i] == 0) continue;
    CachedRow entry = entries_[i];
    if (entry.bytes() > 0) std::memmove(memory_.data() + used_, memory_.data() + entry.offset, entry.bytes());
    entry.offset = used_;
    used_ += entry.bytes();
    entries_[kept++] = entry;
  }
  entries_.resize(kept);
}

void RowCache::shrink() {
  if (resident_ == nullptr) {
    Buffer smaller(used_);
    if (used_ > 0) std::memcpy(smaller.data(), memory_.data(), used_);
    memory_ = std::move(smaller);
  }
  entries_.shrink_to_fit();
  capacity_ = used();
}

void RowCache::save(FieldWriter& to) const {
  to("count", uint64_t{entries_.size()});
  to("used", used_);
  to("rows", entries_);
  to("bytes", memory_.span().first(used_));
}

void RowCache::restore(FieldReader& from) {
  constexpr std::string_view kWhat = "the kept rows of a checkpoint";
  used_ = checked_size(from.take<uint64_t>("used"), memory_.size(), kWhat);
  entries_.resize(checked_size(from.take<uint64_t>("count"), capacity_ / kEntryBytes, kWhat));
  from("rows", std::span(entries_));
  from("bytes", memory_.span().first(used_));
  for (const CachedRow& entry : entries_)
    if (!is_possible(entry)) from.refuse_value("rows");
}

bool RowCache::has_possible_origins() const {
  return std::all_of(entries_.begin(), entries_.end(),
                     [&](const CachedRow& entry) { return is_in_store(entry.origin); });
}

bool RowCache::is_in_store(const Origin& origin) const {
  return origin.chunk < store_->chunks().size() && origin.row < store_->chunks()[origin.chunk].rows;
}

// What was saved, or something that a reader would follow out of its memory.
bool RowCache::is_possible(const CachedRow& entry) {
  if (resident_ != nullptr) return is_in_store(entry.origin);
  const uint64_t all_values = sizeof(float) * uint64_t{entry.count};
  if (entry.value_bytes != 0 && entry.value_bytes != sizeof(float) && entry.value_bytes != all_values) return false;
  if (entry.count > features_ || entry.offset > used_ || entry.bytes() > used_ - entry.offset || entry.offset % 4 != 0)
    return false;
  if (!std::isfinite(entry.weight) || entry.weight < 0) return false;
  const unsigned char* const indices = memory_.data() + entry.offset + entry.value_bytes;
  if (narrow_) {
    if (entry.index_bytes != sizeof(uint16_t) * uint64_t{entry.count}) return false;
    for (size_t i = 0; i < entry.count; ++i)
      if (load_le<uint16_t>(indices + sizeof(uint16_t) * i) >= features_) return false;
    return true;
  }
  if (decoded_.size() < entry.count + 4) decoded_.resize(entry.count + 4);
  decode({indices, entry.index_bytes}, entry.count, entry.wide != 0, decoded_.data());
  return true;
}

}  // namespace linblock
