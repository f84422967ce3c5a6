// All classes at once, with the hinge loss of Crammer and Singer (crammer_singer.cc); blocks are recomposed in each
// pass. A task's weights are interleaved, weights[feature * classes + class], and its duals are Solution::class_duals.
#pragma once

#include <concepts>

#include "solve/core/method.h"

namespace linblock {

struct CrammerSinger {
  static constexpr std::string_view kName = "crammer-singer";
  static constexpr std::string_view kHelp = "all classes at once";
  static constexpr std::string_view kNeeds = "the hinge loss";
  template <Loss L>
  static constexpr bool kSupports = std::same_as<L, Hinge>;
  static constexpr Abilities kAbilities = {.tasks = TaskKind::all_classes, .liblinear_name = "MCSVM_CS"};

  int inner = 1;  // iterations on a block

  static constexpr auto options() {
    return std::tuple{option("inner", &CrammerSinger::inner, "N", "Inner iterations on each block", {.from = 1})};
  }
  std::string check(const AnyLoss&) const { return {}; }

  Plan plan(const Problem& problem, const SolveOptions& options, const Context& context) const;
  std::unique_ptr<Solver> make(const Setup& setup) const;
};

}  // namespace linblock
