// Two methods, one after the other: dual descent, and newton if it turns out to be too slow (second_method.cc).
#pragma once

#include <memory>

#include "solve/core/pass.h"

namespace linblock {

// Whether dual descent should give way after this pass, from the gaps that passes estimate: the same gaps, the same
// answer. No clock is read.
class Slowness {
 public:
  static constexpr int kFirstCheck = 64;     // passes; then twice as many, and so on
  static constexpr double kMostAhead = 500;  // passes, at the rate of those since half as many

  // After each pass that has an estimate, in order.
  void see(int pass, double gap, double tolerance);
  bool is_too_slow() const { return too_slow_; }

  static void visit_fields(auto& self, auto&& field) {
    field("best", self.best_);
    field("best_before", self.best_before_);
    field("next_check", self.next_check_);
    field("too_slow", self.too_slow_);
  }

 private:
  double best_ = 1e300;         // gap so far
  double best_before_ = 1e300;  // at the check before, or after half as many passes as the first
  int next_check_ = kFirstCheck / 2;
  bool too_slow_ = false;
};

// `rows` are held anew for newton. The setup's method is dual.
std::unique_ptr<Solver> make_changing(const Setup& setup, Rows& rows);

}  // namespace linblock
