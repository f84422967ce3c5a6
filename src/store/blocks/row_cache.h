// Some rows, at hand across blocks, in a fixed amount of memory: what selective block minimization keeps. They are
// copied out of their chunks as they stand there, encoded, unless 16 bits hold any feature number: such rows are short
// and visited often, and decoding them each time was a quarter of all work. Where all chunks stay in memory, rows are
// only pointed to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"
#include "store/core/store.h"

namespace linblock {

class RowCache {
 public:
  struct Origin {
    uint32_t chunk = 0;  // in the store
    uint32_t row = 0;    // in the chunk

    static void visit_fields(auto& self, auto&& field) {
      field("chunk", self.chunk);
      field("row", self.row);
    }
  };

  RowCache() = default;
  // `resident`: every chunk of the store, by number.
  RowCache(const Store& store, uint64_t bytes, const std::vector<Chunk>* resident = nullptr);

  static uint64_t least_row_bytes() { return kEntryBytes; }  // of any row
  uint64_t capacity() const { return capacity_; }
  uint64_t used() const { return used_ + entries_.size() * kEntryBytes; }
  size_t size() const { return entries_.size(); }
  Origin origin(size_t number) const { return entries_[number].origin; }
  uint64_t bytes_of(size_t number) const { return entries_[number].bytes() + kEntryBytes; }
  // What a row would take.
  uint64_t bytes_of(const EncodedRow& row) const;
  uint32_t nonzeros(size_t number) const { return entries_[number].count; }
  const std::vector<Chunk>* resident() const { return resident_; }
  // For whoever visits rows in random order: first its entry is brought near, then, some visits later, the row.
  void prefetch_entry(size_t number) const { __builtin_prefetch(&entries_[number]); }
  void prefetch(size_t number) const {
    const CachedRow& entry = entries_[number];
    if (resident_ != nullptr)
      (*resident_)[entry.origin.chunk].prefetch_place(entry.origin.row);
    else
      __builtin_prefetch(memory_.data() + entry.offset);
  }

  // All rows are where the store has rows.
  bool has_possible_origins() const;
  // As Chunk::row, without the id.
  Row row(size_t number, RowBuffer& buffer) const;

  // False where it does not fit.
  bool add(Origin origin, const EncodedRow& row);
  // Those with a 0 in `keep` go; the others stay in their order.
  void keep(const std::vector<uint8_t>& keep);
  // Gives back the memory that its rows do not take: no row can be added any more.
  void shrink();

  void save(FieldWriter& to) const;
  // Refuses what this memory cannot hold, and rows that no store has.
  void restore(FieldReader& from);

 private:
  void decode(std::span<const unsigned char> indices, size_t count, bool wide, uint32_t* out) const;

  struct CachedRow {
    Origin origin;
    uint64_t offset = 0;  // values, then indices
    uint32_t count = 0;
    uint32_t index_bytes = 0;
    uint32_t value_bytes = 0;
    int32_t label = 0;
    float weight = 1;
    uint32_t wide = 0;
    uint64_t bytes() const { return round_up<uint64_t>(index_bytes + value_bytes, 4); }

    static void visit_fields(auto& self, auto&& field) {
      field("origin", self.origin);
      field("offset", self.offset);
      field("count", self.count);
      field("index_bytes", self.index_bytes);
      field("value_bytes", self.value_bytes);
      field("label", self.label);
      field("weight", self.weight);
      field("wide", self.wide);
    }
  };
  bool is_possible(const CachedRow& entry);
  bool is_in_store(const Origin& origin) const;

  // With what a solver keeps of a row beside it.
  static constexpr uint64_t kEntryBytes = sizeof(CachedRow) + 16;

  const Store* store_ = nullptr;
  const std::vector<Chunk>* resident_ = nullptr;
  Buffer memory_;
  uint64_t capacity_ = 0;
  uint64_t used_ = 0;
  uint64_t features_ = 0;
  bool narrow_ = false;  // indices are 16-bit numbers
  std::vector<uint32_t> decoded_;
  unsigned width_set_ = 0;
  std::vector<CachedRow> entries_;
};

}  // namespace linblock
