// Stochastic sub-gradient steps on the primal (pegasos.cc).
#pragma once

#include "solve/core/method.h"

namespace linblock {

// Rows per step: a number, or the whole block.
struct StepRows {
  size_t count = 1;  // 0: the whole block

  constexpr StepRows(size_t rows = 1) : count(rows) {}
  static std::optional<StepRows> read(std::string_view text) {
    if (text == "block") return StepRows(0);
    if (text == "row") return StepRows(1);
    const std::optional<size_t> count = Text<size_t>::read(text, {.from = 1});
    return count ? std::optional(StepRows(*count)) : std::nullopt;
  }
  std::string show() const { return count == 0 ? "block" : count == 1 ? "row" : std::to_string(count); }
  static std::string what() { return "block, row or a number of rows"; }
};

struct Pegasos {
  static constexpr std::string_view kName = "pegasos";
  static constexpr std::string_view kHelp = "stochastic sub-gradient steps; certifies nothing";
  static constexpr std::string_view kNeeds = "a loss that is zero beyond the margin";
  template <Loss L>
  static constexpr bool kSupports = L::kSparseDuals;
  static constexpr Abilities kAbilities = {.start = Start::steps, .certifies = false};

  StepRows step = {};

  static constexpr auto options() {
    return std::tuple{option("step", &Pegasos::step, "N", "Rows per step: block, row or N")};
  }
  std::string check(const AnyLoss&) const { return {}; }

  Plan plan(const Problem& problem, const SolveOptions& options, const Context& context) const;
  std::unique_ptr<Solver> make(const Setup& setup) const;
};

}  // namespace linblock
