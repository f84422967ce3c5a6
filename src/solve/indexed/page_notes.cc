#include "solve/indexed/page_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "objective/double_weights.h"

namespace linblock {

namespace {

constexpr size_t kMostLooks = 64;
constexpr size_t kBytesForLooks = size_t{1} << 20;
constexpr double kShortest = 1e-300;  // a row of zeros: where the weights are does not matter to it

double way(const std::vector<double>& from, const std::vector<double>& to) {
  return distance(from, to) * (1 + kMarginRounding);
}

}  // namespace

size_t PageNotes::most_looks(size_t weights) {
  return std::clamp<size_t>(kBytesForLooks / sizeof(double) / std::max<size_t>(1, weights), 2, kMostLooks);
}

void PageNotes::move_to(const std::vector<double>& weights) {
  at_ = weights;
  for (size_t i = 0; i < looks_.size(); ++i) distances_[i] = way(looks_[i], at_);
}

bool PageNotes::is_due(uint32_t page, bool thorough) const {
  const PageNote& note = notes_[page];
  if (!thorough && note.far != 0 && note.out_rows == 0) return false;
  return note.quiet_within < 0 || note.out_until < anchor_moved_ || note.quiet_within < distances_[note.looked_at];
}

uint16_t PageNotes::this_look() {
  if (!looks_.empty() && distances_.back() == 0) return static_cast<uint16_t>(looks_.size() - 1);
  if (looks_.size() == most_looks(at_.size())) {
    // The two oldest become one: what was true around the first is true in a smaller part of it around the second.
    const double apart = way(looks_[0], looks_[1]);
    for (PageNote& note : notes_) {
      if (note.looked_at == 0)
        note.quiet_within -= apart;
      else
        --note.looked_at;
    }
    looks_.erase(looks_.begin());
    distances_.erase(distances_.begin());
  }
  looks_.push_back(at_);
  distances_.push_back(0);
  return static_cast<uint16_t>(looks_.size() - 1);
}

void PageNotes::put(uint32_t page, PageNote note) {
  note.looked_at = this_look();
  notes_[page] = note;
}

uint64_t PageNotes::outliers() const {
  uint64_t sum = 0;
  for (const PageNote& note : notes_) sum += note.out_rows;
  return sum;
}

double PageNotes::out_cost() const {
  double sum = 0;
  for (const PageNote& note : notes_) sum += note.out_cost;
  return sum;
}

void PageNotes::begin_returns(const std::vector<double>& weights) {
  ways_.resize(looks_.size());
  for (size_t i = 0; i < looks_.size(); ++i) ways_[i] = way(looks_[i], weights);
}

void PageNotes::give_back(uint32_t page, double slack, double norm) {
  PageNote& note = notes_[page];
  note.quiet_within = std::min(note.quiet_within, slack / std::max(norm, kShortest) - ways_[note.looked_at]);
  if (slack < kFar) note.far = 0;
}

void PageNotes::give_back_outlier(uint32_t page, double slack, double norm, double cost) {
  PageNote& note = notes_[page];
  note.out_until = std::min(note.out_until, anchor_moved_ + slack / std::max(norm, kShortest));
  note.out_cost += cost;
  ++note.out_rows;
}

void PageNotes::save(SnapshotWriter& to, const std::string& name) const {
  to.put(name + "pages", std::span<const PageNote>(notes_));
  to.put(name + "at", std::span<const double>(at_));
  for (size_t i = 0; i < looks_.size(); ++i)
    to.put(fmt::format("{}look {}", name, i), std::span<const double>(looks_[i]));
  to.put(name + "distances", std::span<const double>(distances_));
  to.put(name + "anchor moved", std::span<const double>(std::array{anchor_moved_}));
}

void PageNotes::restore(const SnapshotReader& from, const std::string& name) {
  from.take(name + "pages", std::span<PageNote>(notes_));
  from.take(name + "at", std::span<double>(at_));
  distances_.resize(from.count<double>(name + "distances"));
  from.take(name + "distances", std::span<double>(distances_));
  looks_.assign(distances_.size(), std::vector<double>(at_.size()));
  for (size_t i = 0; i < looks_.size(); ++i) from.take(fmt::format("{}look {}", name, i), std::span<double>(looks_[i]));
  from.take(name + "anchor moved", std::span<double>(&anchor_moved_, 1));
}

}  // namespace linblock
