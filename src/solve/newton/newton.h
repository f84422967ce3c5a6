// Trust-region Newton steps from passes over the rows (newton.cc).
#pragma once

#include "solve/core/method.h"

namespace linblock {

struct Newton {
  static constexpr std::string_view kName = "newton";
  static constexpr std::string_view kHelp = "trust-region Newton method";
  static constexpr std::string_view kNeeds = "a smooth loss";
  template <Loss L>
  static constexpr bool kSupports = SmoothLoss<L>;
  static constexpr Abilities kAbilities = {.start = Start::weights, .truncates = Truncates::around, .primal = true};

  static constexpr auto options() { return std::tuple{}; }
  std::string check(const AnyLoss&) const { return {}; }

  Plan plan(const Problem& problem, const SolveOptions& options, const Context& context) const;
  std::unique_ptr<Solver> make(const Setup& setup) const;
};

}  // namespace linblock
