// Newton steps from passes over the rows (newton.cc).
#pragma once

#include "solve/core/method.h"

namespace linblock {

struct Newton {
  static constexpr std::string_view kName = "newton";
  static constexpr std::string_view kHelp = "Newton's method";
  static constexpr std::string_view kNeeds = "any loss";
  template <Loss L>
  static constexpr bool kSupports = true;
  static constexpr Abilities kAbilities = {
      .start = Start::weights, .truncates = Truncates::around, .primal = true, .free_bias = true};

  static constexpr auto options() { return std::tuple{}; }
  std::string check(const AnyLoss&) const { return {}; }

  Plan plan(const Problem& problem, const SolveOptions& options, const Context& context) const;
  // Whether the plan has room for samples with which it needs few passes.
  static bool is_worth(const Problem& problem, const Plan& plan);
  std::unique_ptr<Solver> make(const Setup& setup) const;
};

}  // namespace linblock
