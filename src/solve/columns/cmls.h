// Coordinate descent over features with the conservative steps of Zhang and Oles (cmls.cc). Reads the store's columns.
#pragma once

#include "base/error.h"
#include "solve/columns/column_order.h"
#include "solve/core/method.h"

namespace linblock {

struct Cmls {
  static constexpr std::string_view kName = "cmls";
  static constexpr std::string_view kHelp = "coordinate descent over features with conservative steps";
  static constexpr std::string_view kNeeds = "the squared hinge";
  template <Loss L>
  static constexpr bool kSupports = std::same_as<L, SquaredHinge>;
  static constexpr Abilities kAbilities = {
      .reads = Reads::columns, .start = Start::weights, .truncates = Truncates::around, .primal = true};

  ColumnOrder order = ColumnOrder::cyclic;  // or permuted

  static constexpr auto options() {
    return std::tuple{option("order", &Cmls::order, "NAME", "Order of the features: cyclic or permuted")};
  }
  std::string check(const AnyLoss&) const {
    if (order == ColumnOrder::cyclic || order == ColumnOrder::permuted) return {};
    return library_text("cmls visits features in `order` cyclic or permuted: once and online are for primal");
  }

  Plan plan(const Problem& problem, const SolveOptions& options, const Context& context) const;
  std::unique_ptr<Solver> make(const Setup& setup) const;
};

}  // namespace linblock
