// Coordinate descent on the primal, feature by feature (primal.cc). Reads the store's columns.
#pragma once

#include "solve/columns/column_order.h"
#include "solve/core/method.h"

namespace linblock {

// How the logistic loss computes its exponentials.
enum class Exponential {
  automatic,  // stored where the first features have equal values, else fast
  stored,     // e^(w.x) is kept for each row: a feature whose values are equal needs but one
  fast,       // of a bounded error (base/exponential.h)
  library,
};

constexpr std::array<std::pair<std::string_view, Exponential>, 4> choices(Exponential) {
  return {{{"auto", Exponential::automatic},
           {"stored", Exponential::stored},
           {"fast", Exponential::fast},
           {"library", Exponential::library}}};
}

struct Primal {
  static constexpr std::string_view kName = "primal";
  static constexpr std::string_view kHelp = "coordinate descent over features";
  static constexpr std::string_view kNeeds = "a smooth loss";
  template <Loss L>
  static constexpr bool kSupports = SmoothLoss<L>;
  static constexpr Abilities kAbilities = {
      .reads = Reads::columns, .start = Start::weights, .truncates = Truncates::around, .primal = true};

  ColumnOrder order = ColumnOrder::permuted;
  Exponential exponential = Exponential::automatic;

  static constexpr auto options() {
    return std::tuple{
        option("order", &Primal::order, "NAME", "Order of the features: permuted, cyclic, once or online"),
        option("exponential", &Primal::exponential, "NAME",
               "Exponentials of the logistic loss: auto, stored, fast or library")};
  }
  std::string check(const AnyLoss&) const { return {}; }

  Plan plan(const Problem& problem, const SolveOptions& options, const Context& context) const;
  std::unique_ptr<Solver> make(const Setup& setup) const;
};

}  // namespace linblock
