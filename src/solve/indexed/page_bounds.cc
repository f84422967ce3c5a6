#include "solve/indexed/page_bounds.h"

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

size_t PageBounds::most_looks(size_t weights) {
  return std::clamp<size_t>(kBytesForLooks / sizeof(double) / std::max<size_t>(1, weights), 2, kMostLooks);
}

void PageBounds::move_to(const std::vector<double>& weights) {
  at_ = weights;
  for (size_t i = 0; i < anchors_.size(); ++i) distances_[i] = way(anchors_[i], at_);
}

bool PageBounds::is_due(uint32_t page, bool thorough) const {
  const PageBound& bound = bounds_[page];
  if (!thorough && bound.far != 0 && bound.out_rows == 0) return false;
  return bound.safe_radius < 0 || bound.out_until < anchor_moved_ || bound.safe_radius < distances_[bound.looked_at];
}

uint16_t PageBounds::this_look() {
  if (!anchors_.empty() && distances_.back() == 0) return static_cast<uint16_t>(anchors_.size() - 1);
  if (anchors_.size() == most_looks(at_.size())) {
    // The two oldest become one: what was true around the first is true in a smaller part of it around the second.
    const double apart = way(anchors_[0], anchors_[1]);
    for (PageBound& bound : bounds_) {
      if (bound.looked_at == 0)
        bound.safe_radius -= apart;
      else
        --bound.looked_at;
    }
    anchors_.erase(anchors_.begin());
    distances_.erase(distances_.begin());
  }
  anchors_.push_back(at_);
  distances_.push_back(0);
  return static_cast<uint16_t>(anchors_.size() - 1);
}

void PageBounds::put(uint32_t page, PageBound bound) {
  bound.looked_at = this_look();
  bounds_[page] = bound;
}

uint64_t PageBounds::outliers() const {
  uint64_t sum = 0;
  for (const PageBound& bound : bounds_) sum += bound.out_rows;
  return sum;
}

double PageBounds::out_cost() const {
  double sum = 0;
  for (const PageBound& bound : bounds_) sum += bound.out_cost;
  return sum;
}

void PageBounds::begin_returns(const std::vector<double>& weights) {
  ways_.resize(anchors_.size());
  for (size_t i = 0; i < anchors_.size(); ++i) ways_[i] = way(anchors_[i], weights);
}

void PageBounds::give_back(uint32_t page, double slack, double norm) {
  PageBound& bound = bounds_[page];
  bound.safe_radius = std::min(bound.safe_radius, slack / std::max(norm, kShortest) - ways_[bound.looked_at]);
  if (slack < kFar) bound.far = 0;
}

void PageBounds::give_back_outlier(uint32_t page, double slack, double norm, double cost) {
  PageBound& bound = bounds_[page];
  bound.out_until = std::min(bound.out_until, anchor_moved_ + slack / std::max(norm, kShortest));
  bound.out_cost += cost;
  ++bound.out_rows;
}

void PageBounds::save(FieldWriter& to) const {
  visit_fields(*this, to);
  for (size_t i = 0; i < anchors_.size(); ++i) to(numbered("look", i), anchors_[i]);
}

void PageBounds::restore(FieldReader& from) {
  visit_fields(*this, from);
  if (distances_.size() > most_looks(at_.size())) from.refuse_value("distances");
  anchors_.assign(distances_.size(), std::vector<double>(at_.size()));
  for (size_t i = 0; i < anchors_.size(); ++i) from(numbered("look", i), std::span(anchors_[i]));
  for (const PageBound& bound : bounds_) {
    const bool never = bound.looked_at == 0 && bound.safe_radius < 0;
    if (!never && bound.looked_at >= anchors_.size()) from.refuse_value("pages.looked_at");
  }
}

}  // namespace linblock
