// How many rows of a list are stepped along at the same weights, and how careful those steps are.
//
// Steps of one batch do not see each other. What that costs is measured in every batch: its interference is
// |u|^2 / sum of d_i^2 |x_i|^2, where u = sum of d_i y_i x_i is what the batch adds to the weights. It is 1 where rows
// have no features in common, about 1.05 where passes begin to be lost, and above 2 the dual can fall. The size follows
// it, within the noise of its mean; and steps are shorter by the mean of it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace linblock {

class BatchSize {
 public:
  static constexpr uint64_t kMost = 512;
  static constexpr uint64_t kLeast = 8;

  // `fixed`: it stays as it is.
  explicit BatchSize(uint64_t rows = 1, bool fixed = false) : rows_(rows), fixed_(fixed) {}

  // 1: rows are stepped along one by one.
  uint64_t rows() const { return rows_; }
  // The curvature of a step is multiplied by it.
  double damping() const { return std::max(1.0, recent_); }

  // Of a batch of this size.
  void add(double interference) {
    if (!std::isfinite(interference)) interference = kLost;
    recent_ += kWeightOfLast * (std::clamp(interference, 0.0, kLost) - recent_);
    ++samples_;
    const double before = interference - mean_;
    mean_ += before / static_cast<double>(samples_);
    squares_ += before * (interference - mean_);
    if (fixed_ || samples_ < kFewSamples) return;
    const auto count = static_cast<double>(samples_);
    const double error = std::sqrt(squares_ / (count - 1) / count);
    const double surely = mean_ - 2 * error;
    if (rows_ == kLeast && surely > kTooMuch)
      change(1);
    else if (rows_ > kLeast && surely > kCosts)
      shrink();
    else if (rows_ < kMost && samples_ >= patience_ && mean_ + error < kFree)
      change(std::min(kMost, 2 * rows_));
    else if (samples_ >= kMostSamples)
      forget();
  }

  static void visit_fields(auto& self, auto&& field) {
    field("rows", self.rows_);
    field("fixed", self.fixed_);
    field("recent", self.recent_);
    field("samples", self.samples_);
    field("mean", self.mean_);
    field("squares", self.squares_);
    field("patience", self.patience_);
  }
  // A checkpoint may hold anything.
  bool is_possible() const {
    return rows_ >= 1 && rows_ <= kMost && std::isfinite(recent_) && std::isfinite(mean_) && std::isfinite(squares_);
  }

 private:
  static constexpr double kFree = 1.02;
  static constexpr double kCosts = 1.05;
  static constexpr double kTooMuch = 1.3;
  static constexpr double kLost = 16;
  static constexpr double kWeightOfLast = 0.2;
  static constexpr uint64_t kFewSamples = 4;
  static constexpr uint64_t kMostSamples = 32;

  void shrink() {
    patience_ = std::min<uint64_t>(4 * patience_, uint64_t{1} << 20);
    change(std::max(kLeast, rows_ / 2));
  }
  void change(uint64_t rows) {
    recent_ = 1 + (recent_ - 1) * static_cast<double>(rows) / static_cast<double>(rows_);
    rows_ = rows;
    forget();
  }
  void forget() {
    samples_ = 0;
    mean_ = squares_ = 0;
  }

  uint64_t rows_;
  bool fixed_;
  double recent_ = 1;  // interference
  uint64_t samples_ = 0;
  double mean_ = 0;
  double squares_ = 0;     // of the differences to the mean, added up
  uint64_t patience_ = 8;  // samples before a larger size is tried
};

}  // namespace linblock
