// A random part of the rows that fits in memory, solved there (subsample.cc).
#pragma once

#include "solve/core/method.h"

namespace linblock {

struct Subsample {
  static constexpr std::string_view kName = "subsample";
  static constexpr std::string_view kHelp = "a random part of the rows that fits in memory";
  static constexpr std::string_view kNeeds = "any loss";
  template <Loss L>
  static constexpr bool kSupports = true;
  static constexpr Abilities kAbilities = {};
  static constexpr uint32_t kChunksPerBlock = 16;

  std::optional<double> share = {};  // of the chunks; none: what fits

  static constexpr auto options() {
    return std::tuple{option("share", &Subsample::share, "F", "Share of the rows: F, or auto for what fits in memory",
                             {.above = 0, .to = 1})};
  }
  std::string check(const AnyLoss&) const { return {}; }

  Plan plan(const Problem& problem, const SolveOptions& options, const Context& context) const;
  std::unique_ptr<Solver> make(const Setup& setup) const;
};

}  // namespace linblock
