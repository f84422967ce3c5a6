// What one task of indexed block descent knows of each page without reading it (the paper's shrinking, section 4.3,
// made exact): how far the weights may move from where the page was looked at before a row in it can violate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"

namespace linblock {

constexpr double kFar = 1;                // beyond the margin: such rows are not looked at again before the check
constexpr double kMarginRounding = 1e-9;  // of margins, in double, and to spare

// Of rows that are not active, as of the last look at their page.
struct PageBound {
  double safe_radius = -1;  // none violates where the weights are no farther from those that were looked at
  double out_until = -1;    // its outliers are outliers as long as the anchor has moved no further
  double out_cost = 0;      // of its outliers
  uint32_t out_rows = 0;
  uint16_t looked_at = 0;  // from which weights: their number among the looks
  uint16_t far = 0;        // 1: all of them are far beyond the margin

  static void visit_fields(auto& self, auto&& field) {
    field("safe_radius", self.safe_radius);
    field("out_until", self.out_until);
    field("out_cost", self.out_cost);
    field("out_rows", self.out_rows);
    field("looked_at", self.looked_at);
    field("far", self.far);
  }
};

class PageBounds {
 public:
  static size_t most_looks(size_t weights);
  static uint64_t bytes(uint64_t pages, size_t weights) {
    return pages * sizeof(PageBound) + most_looks(weights) * weights * sizeof(double);
  }

  PageBounds(size_t pages, size_t weights) : bounds_(pages), at_(weights) {}

  // Where margins are looked at.
  const std::vector<double>& at() const { return at_; }
  void move_to(const std::vector<double>& weights);
  // All ways that the anchor, where outliers are outliers, has gone.
  double anchor_moved() const { return anchor_moved_; }
  void move_anchor(double distance) { anchor_moved_ += distance * (1 + kMarginRounding); }

  size_t pages() const { return bounds_.size(); }
  // Not thorough: pages whose rows are all far are left alone.
  bool is_due(uint32_t page, bool thorough) const;
  // Of a look from where margins are looked at now.
  void put(uint32_t page, PageBound bound);
  uint64_t outliers() const;
  double out_cost() const;

  // Rows go back to their pages, all seen from the same weights: what is noted is made true for them too. `slack`: how
  // far beyond the margin the row is, or how far an outlier is from being none.
  void begin_returns(const std::vector<double>& weights);
  void give_back(uint32_t page, double slack, double norm);
  void give_back_outlier(uint32_t page, double slack, double norm, double cost);

  void save(FieldWriter& to) const;
  void restore(FieldReader& from);

 private:
  static void visit_fields(auto& self, auto&& field) {
    field("pages", std::span(self.bounds_));
    field("at", std::span(self.at_));
    field("distances", self.distances_);
    field("anchor_moved", self.anchor_moved_);
  }
  // The number of the weights at hand among the looks.
  uint16_t this_look();

  std::vector<PageBound> bounds_;
  std::vector<double> at_;
  // Weights from which pages were looked at, the latest last; how far at_ is from each, and where rows return from.
  std::vector<std::vector<double>> anchors_;
  std::vector<double> distances_;
  std::vector<double> ways_;
  double anchor_moved_ = 0;
};

}  // namespace linblock
