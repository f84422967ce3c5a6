// All classes at once, with the loss of multinomial logistic regression (softmax.cc). A task's weights are interleaved,
// weights[feature * classes + class].
#pragma once

#include <concepts>

#include "solve/core/method.h"

namespace linblock {

struct Softmax {
  static constexpr std::string_view kName = "softmax";
  static constexpr std::string_view kHelp = "all classes at once, with probabilities that add up to 1";
  static constexpr std::string_view kNeeds = "the logistic loss";
  template <Loss L>
  static constexpr bool kSupports = std::same_as<L, Logistic>;
  static constexpr Abilities kAbilities = {.tasks = TaskKind::all_classes,
                                           .start = Start::weights,
                                           .primal = true,
                                           .free_bias = true,
                                           .liblinear_name = "L2R_LR",
                                           .joint_probabilities = true};

  static constexpr auto options() { return std::tuple{}; }
  std::string check(const AnyLoss&) const { return {}; }

  Plan plan(const Problem& problem, const SolveOptions& options, const Context& context) const;
  std::unique_ptr<Solver> make(const Setup& setup) const;
};

}  // namespace linblock
