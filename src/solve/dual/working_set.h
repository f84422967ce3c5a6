// Rows that stay at hand across blocks, because they are near the margin or have a large part of the duality gap of
// their own (selective block minimization: Chang and Roth, 2011); and how much work on them is worth it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"
#include "objective/duals.h"
#include "store/blocks/row_cache.h"

namespace linblock {

// What a row costs beside its nonzeros, in nonzeros.
inline constexpr size_t kRowWork = 8;

// What steps have added to the dual, and the nonzeros they looked at: the price of progress.
struct Progress {
  double gain = 0;
  double work = 0;
  double rate() const { return work > 0 ? gain / work : 0; }

  static void visit_fields(auto& self, auto&& field) {
    field("gain", self.gain);
    field("work", self.work);
  }
};

class WorkingSet {
 public:
  // In a row's Duals::passes_out: it is kept.
  static constexpr uint8_t kMark = 0x80;

  WorkingSet() = default;
  WorkingSet(const Store& store, uint64_t bytes, uint64_t rows, const std::vector<Chunk>* resident);

  bool wanted() const { return cache_.capacity() > 0; }
  const RowCache& rows() const { return cache_; }
  void begin_pass();

  // False: offer() would not keep a row of this priority, however few bytes it takes.
  bool may_keep(float priority) const {
    return priority / static_cast<float>(RowCache::least_row_bytes()) > least_priority_;
  }
  // Keeps a row if its priority per byte is above the least of those kept, which then go.
  void offer(RowCache::Origin origin, const EncodedRow& row, float priority, Duals& duals);
  void set_priority(size_t number, float priority) {
    priorities_[number] = priority / static_cast<float>(cache_.bytes_of(number));
  }

  // Those that are not clearly at a bound.
  bool active(size_t number) const { return active_[number] != 0; }
  void set_at_bound(size_t number) {
    if (active(number)) active_work_ -= work_of(number);
    active_[number] = 0;
  }

  // Kept rows are worked on for as long as a unit of work earns more of the dual there than on fresh rows, whose
  // reading counts as well: the work due grows with that on fresh rows, faster or slower as the last rounds were worth
  // it. `idle`: how many seconds go by unused for each second of work, so much less does work cost.
  void set_idle(double idle) { idle_ = idle; }
  void worked_on_fresh(const Progress& progress);
  bool round_is_due() const;
  void worked_on_kept(const Progress& progress);
  void stop_rounds() { work_due_ = 0; }

  // Of the last round over kept rows: the largest and smallest projected gradient.
  double top = 0;
  double bottom = 0;

  void save(FieldWriter& to) const;
  void restore(FieldReader& from);

 private:
  static void visit_fields(auto& self, auto&& field) {
    field("active", std::span(self.active_));
    field("priorities", std::span(self.priorities_));
    field("least_priority", self.least_priority_);
    field("fresh", self.fresh_);
    field("work_due", self.work_due_);
    field("effort", self.effort_);
    field("top", self.top);
    field("bottom", self.bottom);
  }
  void evict(Duals& duals);
  uint64_t work_of(size_t number) const { return cache_.nonzeros(number) + kRowWork; }
  void count_work();

  bool add(RowCache::Origin origin, const EncodedRow& row) {
    return cache_.size() < most_rows_ && cache_.add(origin, row);
  }

  RowCache cache_;
  uint64_t most_rows_ = 0;
  std::vector<float> priorities_;  // of the rows in cache_, for each of their bytes
  std::vector<uint8_t> active_;
  uint64_t active_work_ = 0;  // of a round over the active ones
  float least_priority_ = 0;  // what a row must have to be kept
  Progress fresh_;            // of fresh rows since kept ones were last worked on
  double work_due_ = 0;       // work on kept rows that is due
  double effort_ = 1;         // work on kept rows for each unit of work on fresh ones
  double idle_ = 0;
};

}  // namespace linblock
