// Rows that are clearly at a bound are left out of a few passes. How far out "clearly" is follows from the violations
// of the pass before; while a row rests, its loss counts as it was when it was last seen, and the certificate sees it
// anyway.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <utility>

namespace linblock {

class Shrinking {
 public:
  // Losses, in this pass, of the rows that rest. Rows shrink only if `allowed`.
  double begin_pass(int pass, bool allowed) {
    pass_ = static_cast<size_t>(pass);
    far_out_ = violations_ == 0 || !allowed ? std::numeric_limits<double>::infinity()
                                            : kFarOut * violation_ / static_cast<double>(violations_);
    violation_ = 0;
    violations_ = 0;
    return std::exchange(losses_[pass_ % losses_.size()], 0);
  }

  // Of a row that is not at a bound.
  void add_violation(double violation) {
    violation_ += violation;
    ++violations_;
  }
  bool may_shrink(double beyond_bound) const { return beyond_bound > far_out_; }
  // `passes`: that the row is still to miss; its highest bit is not ours.
  void shrink(uint8_t& passes, double loss) {
    passes = static_cast<uint8_t>((passes & 0x80U) | kPasses);
    for (size_t later = 1; later <= kPasses; ++later) losses_[(pass_ + later) % losses_.size()] += loss;
  }

  static void visit_fields(auto& self, auto&& field) {
    field("pass", self.pass_);
    field("violation", self.violation_);
    field("violations", self.violations_);
    field("far_out", self.far_out_);
    field("losses", self.losses_);
  }

 private:
  static constexpr uint8_t kPasses = 2;
  static constexpr double kFarOut = 2;  // so many times the mean violation

  size_t pass_ = 0;
  double violation_ = 0;     // of this pass, added up ...
  uint64_t violations_ = 0;  // ... over so many rows
  double far_out_ = std::numeric_limits<double>::infinity();
  std::array<double, 4> losses_ = {};  // by the pass that rows miss, modulo 4
};

}  // namespace linblock
