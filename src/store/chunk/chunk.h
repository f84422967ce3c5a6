// A chunk: some rows as checked, self-contained bytes. ChunkBuilder writes one, Chunk reads one.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "store/chunk/format.h"
#include "store/chunk/row.h"

namespace linblock {

// A row as it will stand in a chunk: its feature numbers already in the index code.
struct EncodedRow {
  int32_t label = 0;
  float weight = 1;
  uint32_t count = 0;  // nonzeros
  bool wide = false;   // written with width set 0 instead of the chunk's
  bool equal = false;  // all values are the same, and `values` holds just that one (none for an empty row)
  std::span<const unsigned char> indices = {};
  std::span<const float> values = {};
};

class ChunkBuilder {
  // How values are kept while rows arrive; only ever moves to the right.
  enum class Mode { ones, per_row, each };
  static Mode mode_of(const EncodedRow& row);

 public:
  // What some rows take in a chunk, by the rule that cuts chunks.
  class Size {
   public:
    Size() = default;
    // Of one row; its indices need not be there, only their number of bytes.
    Size(const EncodedRow& row, uint64_t index_bytes)
        : mode_(mode_of(row)), rows_(1), nonzeros_(row.count), index_bytes_(index_bytes) {}
    Size& operator+=(const Size& other);
    uint64_t bytes() const;
    bool fits(uint64_t chunk_bytes) const {
      return rows_ <= 1 || (bytes() <= chunk_bytes && rows_ <= format::kMostChunkRows);
    }

   private:
    Mode mode_ = Mode::ones;
    uint64_t rows_ = 0;
    uint64_t nonzeros_ = 0;
    uint64_t index_bytes_ = 0;
  };

  ChunkBuilder() = default;
  // Takes its memory at once; what is not used is never touched.
  explicit ChunkBuilder(uint64_t chunk_bytes);

  // Where chunks are cut: by the size of their rows, which no codec changes. A single row always has room.
  bool has_room_for(const EncodedRow& row, uint64_t chunk_bytes) const;
  uint64_t bytes() const { return bytes_with(mode_, ids_.size(), nonzeros_, indices_.size()); }
  bool empty() const { return ids_.empty(); }
  size_t rows() const { return ids_.size(); }
  uint64_t nonzeros() const { return nonzeros_; }
  uint64_t first_id() const { return ids_.front(); }

  // Ids increase.
  void add(uint64_t id, const EncodedRow& row);
  // The chunk's bytes, before any codec; the builder is empty afterwards and keeps its memory.
  void finish(unsigned width_set, Buffer& out);

 private:
  uint64_t bytes_with(const EncodedRow& row) const;
  static uint64_t bytes_with(Mode mode, uint64_t rows, uint64_t nonzeros, uint64_t index_bytes);
  void widen(Mode mode);
  void clear();

  Mode mode_ = Mode::ones;
  bool weighted_ = false;
  uint64_t nonzeros_ = 0;
  std::vector<uint64_t> ids_;
  std::vector<int32_t> labels_;
  std::vector<float> weights_;
  std::vector<uint32_t> counts_;
  std::vector<uint32_t> lengths_;  // bytes in the index code x 2, + 1 for a wide row
  std::vector<unsigned char> indices_;
  std::vector<float> values_;
};

// A chunk in memory. Rows are decoded when asked for, or all at once by decode(): the reader cannot tell.
class Chunk {
 public:
  // The raw bytes go here, then parse() checks them: afterwards every row can be read without another check, except
  // that row() and decode() still refuse feature numbers of `features` or more.
  Buffer& raw() { return raw_; }
  void parse(uint64_t features, const std::string& where);
  void decode();
  // These rows, by increasing id, are no longer in the store: they stay in their places with a weight of zero. False
  // where one of them is not in the chunk.
  bool mark_removed(std::span<const uint64_t> ids);
  bool removed(size_t row) const {
    return !weights_.empty() && std::bit_cast<uint32_t>(weights_[row]) == std::bit_cast<uint32_t>(kRemovedWeight);
  }
  bool decoded() const { return decoded_; }
  // Decoded only for a while, in memory that is lent and given back: every row will be looked at several times.
  struct Space {
    std::vector<uint32_t> index;
    std::vector<float> value;
  };
  void decode_in(Space& lent);
  void encode_again(Space& lent);

  size_t rows() const { return rows_; }
  uint64_t nonzeros() const { return nonzeros_; }
  uint32_t nonzeros(size_t row) const { return value_begin_[row + 1] - value_begin_[row]; }
  uint64_t id(size_t row) const { return ids_[row]; }
  int32_t label(size_t row) const { return labels_[row]; }
  float weight(size_t row) const { return weights_.empty() ? 1.0F : weights_[row]; }
  Row row(size_t row, RowBuffer& buffer) const;
  // In every row all values are the same; false where that is not known.
  bool equal_values() const { return values_kind_ == format::Values::ones || values_kind_ == format::Values::per_row; }
  // For whoever visits rows in random order: first where a row stands is brought near, then, a visit later, the row.
  void prefetch_place(size_t row) const {
    __builtin_prefetch(&value_begin_[row]);
    __builtin_prefetch(&labels_[row]);
    __builtin_prefetch(&ids_[row]);
  }
  void prefetch_id(size_t row) const { __builtin_prefetch(&ids_[row]); }
  void prefetch(size_t row) const;
  // As it stands here, to be put into another chunk of the same store.
  EncodedRow encoded(size_t row, RowBuffer& buffer) const;
  // What encoded(row) will take in a chunk.
  ChunkBuilder::Size size_of(size_t row) const;
  unsigned width_set() const { return width_set_; }
  size_t memory_bytes() const;
  // What a chunk with this directory entry takes in memory, at most.
  static uint64_t memory_limit(uint64_t raw_bytes, uint64_t rows, uint64_t nonzeros, bool decoded);

 private:
  // Counts for nothing in every sum; its sign tells it from a row that was given no weight.
  static constexpr float kRemovedWeight = -0.0F;

  struct SectionPlace {
    bool present = false;
    uint16_t encoding = 0;
    std::span<const unsigned char> bytes = {};
  };

  [[noreturn]] void refuse(const char* why) const;
  void parse_ids(const SectionPlace& section, uint64_t first);
  void parse_labels(const SectionPlace& section);
  void parse_weights(const SectionPlace& section);
  void parse_values(const SectionPlace& section);
  void expect_finite_values() const;
  void parse_numbers(const SectionPlace& section, std::vector<uint32_t>& out) const;
  void place_rows();
  void decode_row(size_t row, uint32_t* index) const;
  void fill_values(size_t row, float* out) const;

  Buffer raw_;
  std::string where_;
  uint64_t features_ = 0;
  size_t rows_ = 0;
  uint64_t nonzeros_ = 0;
  unsigned width_set_ = 0;
  bool decoded_ = false;
  std::vector<uint64_t> ids_;
  std::vector<int32_t> labels_;
  std::vector<float> weights_;         // empty: all 1
  std::vector<uint32_t> value_begin_;  // rows + 1
  std::vector<uint32_t> index_begin_;  // rows + 1, in bytes
  std::vector<uint32_t> lengths_;      // as in ChunkBuilder
  std::span<const unsigned char> indices_;
  format::Values values_kind_ = format::Values::ones;
  std::span<const float> values_;               // per row, each, or the dictionary
  std::span<const unsigned char> value_codes_;  // dictionary only
  std::vector<uint32_t> index_;                 // decoded only
  std::vector<float> value_;                    // decoded only, unless values stand in raw_ as they are
};

}  // namespace linblock
