#include <algorithm>
#include <array>
#include <bit>

#include "store/chunk/chunk.h"

namespace linblock {

using format::Section;

namespace {

constexpr uint64_t kRowOverhead = 32;  // what a row costs beside its nonzeros while the chunk is built

template <typename T>
std::span<const unsigned char> bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const unsigned char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

ChunkBuilder::ChunkBuilder(uint64_t chunk_bytes) {
  indices_.reserve(chunk_bytes);
  values_.reserve(chunk_bytes / sizeof(float));
}

ChunkBuilder::Mode ChunkBuilder::mode_of(const EncodedRow& row) {
  if (!row.equal) return Mode::each;
  return row.values.empty() || row.values.front() == 1.0F ? Mode::ones : Mode::per_row;
}

uint64_t ChunkBuilder::bytes_with(Mode mode, uint64_t rows, uint64_t nonzeros, uint64_t index_bytes) {
  const uint64_t values = mode == Mode::ones ? 0 : mode == Mode::per_row ? rows : nonzeros;
  return index_bytes + 4 * values + kRowOverhead * rows;
}

ChunkBuilder::Size& ChunkBuilder::Size::operator+=(const Size& other) {
  mode_ = std::max(mode_, other.mode_);
  rows_ += other.rows_;
  nonzeros_ += other.nonzeros_;
  index_bytes_ += other.index_bytes_;
  return *this;
}

uint64_t ChunkBuilder::Size::bytes() const { return bytes_with(mode_, rows_, nonzeros_, index_bytes_); }

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
    std::vector<float> values;
    values.reserve(nonzeros_);
    for (size_t row = 0; row < counts_.size(); ++row) values.insert(values.end(), counts_[row], values_[row]);
    values_.swap(values);
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
    store_le(to, rows);
    store_le(to + 4, nonzeros);
    store_le(to + 8, first_id);
    store_le(to + 16, static_cast<uint32_t>(count_));
    store_le(to + 20, uint32_t{0});
    size_t offset = format::kChunkHeaderBytes;
    for (size_t i = 0; i < count_; ++i, offset += format::kSectionEntryBytes) {
      store_le(to + offset, parts_[i].kind);
      store_le(to + offset + 2, parts_[i].encoding);
      store_le(to + offset + 4, static_cast<uint32_t>(parts_[i].bytes.size()));
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
  store_le(out.data() + out.size() - sizeof(T), value);
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
    for (size_t i = 0; i < numbers.size(); ++i) store_le(out.data() + 2 * i, static_cast<uint16_t>(numbers[i]));
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
  thread_local std::vector<unsigned char> codes;  // kept: most chunks need it only to find out that they do not
  codes.clear();
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
