#include "solve/dual/working_set.h"

#include <algorithm>
#include <array>
#include <bit>

namespace linblock {

namespace {

constexpr double kEffortStep = 1.3;
constexpr double kLeastEffort = 0.1;
constexpr double kMostEffort = 6;
constexpr double kKeptAtEviction = 0.8;  // of the kept bytes

// Classes of priority, eight to a power of two: a sort would cost more than the rows.
constexpr unsigned kClassShift = 20;
constexpr uint32_t kClasses = 2048;
uint32_t class_of(float priority) { return std::bit_cast<uint32_t>(priority) >> kClassShift; }

}  // namespace

WorkingSet::WorkingSet(const Store& store, uint64_t bytes, uint64_t rows, const std::vector<Chunk>* resident)
    : cache_(store, bytes, resident), most_rows_(std::max<uint64_t>(1, rows)) {}

void WorkingSet::begin_pass() {
  least_priority_ = 0;
  std::fill(active_.begin(), active_.end(), uint8_t{1});
  count_work();
}

void WorkingSet::count_work() {
  active_work_ = 0;
  for (size_t i = 0; i < cache_.size(); ++i)
    if (active(i)) active_work_ += work_of(i);
}

void WorkingSet::offer(RowCache::Origin origin, const EncodedRow& row, float priority, Duals& duals) {
  const float value = priority / static_cast<float>(cache_.bytes_of(row));
  if (value <= least_priority_) return;
  if (!add(origin, row)) {
    evict(duals);
    if (value <= least_priority_ || !add(origin, row)) return;
  }
  priorities_.push_back(value);
  active_.push_back(1);
  active_work_ += work_of(cache_.size() - 1);
  duals.passes_out(origin.chunk)[origin.row] |= kMark;
}

// The rows of least priority go, and rows of no higher priority do not come in again in this pass.
void WorkingSet::evict(Duals& duals) {
  std::array<uint64_t, kClasses> bytes{};
  for (size_t i = 0; i < cache_.size(); ++i) bytes[class_of(priorities_[i])] += cache_.bytes_of(i);
  // Of the memory, or of what the rows take where their number is the limit.
  const uint64_t full = cache_.size() < most_rows_ ? cache_.capacity() : cache_.used();
  auto room = static_cast<uint64_t>(kKeptAtEviction * static_cast<double>(full));
  uint32_t least = kClasses - 1;
  while (least > 0 && bytes[least] <= room) room -= bytes[least--];
  least_priority_ = std::bit_cast<float>((least + 1) << kClassShift);
  std::vector<uint8_t> keep(cache_.size());
  size_t kept = 0;
  for (size_t i = 0; i < cache_.size(); ++i) {
    const uint32_t priority_class = class_of(priorities_[i]);
    // Of the class on the border, as many as fit.
    keep[i] = priority_class > least || (priority_class == least && cache_.bytes_of(i) <= room);
    if (priority_class == least && keep[i] != 0) room -= cache_.bytes_of(i);
    const RowCache::Origin origin = cache_.origin(i);
    if (keep[i] != 0) {
      active_[kept] = active_[i];
      priorities_[kept++] = priorities_[i];
    } else {
      duals.passes_out(origin.chunk)[origin.row] &= static_cast<uint8_t>(~kMark);
    }
  }
  priorities_.resize(kept);
  active_.resize(kept);
  cache_.keep(keep);
  count_work();
}

void WorkingSet::worked_on_fresh(const Progress& progress) {
  fresh_.gain += progress.gain;
  fresh_.work += progress.work;
  work_due_ += effort_ * progress.work;
}

bool WorkingSet::round_is_due() const { return active_work_ > 0 && work_due_ >= static_cast<double>(active_work_); }

void WorkingSet::worked_on_kept(const Progress& progress) {
  work_due_ -= progress.work;
  const bool pays = progress.rate() * (1 + idle_) > fresh_.rate();
  effort_ = std::clamp(pays ? effort_ * kEffortStep : effort_ / kEffortStep, kLeastEffort, kMostEffort * (1 + idle_));
  if (!pays) work_due_ = 0;
  fresh_ = {fresh_.gain / 2, fresh_.work / 2};  // what was long ago counts little
}

void WorkingSet::save(FieldWriter& to) const {
  to("cache", cache_);
  visit_fields(*this, to);
}

void WorkingSet::restore(FieldReader& from) {
  from("cache", cache_);
  if (!cache_.has_possible_origins()) from.refuse_value("cache.rows.origin");
  active_.resize(cache_.size());
  priorities_.resize(cache_.size());
  visit_fields(*this, from);
  count_work();
}

}  // namespace linblock
