// What a person sees while a model is trained.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "cli/show/terminal.h"
#include "cli/show/verdict.h"
#include "solve/core/solver.h"

namespace linblock::cli {

// What is known after a pass. Of several tasks the objectives are added up, and the gap is the largest.
struct Estimate {
  double objective = 0;
  double gap = INFINITY;
  size_t tasks = 1;

  std::string words() const {
    const std::string known = (gap < kLargeGap ? "about " : "") + gap_percent(gap);
    if (tasks == 1) return fmt::format("objective {:.6g}, gap {}", objective, known);
    return fmt::format("sum of {} objectives {:.6g}, largest gap {}", tasks, objective, known);
  }
};

// The line that says how training goes, and when it may be done.
class TrainingProgress {
 public:
  TrainingProgress(const Terminal& terminal, double tolerance) : bar_(terminal, "training"), tolerance_(tolerance) {}

  // Of several tasks that are trained together.
  void begin(size_t tasks) { known_ = {.tasks = tasks}; }

  void block(const BlockReport& block) {
    if (block.block == 1 || block.pass != pass_) begin_pass(block);
    rows_ += block.rows;
    bytes_ += block.costs.bytes;
    const double elapsed = std::max(block.seconds - pass_begin_, 1e-9);
    const double share = static_cast<double>(block.block) / static_cast<double>(block.blocks);
    std::string words = fmt::format("pass {}", block.pass);
    words += left(elapsed / share * (1 - share));
    const auto a_second = [&](uint64_t count) { return static_cast<uint64_t>(static_cast<double>(count) / elapsed); };
    words += fmt::format(", {} rows/s{}", grouped(a_second(rows_)), bytes_ > 0 ? "" : " from memory");
    if (bytes_ > 0) words += fmt::format(", {}/s", human_bytes(a_second(bytes_)));
    if (known_.objective > 0) words += ", " + known_.words();
    bar_.show(share, words);
  }
  void pass(const PassReport& pass) {
    if (pass.truncated) return bar_.finish();  // a reading that found outliers: the convex problem is another now
    // Of several tasks a certificate is only that of those that were due.
    const double gap = pass.certified && known_.tasks == 1 ? pass.certified->gap() : pass.gap_estimate();
    pass_seconds_ = pass.seconds - pass_begin_;
    // As if the gap went on falling as it did.
    passes_left_.reset();
    if (gap <= tolerance_)
      passes_left_ = 0;
    else if (gap < known_.gap && std::isfinite(known_.gap))
      passes_left_ = std::min(1000.0, std::ceil(std::log(gap / tolerance_) / std::log(known_.gap / gap)) - 1);
    known_.gap = gap;
    known_.objective = pass.primal_estimate;
    bar_.finish();
  }

  void finish() { bar_.finish(); }

 private:
  // Nothing is said where it is not known, or less than a second.
  std::string left(double seconds_of_pass) const {
    const double all = seconds_of_pass + passes_left_.value_or(0) * pass_seconds_;
    if (all < 1) return "";
    return fmt::format(", about {} left{}", duration(all), passes_left_ ? "" : " of this pass");
  }

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
  std::optional<double> passes_left_;
  Estimate known_;
  uint64_t rows_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace linblock::cli
