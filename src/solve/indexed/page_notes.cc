#include "solve/indexed/page_notes.h"

#include <algorithm>

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

void PageNotes::save(FieldWriter& to) const {
  visit_fields(*this, to);
  for (size_t i = 0; i < looks_.size(); ++i) to(numbered("look", i), looks_[i]);
}

void PageNotes::restore(FieldReader& from) {
  visit_fields(*this, from);
  if (distances_.size() > most_looks(at_.size())) from.refuse_value("distances");
  looks_.assign(distances_.size(), std::vector<double>(at_.size()));
  for (size_t i = 0; i < looks_.size(); ++i) from(numbered("look", i), std::span(looks_[i]));
  for (const PageNote& note : notes_) {
    const bool never = note.looked_at == 0 && note.quiet_within < 0;
    if (!never && note.looked_at >= looks_.size()) from.refuse_value("pages.looked_at");
  }
}

}  // namespace linblock
