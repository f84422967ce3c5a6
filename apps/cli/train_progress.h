// What a person sees while a model is trained.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "base/bytes.h"
#include "cli/terminal.h"
#include "solve/solver.h"

namespace linblock::cli {

// The line that says how training goes, and when it may be done.
class TrainingProgress {
 public:
  TrainingProgress(const Terminal& terminal, double tolerance) : bar_(terminal, "training"), tolerance_(tolerance) {}

  void block(const BlockReport& block) {
    if (block.block == 1 || block.pass != pass_) begin_pass(block);
    rows_ += block.rows;
    bytes_ += block.costs.bytes;
    const double elapsed = std::max(block.seconds - pass_begin_, 1e-9);
    const double share = static_cast<double>(block.block) / static_cast<double>(block.blocks);
    std::string words = fmt::format("pass {}", block.pass);
    if (primal_ > 0) words += fmt::format(", objective {:.6g}, gap about {}", primal_, percent(gap_));
    words += fmt::format(", {}/s, {} rows/s, {} left",
                         human_bytes(static_cast<uint64_t>(static_cast<double>(bytes_) / elapsed)),
                         grouped(static_cast<uint64_t>(static_cast<double>(rows_) / elapsed)),
                         duration(elapsed / share * (1 - share) + passes_left_ * pass_seconds_));
    bar_.show(share, words);
  }
  void pass(const PassReport& pass) {
    if (pass.truncated) return bar_.finish();  // a reading that found outliers: the convex problem is another now
    const double gap = pass.certified ? pass.certified->gap() : pass.gap_estimate();
    pass_seconds_ = pass.seconds - pass_begin_;
    // As if the gap went on falling as it did.
    if (gap > tolerance_ && gap < gap_ && std::isfinite(gap_))
      passes_left_ = std::min(1000.0, std::ceil(std::log(gap / tolerance_) / std::log(gap_ / gap)) - 1);
    gap_ = gap;
    primal_ = pass.primal_estimate;
    bar_.finish();
  }

  // Below nothing, which rounding may give, is nothing.
  void finish() { bar_.finish(); }

  static std::string percent(double share) {
    if (!std::isfinite(share) || share >= 10) return "large";
    const double hundredths = 100 * std::max(0.0, share);
    return share < 1 ? fmt::format("{:.3g}%", hundredths) : fmt::format("{:.0f}%", hundredths);
  }

 private:
  void begin_pass(const BlockReport& block) {
    pass_ = block.pass;
    pass_begin_ = block.seconds - block.solve_seconds - block.costs.wait_seconds;
    rows_ = 0;
    bytes_ = 0;
  }

  ProgressBar bar_;
  double tolerance_;
  int pass_ = 0;
  double pass_begin_ = 0;
  double pass_seconds_ = 0;
  double passes_left_ = 0;
  double gap_ = INFINITY;
  double primal_ = 0;
  uint64_t rows_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace linblock::cli
