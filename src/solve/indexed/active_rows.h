// The active rows of indexed block descent (the paper's S) with their duals, in the order in which they came. They
// stand on segments of a fixed size. Where not all segments fit in memory, those whose turn is farthest away go to
// files, each written once and checked when it comes back (section 4.2: a sliding window).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "store/blocks/row_cache.h"

namespace linblock {

class ActiveRows {
 public:
  // With what is noted of a row beside its segment.
  static constexpr uint64_t kNoteBytes = sizeof(double) + sizeof(uint8_t);

  // `files`: what the names of files begin with, beside the checkpoint that needs them too, and goes with them; empty:
  // there can be none. Rows are of `store`, or of one with the same
  // feature numbers and the same index code.
  ActiveRows(const Store& store, uint64_t bytes, std::string files);

  size_t size() const { return alphas_.size(); }
  double& alpha(size_t number) { return alphas_[number]; }
  double alpha(size_t number) const { return alphas_[number]; }
  // Outliers stay, with an alpha of 0, until they are none.
  bool is_out(size_t number) const { return out_[number] != 0; }
  void set_out(size_t number, bool out) { out_[number] = out ? 1 : 0; }

  // Throws ErrorKind::memory where the memory is full and there can be no files.
  void add(RowCache::Origin origin, const EncodedRow& row);
  // Of the rows that are here: a row that was brought, or was just added.
  Row row(size_t number, RowBuffer& buffer) const;
  // Brings rows [first, first + count) here, or as many of them as fit; says how many. None of the last `pinned` rows
  // goes meanwhile.
  size_t bring(size_t first, size_t count, size_t pinned = 0);
  // Once through all rows, those first that are here: of each group that is here together the ranges of its rows, from
  // the first to before the last. Rows that were passed go where others need their room, so a walk reads no more than
  // what does not fit.
  using Ranges = std::vector<std::pair<size_t, size_t>>;
  void walk(const std::function<void(const Ranges&)>& work);
  // Where a row that came without a place was met.
  RowCache::Origin origin(size_t number) const;

  // Those with a 0 in `keep` go for good; the others stay in their order.
  void keep(const std::vector<uint8_t>& keep);

  uint64_t bytes_here() const { return here_; }
  uint64_t bytes() const;
  bool in_files() const { return here_ < bytes(); }
  // Since the last time it was asked.
  uint64_t take_bytes_read() { return std::exchange(read_, 0); }

  void save(FieldWriter& to) const;
  void restore(FieldReader& from);

 private:
  struct RowSegment {
    size_t first = 0;  // number of its first row
    size_t rows = 0;
    uint64_t bytes = 0;  // that its rows need
    uint64_t room = 0;   // that it was made with
    uint64_t file = 0;   // the number of the file it was written to; 0: none
    std::unique_ptr<RowCache> cache = {};
  };
  // As a checkpoint has it.
  struct SavedSegment {
    uint64_t rows = 0;
    uint64_t bytes = 0;
    uint64_t room = 0;
    uint64_t file = 0;
    bool here = false;

    static void visit_fields(auto& self, auto&& field) {
      field("rows", self.rows);
      field("bytes", self.bytes);
      field("room", self.room);
      field("file", self.file);
      field("here", self.here);
    }
  };

  size_t segment_of(size_t number) const;
  std::string path_of(uint64_t file) const;
  void load(size_t segment);
  void put_away(size_t segment);
  // Puts away what may go, until so many bytes fit; the last segment stays, where rows are added. False: they cannot.
  bool make_room(uint64_t bytes, const std::function<bool(size_t segment)>& may_go, size_t first);
  // The same, but segments from `first` to `last` stay, and from `pinned` on.
  bool make_room(uint64_t bytes, size_t first, size_t last, size_t pinned);

  const Store& store_;
  const uint64_t capacity_;
  const uint64_t segment_bytes_;
  const std::string files_;
  std::vector<RowSegment> segments_;
  std::vector<double> alphas_;
  std::vector<uint8_t> out_;
  uint64_t files_written_ = 0;  // never the same one twice: a checkpoint may need the old one
  uint64_t here_ = 0;
  uint64_t read_ = 0;
};

}  // namespace linblock
