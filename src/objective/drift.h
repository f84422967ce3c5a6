// A bound on how far float weights have drifted from v = sum of alpha y x, of which they are the running sum.
//
// A step w_j <- fl(w_j + fl(c x_j)), c = fl(y d), is off by at most u (2 |d x_j| + |new w_j|), u = 2^-24. So the length
// of what a step adds to the drift is at most u (2 |d| |x| + W), where W >= |w|. W follows from the steps themselves:
// |w + d y x|^2 = |w|^2 + 2 d m + d^2 |x|^2 with the margin m = y w.x, which a step knows anyway. Nothing is added to
// the loops over nonzeros.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace linblock {

class DriftBound {
 public:
  static constexpr double kFloatUnit = 0x1p-24;
  static constexpr double kUnknown = std::numeric_limits<double>::infinity();

  // |v - w| is not above it. Steps since the last fold() are not in it.
  double value() const { return bound_; }
  void set(double bound) { bound_ = bound; }

  // |w| is below it, with room to spare: what roundings since the last fold() can add to |w|^2 is far less than its
  // largest value times 1e-4.
  double norm_bound() const { return 1.5 * std::sqrt(std::max(0.0, w2_) + 1e-4 * most_w2_); }

  // The weights have this squared length now.
  void begin(double squared_norm) {
    w2_ = squared_norm * (1 + kSlack);
    restart();
  }

  // alpha has changed by `change`: `margin` is y w.x before the step, as a float sum or better, `norm2` is |x|^2.
  void step(double change, double margin, double norm2, size_t nonzeros) {
    const double square = change * change * norm2;
    squares_ += square;
    w2_ += 2 * change * margin + square;
    most_w2_ = std::max(most_w2_, w2_);
    most_nonzeros_ = std::max<uint64_t>(most_nonzeros_, nonzeros);
    if (++steps_ == kMostSteps) fold();
  }

  // Puts the steps made so far into the bound. Where it happens shows in the last digits, so it belongs to the order
  // of the work.
  void fold() {
    if (steps_ == 0) return;
    const auto steps = static_cast<double>(steps_);
    const auto nonzeros = static_cast<double>(most_nonzeros_);
    // The sum of |d| |x|, by Cauchy and Schwarz.
    const double lengths = std::sqrt(steps * squares_) * (1 + kSlack);
    const double unit = kFloatUnit * (1 + kSlack);
    // A margin is a float sum in eight lanes, off by this part of |w| |x| at most.
    const double margins = (nonzeros / 8 + 8) * unit;
    // The largest |w| on the way, W: W^2 <= most + 2 W (margins lengths + E) + E^2, where E is the sum of all
    // roundings, E <= unit (2 lengths + steps W).
    const double share = steps * unit;
    const double factor = 1 - 2 * share - 2 * share * share;
    const double half = (margins + 2 * unit) * lengths;
    const double rest = std::max(0.0, most_w2_) + 8 * unit * unit * lengths * lengths;
    const double largest = (half + std::sqrt(half * half + factor * rest)) / factor * (1 + kSlack);
    const double roundings = unit * (2 * lengths + steps * largest) + steps * std::sqrt(nonzeros + 1) * 0x1p-147;
    bound_ = (bound_ + roundings) * (1 + 0x1p-50);
    // What |w|^2 can be at most.
    w2_ = std::max(0.0, w2_) + 2 * largest * (margins * lengths + roundings) + roundings * roundings;
    w2_ *= 1 + kSlack;
    restart();
  }

  // Of weights that are v itself, rounded to floats. `v_rounding`: how wrong v can be.
  static double of_rounded(double v_norm, double v_rounding, size_t weights) {
    return (kFloatUnit * v_norm + v_rounding) * (1 + kSlack) + std::sqrt(static_cast<double>(weights)) * 0x1p-149;
  }

  static void visit_fields(auto& self, auto&& field) {
    field("bound", self.bound_);
    field("w2", self.w2_);
    field("most_w2", self.most_w2_);
    field("squares", self.squares_);
    field("steps", self.steps_);
    field("most_nonzeros", self.most_nonzeros_);
  }

 private:
  static constexpr double kSlack = 1e-6;  // for the roundings of these sums themselves, which are in double
  static constexpr uint64_t kMostSteps = 65536;

  void restart() {
    most_w2_ = w2_;
    squares_ = 0;
    steps_ = 0;
    most_nonzeros_ = 0;
  }

  double bound_ = 0;
  double w2_ = 0;       // |w|^2, at most, but for the steps since the last fold()
  double most_w2_ = 0;  // since then
  double squares_ = 0;  // sum of d^2 |x|^2, likewise
  uint64_t steps_ = 0;
  uint64_t most_nonzeros_ = 0;
};

}  // namespace linblock
