#include "store/chunk.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "store/index_code.h"

namespace linblock {

using format::Section;

namespace {

constexpr uint64_t kRowOverhead = 16;  // ids, labels, counts and offsets of a row, about

template <typename T>
std::span<const unsigned char> bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const unsigned char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

// --- reading -------------------------------------------------------------------------------------------------------

void Chunk::refuse(const char* why) const { fail(ErrorKind::damaged, "{}: {}", where_, why); }

void Chunk::parse(uint64_t features, const std::string& where) {
  where_ = where;
  features_ = features;
  decoded_ = false;
  const std::span<const unsigned char> raw = raw_.span();
  if (raw.size() < format::kChunkHeaderBytes) refuse("it is shorter than a chunk's header");
  rows_ = load<uint32_t>(raw.data());
  nonzeros_ = load<uint32_t>(raw.data() + 4);
  const uint64_t first = load<uint64_t>(raw.data() + 8);
  const size_t count = load<uint32_t>(raw.data() + 16);
  if (load<uint32_t>(raw.data() + 20) != 0) refuse("a reserved field is not zero");
  checked_size(rows_, format::kMostChunkRows, where + ": the number of rows");
  checked_size(nonzeros_, raw.size() * 8, where + ": the number of nonzeros");
  if (count >= format::kSectionKinds) refuse("it lists more sections than there are kinds");
  size_t offset = format::kChunkHeaderBytes + count * format::kSectionEntryBytes;
  if (offset > raw.size()) refuse("its section table does not fit");
  std::array<SectionPlace, format::kSectionKinds> sections{};
  for (size_t i = 0; i < count; ++i) {
    const unsigned char* entry = raw.data() + format::kChunkHeaderBytes + i * format::kSectionEntryBytes;
    const size_t kind = load<uint16_t>(entry);
    const uint64_t bytes = load<uint32_t>(entry + 4);
    offset = round_up(offset, format::kSectionAlignment);
    if (kind == 0 || kind >= format::kSectionKinds) refuse("it has a section of an unknown kind");
    if (sections[kind].present) refuse("it has two sections of one kind");
    if (offset > raw.size() || bytes > raw.size() - offset) refuse("a section reaches past its end");
    sections[kind] = {true, load<uint16_t>(entry + 2), raw.subspan(offset, bytes)};
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
  ids_.resize(rows_);
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
  labels_.resize(rows_);
  if (!section.present) {
    std::fill(labels_.begin(), labels_.end(), 0);
    return;
  }
  switch (static_cast<format::Labels>(section.encoding)) {
    case format::Labels::constant:
      if (bytes.size() != 4) break;
      std::fill(labels_.begin(), labels_.end(), load<int32_t>(bytes.data()));
      return;
    case format::Labels::bits: {
      if (bytes.size() != 8 + (rows_ + 7) / 8) break;
      const std::array<int32_t, 2> label = {load<int32_t>(bytes.data()), load<int32_t>(bytes.data() + 4)};
      for (size_t i = 0; i < rows_; ++i) labels_[i] = label[bytes[8 + i / 8] >> (i % 8) & 1];
      return;
    }
    case format::Labels::bytes: {
      if (bytes.size() < 4) break;
      const size_t distinct = load<uint32_t>(bytes.data());
      if (distinct > 256 || bytes.size() != 4 + 4 * distinct + rows_) break;
      const unsigned char* codes = bytes.data() + 4 + 4 * distinct;
      for (size_t i = 0; i < rows_; ++i) {
        if (codes[i] >= distinct) refuse("a label is not in its dictionary");
        labels_[i] = load<int32_t>(bytes.data() + 4 + 4 * size_t{codes[i]});
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
  weights_.resize(rows_);
  std::memcpy(weights_.data(), section.bytes.data(), section.bytes.size());
}

void Chunk::parse_numbers(const SectionPlace& section, std::vector<uint32_t>& out) const {
  out.resize(rows_ + 1);
  const unsigned char* from = section.bytes.data();
  const size_t bytes = section.bytes.size();
  switch (static_cast<format::Numbers>(section.encoding)) {
    case format::Numbers::constant:
      if (bytes != 4) break;
      std::fill_n(out.begin(), rows_, load<uint32_t>(from));
      return;
    case format::Numbers::bytes:
      if (bytes != rows_) break;
      std::copy_n(from, rows_, out.begin());
      return;
    case format::Numbers::halves:
      if (bytes != 2 * rows_) break;
      for (size_t i = 0; i < rows_; ++i) out[i] = load<uint16_t>(from + 2 * i);
      return;
    case format::Numbers::words:
      if (bytes != 4 * rows_) break;
      for (size_t i = 0; i < rows_; ++i) out[i] = load<uint32_t>(from + 4 * i);
      return;
  }
  refuse("its counts or lengths have an unknown encoding or a wrong size");
}

// Counts and lengths become places; their sums must be exactly what the chunk holds.
void Chunk::place_rows() {
  index_begin_.resize(rows_ + 1);
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
      return;
    case format::Values::dictionary: {
      if (bytes.size() < 4) break;
      const size_t distinct = load<uint32_t>(bytes.data());
      if (distinct == 0 || distinct > 256 || bytes.size() != 4 + 4 * distinct + nonzeros_) break;
      values_ = floats(bytes.subspan(4), distinct);
      value_codes_ = bytes.subspan(4 + 4 * distinct);
      for (const unsigned char code : value_codes_)
        if (code >= distinct) refuse("a value is not in its dictionary");
      return;
    }
    case format::Values::each:
      if (bytes.size() != 4 * nonzeros_) break;
      values_ = floats(bytes, nonzeros_);
      return;
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
  index_.resize(nonzeros_ + 4);
  for (size_t row = 0; row < rows_; ++row) decode_row(row, index_.data() + value_begin_[row]);
  if (values_kind_ != format::Values::each) {
    value_.resize(nonzeros_);
    for (size_t row = 0; row < rows_; ++row) fill_values(row, value_.data() + value_begin_[row]);
  }
  decoded_ = true;
}

EncodedRow Chunk::encoded(size_t row, RowBuffer& buffer) const {
  const size_t begin = value_begin_[row];
  const size_t count = value_begin_[row + 1] - begin;
  EncodedRow view{.label = labels_[row],
                  .weight = weights_.empty() ? 1.0F : weights_[row],
                  .count = static_cast<uint32_t>(count),
                  .wide = (lengths_[row] & 1) != 0,
                  .equal = values_kind_ == format::Values::ones || values_kind_ == format::Values::per_row,
                  .indices = indices_.subspan(index_begin_[row], index_begin_[row + 1] - index_begin_[row])};
  if (values_kind_ == format::Values::per_row && count > 0) view.values = values_.subspan(row, 1);
  if (!view.equal) {
    if (buffer.value.size() < count) buffer.value.resize(count);
    fill_values(row, buffer.value.data());
    view.values = {buffer.value.data(), count};
  }
  return view;
}

Row Chunk::row(size_t row, RowBuffer& buffer) const {
  const size_t begin = value_begin_[row];
  const size_t count = value_begin_[row + 1] - begin;
  Row view{.id = ids_[row], .label = labels_[row], .weight = weights_.empty() ? 1.0F : weights_[row]};
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

size_t Chunk::memory_bytes() const {
  return raw_.capacity() + ids_.capacity() * 8 + labels_.capacity() * 4 + weights_.capacity() * 4 +
         (value_begin_.capacity() + index_begin_.capacity() + lengths_.capacity() + index_.capacity()) * 4 +
         value_.capacity() * 4;
}

uint64_t Chunk::memory_limit(uint64_t raw_bytes, uint64_t rows, uint64_t nonzeros, bool decoded) {
  return raw_bytes + 2 * format::kPageBytes + rows * (8 + 4 + 4 + 3 * 4) + 64 + (decoded ? nonzeros * 8 + 16 : 0);
}

// --- writing -------------------------------------------------------------------------------------------------------

ChunkBuilder::Mode ChunkBuilder::mode_of(const EncodedRow& row) {
  if (!row.equal) return Mode::each;
  return row.values.empty() || row.values.front() == 1.0F ? Mode::ones : Mode::per_row;
}

uint64_t ChunkBuilder::bytes_with(Mode mode, uint64_t rows, uint64_t nonzeros, uint64_t index_bytes) {
  const uint64_t values = mode == Mode::ones ? 0 : mode == Mode::per_row ? rows : nonzeros;
  return index_bytes + 4 * values + kRowOverhead * rows;
}

bool ChunkBuilder::has_room_for(const EncodedRow& row, uint64_t chunk_bytes) const {
  return empty() || (bytes_with(row) <= chunk_bytes && rows() < format::kMostChunkRows);
}

uint64_t ChunkBuilder::bytes_with(const EncodedRow& row) const {
  return bytes_with(std::max(mode_, mode_of(row)), ids_.size() + 1, nonzeros_ + row.count,
                    indices_.size() + row.indices.size());
}

// Rows so far were kept more briefly than the next one allows.
void ChunkBuilder::widen(Mode mode) {
  if (mode <= mode_) return;
  if (mode == Mode::per_row || mode_ == Mode::ones)
    values_.assign(mode == Mode::per_row ? ids_.size() : nonzeros_, 1.0F);
  else {
    std::vector<float> each;
    each.reserve(nonzeros_);
    for (size_t row = 0; row < counts_.size(); ++row) each.insert(each.end(), counts_[row], values_[row]);
    values_.swap(each);
  }
  mode_ = mode;
}

void ChunkBuilder::add(uint64_t id, const EncodedRow& row) {
  widen(mode_of(row));
  if (row.weight != 1.0F && !weighted_) {
    weighted_ = true;
    weights_.assign(ids_.size(), 1.0F);
  }
  if (mode_ == Mode::each && row.equal)
    values_.insert(values_.end(), row.count, row.values.empty() ? 1.0F : row.values.front());
  else if (mode_ == Mode::each)
    values_.insert(values_.end(), row.values.begin(), row.values.end());
  else if (mode_ == Mode::per_row)
    values_.push_back(row.values.empty() ? 1.0F : row.values.front());
  ids_.push_back(id);
  labels_.push_back(row.label);
  if (weighted_) weights_.push_back(row.weight);
  counts_.push_back(row.count);
  lengths_.push_back(static_cast<uint32_t>(row.indices.size() * 2 + (row.wide ? 1 : 0)));
  indices_.insert(indices_.end(), row.indices.begin(), row.indices.end());
  nonzeros_ += row.count;
}

namespace {

// Collects the sections of a chunk, then lays them out behind its header and table.
class SectionWriter {
 public:
  void add(Section kind, uint16_t encoding, std::span<const unsigned char> bytes) {
    parts_[count_++] = {static_cast<uint16_t>(kind), encoding, bytes};
  }

  void write(uint32_t rows, uint32_t nonzeros, uint64_t first_id, Buffer& out) const {
    size_t size = format::kChunkHeaderBytes + count_ * format::kSectionEntryBytes;
    for (size_t i = 0; i < count_; ++i) size = round_up(size, format::kSectionAlignment) + parts_[i].bytes.size();
    out.resize(size);
    unsigned char* to = out.data();
    store(to, rows);
    store(to + 4, nonzeros);
    store(to + 8, first_id);
    store(to + 16, static_cast<uint32_t>(count_));
    store(to + 20, uint32_t{0});
    size_t offset = format::kChunkHeaderBytes;
    for (size_t i = 0; i < count_; ++i, offset += format::kSectionEntryBytes) {
      store(to + offset, parts_[i].kind);
      store(to + offset + 2, parts_[i].encoding);
      store(to + offset + 4, static_cast<uint32_t>(parts_[i].bytes.size()));
    }
    for (size_t i = 0; i < count_; ++i) {
      const size_t begin = round_up(offset, format::kSectionAlignment);
      std::fill(to + offset, to + begin, 0);
      if (!parts_[i].bytes.empty()) std::memcpy(to + begin, parts_[i].bytes.data(), parts_[i].bytes.size());
      offset = begin + parts_[i].bytes.size();
    }
  }

 private:
  struct Part {
    uint16_t kind = 0;
    uint16_t encoding = 0;
    std::span<const unsigned char> bytes;
  };
  std::array<Part, format::kSectionKinds> parts_{};
  size_t count_ = 0;
};

void append_gap(uint64_t gap, std::vector<unsigned char>& out) {
  for (; gap > 127; gap >>= 7) out.push_back(static_cast<unsigned char>(gap | 128));
  out.push_back(static_cast<unsigned char>(gap));
}

template <typename T>
void append(T value, std::vector<unsigned char>& out) {
  out.resize(out.size() + sizeof(T));
  store(out.data() + out.size() - sizeof(T), value);
}

format::Ids encode_ids(const std::vector<uint64_t>& ids, std::vector<unsigned char>& out) {
  if (ids.back() - ids.front() + 1 == ids.size()) return format::Ids::consecutive;
  for (size_t i = 1; i < ids.size(); ++i) append_gap(ids[i] - ids[i - 1] - 1, out);
  return format::Ids::gaps;
}

format::Labels encode_labels(const std::vector<int32_t>& labels, std::vector<unsigned char>& out) {
  std::vector<int32_t> distinct;
  std::vector<unsigned char> codes(labels.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    size_t code = 0;
    while (code < distinct.size() && distinct[code] != labels[i]) ++code;
    if (code == distinct.size()) {
      if (code == 256) {
        for (const int32_t label : labels) append(label, out);
        return format::Labels::words;
      }
      distinct.push_back(labels[i]);
    }
    codes[i] = static_cast<unsigned char>(code);
  }
  if (distinct.size() == 1) {
    append(distinct[0], out);
    return format::Labels::constant;
  }
  if (distinct.size() == 2) {
    append(distinct[0], out);
    append(distinct[1], out);
    out.resize(8 + (labels.size() + 7) / 8, 0);
    for (size_t i = 0; i < codes.size(); ++i) out[8 + i / 8] |= static_cast<unsigned char>(codes[i] << (i % 8));
    return format::Labels::bits;
  }
  append(static_cast<uint32_t>(distinct.size()), out);
  for (const int32_t label : distinct) append(label, out);
  out.insert(out.end(), codes.begin(), codes.end());
  return format::Labels::bytes;
}

format::Numbers encode_numbers(const std::vector<uint32_t>& numbers, std::vector<unsigned char>& out) {
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  if (*least == *most) {
    append(*least, out);
    return format::Numbers::constant;
  }
  if (*most < 256) {
    out.assign(numbers.begin(), numbers.end());
    return format::Numbers::bytes;
  }
  if (*most < 65536) {
    out.resize(2 * numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i) store(out.data() + 2 * i, static_cast<uint16_t>(numbers[i]));
    return format::Numbers::halves;
  }
  out.resize(4 * numbers.size());
  std::memcpy(out.data(), numbers.data(), out.size());
  return format::Numbers::words;
}

// The dictionary of at most 256 values, by first appearance; false where there are more.
bool encode_dictionary(const std::vector<float>& values, std::vector<unsigned char>& out) {
  constexpr size_t kSlots = 1024;
  std::array<uint32_t, kSlots> key{};
  std::array<uint16_t, kSlots> code_of{};  // 0: the slot is free
  std::vector<float> distinct;
  std::vector<unsigned char> codes;
  codes.reserve(values.size());
  for (const float value : values) {
    const auto bits = std::bit_cast<uint32_t>(value);
    size_t slot = (bits * 2654435761U) >> 22;
    while (code_of[slot] != 0 && key[slot] != bits) slot = (slot + 1) % kSlots;
    if (code_of[slot] == 0) {
      if (distinct.size() == 256) return false;
      distinct.push_back(value);
      key[slot] = bits;
      code_of[slot] = static_cast<uint16_t>(distinct.size());
    }
    codes.push_back(static_cast<unsigned char>(code_of[slot] - 1));
  }
  append(static_cast<uint32_t>(distinct.size()), out);
  for (const float value : distinct) append(value, out);
  out.insert(out.end(), codes.begin(), codes.end());
  return true;
}

}  // namespace

void ChunkBuilder::finish(unsigned width_set, Buffer& out) {
  std::array<std::vector<unsigned char>, format::kSectionKinds> bytes;
  SectionWriter sections;
  const auto number_section = [&](Section kind, const std::vector<uint32_t>& numbers) {
    std::vector<unsigned char>& to = bytes[static_cast<size_t>(kind)];
    const format::Numbers encoding = encode_numbers(numbers, to);
    sections.add(kind, static_cast<uint16_t>(encoding), to);
  };
  if (const format::Ids encoding = encode_ids(ids_, bytes[0]); encoding != format::Ids::consecutive)
    sections.add(Section::ids, static_cast<uint16_t>(encoding), bytes[0]);
  const format::Labels labels = encode_labels(labels_, bytes[1]);
  sections.add(Section::labels, static_cast<uint16_t>(labels), bytes[1]);
  if (weighted_) sections.add(Section::weights, static_cast<uint16_t>(format::Weights::each), bytes_of(weights_));
  number_section(Section::counts, counts_);
  number_section(Section::lengths, lengths_);
  sections.add(Section::indices, static_cast<uint16_t>(width_set), indices_);
  if (mode_ == Mode::per_row)
    sections.add(Section::values, static_cast<uint16_t>(format::Values::per_row), bytes_of(values_));
  else if (mode_ == Mode::each && encode_dictionary(values_, bytes[2]))
    sections.add(Section::values, static_cast<uint16_t>(format::Values::dictionary), bytes[2]);
  else if (mode_ == Mode::each)
    sections.add(Section::values, static_cast<uint16_t>(format::Values::each), bytes_of(values_));
  sections.write(static_cast<uint32_t>(ids_.size()), static_cast<uint32_t>(nonzeros_), ids_.front(), out);
  clear();
}

void ChunkBuilder::clear() {
  mode_ = Mode::ones;
  weighted_ = false;
  nonzeros_ = 0;
  ids_.clear();
  labels_.clear();
  weights_.clear();
  counts_.clear();
  lengths_.clear();
  indices_.clear();
  values_.clear();
}

}  // namespace linblock
