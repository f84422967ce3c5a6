// Each block solved on its own, and the models averaged (average.cc).
#pragma once

#include "solve/core/method.h"

namespace linblock {

struct Average {
  static constexpr std::string_view kName = "average";
  static constexpr std::string_view kHelp = "a model for each block, averaged";
  static constexpr std::string_view kNeeds = "any loss";
  template <Loss L>
  static constexpr bool kSupports = true;
  static constexpr Abilities kAbilities = {};

  static constexpr auto options() { return std::tuple{}; }
  std::string check(const AnyLoss&) const { return {}; }

  Plan plan(const Problem& problem, const SolveOptions& options, const Context& context) const;
  std::unique_ptr<Solver> make(const Setup& setup) const;
};

}  // namespace linblock
