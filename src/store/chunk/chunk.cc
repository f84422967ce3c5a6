#include "store/chunk/chunk.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "store/chunk/index_code.h"

namespace linblock {

namespace {

// A vector that grows by itself doubles; a recycled chunk would come to twice what the plan has for it.
template <typename T>
void resize_exactly(std::vector<T>& values, size_t count) {
  if (count > values.capacity()) {
    std::vector<T>().swap(values);
    values.reserve(count);
  }
  values.resize(count);
}

// By their bits, without branches: as fast as memory.
bool all_finite(std::span<const float> values) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t bad = 0;
  for (const float value : values) bad |= (std::bit_cast<uint32_t>(value) & kExponent) == kExponent ? 1U : 0U;
  return bad == 0;
}

}  // namespace

using format::Section;

void Chunk::refuse(const char* why) const { fail(ErrorKind::damaged, "{}: {}", where_, why); }

void Chunk::parse(uint64_t features, const std::string& where) {
  where_ = where;
  features_ = features;
  decoded_ = false;
  const std::span<const unsigned char> raw = raw_.span();
  if (raw.size() < format::kChunkHeaderBytes) refuse("it is shorter than a chunk's header");
  rows_ = load_le<uint32_t>(raw.data());
  nonzeros_ = load_le<uint32_t>(raw.data() + 4);
  const uint64_t first = load_le<uint64_t>(raw.data() + 8);
  const size_t count = load_le<uint32_t>(raw.data() + 16);
  if (load_le<uint32_t>(raw.data() + 20) != 0) refuse("a reserved field is not zero");
  checked_size(rows_, format::kMostChunkRows, where + ": the number of rows");
  checked_size(nonzeros_, raw.size() * 8, where + ": the number of nonzeros");
  if (count >= format::kSectionKinds) refuse("it lists more sections than there are kinds");
  size_t offset = format::kChunkHeaderBytes + count * format::kSectionEntryBytes;
  if (offset > raw.size()) refuse("its section table does not fit");
  std::array<SectionPlace, format::kSectionKinds> sections{};
  for (size_t i = 0; i < count; ++i) {
    const unsigned char* entry = raw.data() + format::kChunkHeaderBytes + i * format::kSectionEntryBytes;
    const size_t kind = load_le<uint16_t>(entry);
    const uint64_t bytes = load_le<uint32_t>(entry + 4);
    offset = round_up(offset, format::kSectionAlignment);
    if (kind == 0 || kind >= format::kSectionKinds) refuse("it has a section of an unknown kind");
    if (sections[kind].present) refuse("it has two sections of one kind");
    if (offset > raw.size() || bytes > raw.size() - offset) refuse("a section reaches past its end");
    sections[kind] = {true, load_le<uint16_t>(entry + 2), raw.subspan(offset, bytes)};
    offset += bytes;
  }
  const auto section = [&](Section kind) -> const SectionPlace& { return sections[static_cast<size_t>(kind)]; };
  parse_ids(section(Section::ids), first);
  parse_labels(section(Section::labels));
  parse_weights(section(Section::weights));
  parse_numbers(section(Section::counts), value_begin_);
  parse_numbers(section(Section::lengths), lengths_);
  const SectionPlace& indices = section(Section::indices);
  if (indices.encoding >= format::kWidthSets.size()) refuse("its index code is unknown");
  width_set_ = indices.encoding;
  indices_ = indices.bytes;
  place_rows();
  parse_values(section(Section::values));
}

void Chunk::parse_ids(const SectionPlace& section, uint64_t first) {
  resize_exactly(ids_, rows_);
  if (!section.present || section.encoding == static_cast<uint16_t>(format::Ids::consecutive)) {
    for (size_t i = 0; i < rows_; ++i) ids_[i] = first + i;
    return;
  }
  if (section.encoding != static_cast<uint16_t>(format::Ids::gaps)) refuse("its row ids have an unknown encoding");
  const unsigned char* at = section.bytes.data();
  const unsigned char* const end = at + section.bytes.size();
  uint64_t id = first;
  for (size_t i = 0; i < rows_; ++i) {
    if (i > 0) {
      uint64_t gap = 0;
      unsigned shift = 0;
      do {
        if (at == end || shift > 56) refuse("its row ids are cut short");
        gap |= static_cast<uint64_t>(*at & 127) << shift;
        shift += 7;
      } while ((*at++ & 128) != 0);
      id += gap + 1;
    }
    ids_[i] = id;
  }
  if (at != end) refuse("its row ids do not end where they should");
}

void Chunk::parse_labels(const SectionPlace& section) {
  const std::span<const unsigned char> bytes = section.bytes;
  resize_exactly(labels_, rows_);
  if (!section.present) {
    std::fill(labels_.begin(), labels_.end(), 0);
    return;
  }
  switch (static_cast<format::Labels>(section.encoding)) {
    case format::Labels::constant:
      if (bytes.size() != 4) break;
      std::fill(labels_.begin(), labels_.end(), load_le<int32_t>(bytes.data()));
      return;
    case format::Labels::bits: {
      if (bytes.size() != 8 + (rows_ + 7) / 8) break;
      const std::array<int32_t, 2> label = {load_le<int32_t>(bytes.data()), load_le<int32_t>(bytes.data() + 4)};
      for (size_t i = 0; i < rows_; ++i) labels_[i] = label[bytes[8 + i / 8] >> (i % 8) & 1];
      return;
    }
    case format::Labels::bytes: {
      if (bytes.size() < 4) break;
      const size_t distinct = load_le<uint32_t>(bytes.data());
      if (distinct > 256 || bytes.size() != 4 + 4 * distinct + rows_) break;
      const unsigned char* codes = bytes.data() + 4 + 4 * distinct;
      for (size_t i = 0; i < rows_; ++i) {
        if (codes[i] >= distinct) refuse("a label is not in its dictionary");
        labels_[i] = load_le<int32_t>(bytes.data() + 4 + 4 * size_t{codes[i]});
      }
      return;
    }
    case format::Labels::words:
      if (bytes.size() != 4 * rows_) break;
      if (rows_ > 0) std::memcpy(labels_.data(), bytes.data(), bytes.size());
      return;
  }
  refuse("its labels have an unknown encoding or a wrong size");
}

void Chunk::parse_weights(const SectionPlace& section) {
  weights_.clear();
  if (!section.present) return;
  if (section.encoding != static_cast<uint16_t>(format::Weights::each) || section.bytes.size() != 4 * rows_)
    refuse("its row weights have an unknown encoding or a wrong size");
  resize_exactly(weights_, rows_);
  if (rows_ > 0) std::memcpy(weights_.data(), section.bytes.data(), section.bytes.size());
  if (!all_finite(weights_) || std::any_of(weights_.begin(), weights_.end(), [](float weight) { return weight < 0; }))
    refuse("a row weight is not a number from 0 up");
  for (float& weight : weights_)
    if (weight == 0) weight = 0;  // never -0, which is a removed row's
}

bool Chunk::mark_removed(std::span<const uint64_t> ids) {
  if (ids.empty()) return true;
  if (weights_.empty()) {
    resize_exactly(weights_, rows_);
    std::fill(weights_.begin(), weights_.end(), 1.0F);
  }
  size_t row = 0;
  for (const uint64_t id : ids) {
    while (row < rows_ && ids_[row] < id) ++row;
    if (row == rows_ || ids_[row] != id) return false;
    weights_[row] = kRemovedWeight;
  }
  return true;
}

void Chunk::parse_numbers(const SectionPlace& section, std::vector<uint32_t>& out) const {
  resize_exactly(out, rows_ + 1);
  const unsigned char* from = section.bytes.data();
  const size_t bytes = section.bytes.size();
  switch (static_cast<format::Numbers>(section.encoding)) {
    case format::Numbers::constant:
      if (bytes != 4) break;
      std::fill_n(out.begin(), rows_, load_le<uint32_t>(from));
      return;
    case format::Numbers::bytes:
      if (bytes != rows_) break;
      std::copy_n(from, rows_, out.begin());
      return;
    case format::Numbers::halves:
      if (bytes != 2 * rows_) break;
      for (size_t i = 0; i < rows_; ++i) out[i] = load_le<uint16_t>(from + 2 * i);
      return;
    case format::Numbers::words:
      if (bytes != 4 * rows_) break;
      for (size_t i = 0; i < rows_; ++i) out[i] = load_le<uint32_t>(from + 4 * i);
      return;
  }
  refuse("its counts or lengths have an unknown encoding or a wrong size");
}

// Counts and lengths become places; their sums must be exactly what the chunk holds.
void Chunk::place_rows() {
  resize_exactly(index_begin_, rows_ + 1);
  uint64_t nonzeros = 0;
  uint64_t index_bytes = 0;
  for (size_t i = 0; i < rows_; ++i) {
    const uint64_t count = value_begin_[i];
    value_begin_[i] = static_cast<uint32_t>(nonzeros);
    index_begin_[i] = static_cast<uint32_t>(index_bytes);
    nonzeros += count;
    index_bytes += lengths_[i] / 2;
    if (nonzeros > nonzeros_ || index_bytes > indices_.size()) refuse("its rows are longer than its contents");
  }
  value_begin_[rows_] = static_cast<uint32_t>(nonzeros);
  index_begin_[rows_] = static_cast<uint32_t>(index_bytes);
  if (nonzeros != nonzeros_ || index_bytes != indices_.size()) refuse("its rows are shorter than its contents");
}

// No solver ends on values that are not numbers.
void Chunk::expect_finite_values() const {
  if (!all_finite(values_)) refuse("a value is not a finite number");
}

void Chunk::parse_values(const SectionPlace& section) {
  const std::span<const unsigned char> bytes = section.bytes;
  const auto floats = [](std::span<const unsigned char> from, size_t count) {
    return std::span<const float>(reinterpret_cast<const float*>(from.data()), count);
  };
  value_codes_ = {};
  values_ = {};
  values_kind_ = section.present ? static_cast<format::Values>(section.encoding) : format::Values::ones;
  switch (values_kind_) {
    case format::Values::ones:
      if (!bytes.empty()) break;
      return;
    case format::Values::per_row:
      if (bytes.size() != 4 * rows_) break;
      values_ = floats(bytes, rows_);
      return expect_finite_values();
    case format::Values::dictionary: {
      if (bytes.size() < 4) break;
      const size_t distinct = load_le<uint32_t>(bytes.data());
      if (distinct == 0 || distinct > 256 || bytes.size() != 4 + 4 * distinct + nonzeros_) break;
      values_ = floats(bytes.subspan(4), distinct);
      value_codes_ = bytes.subspan(4 + 4 * distinct);
      for (const unsigned char code : value_codes_)
        if (code >= distinct) refuse("a value is not in its dictionary");
      return expect_finite_values();
    }
    case format::Values::each:
      if (bytes.size() != 4 * nonzeros_) break;
      values_ = floats(bytes, nonzeros_);
      return expect_finite_values();
  }
  refuse("its values have an unknown encoding or a wrong size");
}

void Chunk::decode_row(size_t row, uint32_t* index) const {
  const size_t count = value_begin_[row + 1] - value_begin_[row];
  const size_t bytes = index_begin_[row + 1] - index_begin_[row];
  const unsigned set = (lengths_[row] & 1) != 0 ? 0 : width_set_;
  const uint32_t largest = decode_indices(indices_.subspan(index_begin_[row], bytes), count, set, index);
  if (largest >= features_ && count > 0) refuse("a row's feature numbers are not valid");
}

void Chunk::fill_values(size_t row, float* out) const {
  const size_t begin = value_begin_[row];
  const size_t count = value_begin_[row + 1] - begin;
  switch (values_kind_) {
    case format::Values::ones: std::fill_n(out, count, 1.0F); break;
    case format::Values::per_row: std::fill_n(out, count, values_[row]); break;
    case format::Values::dictionary:
      for (size_t i = 0; i < count; ++i) out[i] = values_[value_codes_[begin + i]];
      break;
    case format::Values::each: std::copy_n(values_.begin() + static_cast<ptrdiff_t>(begin), count, out); break;
  }
}

void Chunk::decode() {
  if (decoded_) return;
  resize_exactly(index_, nonzeros_ + 4);
  for (size_t row = 0; row < rows_; ++row) decode_row(row, index_.data() + value_begin_[row]);
  if (values_kind_ != format::Values::each) {
    resize_exactly(value_, nonzeros_);
    for (size_t row = 0; row < rows_; ++row) fill_values(row, value_.data() + value_begin_[row]);
  }
  decoded_ = true;
}

void Chunk::decode_in(Space& lent) {
  std::swap(index_, lent.index);
  std::swap(value_, lent.value);
  decode();
}

void Chunk::encode_again(Space& lent) {
  std::swap(index_, lent.index);
  std::swap(value_, lent.value);
  decoded_ = false;
}

EncodedRow Chunk::encoded(size_t row, RowBuffer& buffer) const {
  const size_t begin = value_begin_[row];
  const size_t count = value_begin_[row + 1] - begin;
  EncodedRow view{
      .label = labels_[row],
      .weight = weight(row),
      .count = static_cast<uint32_t>(count),
      .wide = (lengths_[row] & 1) != 0,
      .equal = count == 0 || values_kind_ == format::Values::ones || values_kind_ == format::Values::per_row,
      .indices = indices_.subspan(index_begin_[row], index_begin_[row + 1] - index_begin_[row])};
  if (values_kind_ == format::Values::per_row && count > 0) view.values = values_.subspan(row, 1);
  if (!view.equal) {
    if (buffer.value.size() < count) buffer.value.resize(count);
    fill_values(row, buffer.value.data());
    view.values = {buffer.value.data(), count};
  }
  return view;
}

ChunkBuilder::Size Chunk::size_of(size_t row) const {
  EncodedRow shape{.count = nonzeros(row), .equal = nonzeros(row) == 0 || equal_values()};
  if (values_kind_ == format::Values::per_row && shape.count > 0) shape.values = values_.subspan(row, 1);
  return {shape, index_begin_[row + 1] - index_begin_[row]};
}

Row Chunk::row(size_t row, RowBuffer& buffer) const {
  const size_t begin = value_begin_[row];
  const size_t count = value_begin_[row + 1] - begin;
  Row view{.id = ids_[row], .label = labels_[row], .weight = weight(row)};
  if (decoded_) {
    view.index = {index_.data() + begin, count};
  } else {
    if (buffer.index.size() < count + 4) buffer.index.resize(count + 4);
    decode_row(row, buffer.index.data());
    view.index = {buffer.index.data(), count};
  }
  if (values_kind_ == format::Values::each) {
    view.value = values_.subspan(begin, count);
  } else if (decoded_) {
    view.value = {value_.data() + begin, count};
  } else {
    if (buffer.value.size() < count) buffer.value.resize(count);
    fill_values(row, buffer.value.data());
    view.value = {buffer.value.data(), count};
  }
  return view;
}

void Chunk::prefetch(size_t row) const {
  constexpr size_t kPerLine = 16;  // numbers
  const size_t begin = value_begin_[row];
  const size_t end = std::min<size_t>(value_begin_[row + 1], begin + 32 * kPerLine);
  if (!decoded_) {
    __builtin_prefetch(indices_.data() + index_begin_[row]);
    return;
  }
  const float* const values = values_kind_ == format::Values::each ? values_.data() : value_.data();
  for (size_t at = begin; at < end; at += kPerLine) {
    __builtin_prefetch(&index_[at]);
    __builtin_prefetch(values + at);
  }
}

size_t Chunk::memory_bytes() const {
  return raw_.capacity() + ids_.capacity() * 8 + labels_.capacity() * 4 + weights_.capacity() * 4 +
         (value_begin_.capacity() + index_begin_.capacity() + lengths_.capacity() + index_.capacity()) * 4 +
         value_.capacity() * 4;
}

uint64_t Chunk::memory_limit(uint64_t raw_bytes, uint64_t rows, uint64_t nonzeros, bool decoded) {
  return raw_bytes + 2 * format::kPageBytes + rows * (8 + 4 + 4 + 3 * 4) + 64 + (decoded ? nonzeros * 8 + 16 : 0);
}

}  // namespace linblock
