// Dual coordinate descent on blocks of rows (dual.cc).
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "base/error.h"
#include "solve/core/method.h"
#include "solve/dual/batch_size.h"
#include "store/blocks/schedule.h"

namespace linblock {

// Sweeps over a block: a number, as many as the speed of the disk suggests, or until the block is solved by LIBLINEAR's
// rule.
struct InnerIterations {
  int count = 0;  // 0: auto
  bool converge = false;

  constexpr InnerIterations(int fixed = 0) : count(fixed) {}
  static constexpr InnerIterations until_solved() {
    InnerIterations inner;
    inner.converge = true;
    return inner;
  }

  bool is_auto() const { return count == 0 && !converge; }
  static std::optional<InnerIterations> read(std::string_view text) {
    if (text == "auto") return InnerIterations{};
    if (text == "converge") return until_solved();
    const std::optional<int> count = Text<int>::read(text, {.from = 1});
    return count ? std::optional(InnerIterations(*count)) : std::nullopt;
  }
  std::string show() const { return converge ? "converge" : count == 0 ? "auto" : std::to_string(count); }
  static std::string what() { return "a number of inner iterations, auto or converge"; }
};

constexpr std::array<std::pair<std::string_view, Schedule>, 2> choices(Schedule) {
  return {{{"recomposed", Schedule::recomposed}, {"fixed", Schedule::fixed}}};
}
constexpr std::array<std::pair<std::string_view, BlockSequence>, 2> choices(BlockSequence) {
  return {{{"permuted", BlockSequence::permuted}, {"sequential", BlockSequence::sequential}}};
}

struct Dual {
  static constexpr std::string_view kName = "dual";
  static constexpr std::string_view kHelp = "dual coordinate descent on blocks of rows";
  static constexpr std::string_view kNeeds = "any loss";
  template <Loss L>
  static constexpr bool kSupports = true;
  static constexpr Abilities kAbilities = {.start = Start::duals, .truncates = Truncates::around};

  Schedule schedule = Schedule::recomposed;
  std::optional<size_t> blocks = {};  // of the fixed schedule; none: as many as the memory asks for
  BlockSequence block_order = BlockSequence::permuted;
  InnerIterations inner = {};
  std::optional<double> cache_fraction = {};  // of the memory for rows, for the working set
  uint64_t disk_rate = uint64_t{1} << 30;     // bytes per second, for `inner` auto
  std::optional<uint64_t> batch = {};         // rows that are stepped along at the same weights

  static constexpr auto options() {
    return std::tuple{
        option("schedule", &Dual::schedule, "NAME", "New blocks in each pass, or always the same: recomposed or fixed"),
        option("blocks", &Dual::blocks, "M", "Number of blocks, with the fixed schedule", {.from = 1}),
        option("block_order", &Dual::block_order, "NAME",
               "Order of blocks, with the fixed schedule: permuted or sequential"),
        option("inner", &Dual::inner, "N", "Inner iterations on each block: N, auto or converge"),
        option("cache_fraction", &Dual::cache_fraction, "F", "Share of the row memory for the working set: F or auto",
               {.from = 0, .below = 1}),
        option_as<SizeText>("disk_rate", &Dual::disk_rate, "SIZE",
                            "Disk speed per second, for `inner` auto: more work per block if it is low"),
        option("batch", &Dual::batch, "N", "Rows per batch, shared by all threads: N, auto, or 1 for single steps",
               {.from = 1, .to = BatchSize::kMost})};
  }
  std::string check(const AnyLoss&) const {
    if (disk_rate == 0) return library_text("`disk_rate` must be at least 1 byte per second");
    if (schedule == Schedule::fixed) return {};
    constexpr const char* kWhy = "other blocks are drawn anew for each pass";
    if (blocks) return library_text("`blocks` needs `schedule` fixed: {}", kWhy);
    if (block_order != BlockSequence::permuted) return library_text("`block_order` needs `schedule` fixed: {}", kWhy);
    return {};
  }

  Plan plan(const Problem& problem, const SolveOptions& options, const Context& context) const;
  std::unique_ptr<Solver> make(const Setup& setup) const;
};

}  // namespace linblock
