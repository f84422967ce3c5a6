// Rows near the margin, found by the store's index (indexed.cc). Reads the store's index.
#pragma once

#include <array>

#include "base/error.h"
#include "solve/core/method.h"

namespace linblock {

// How a block of active rows is solved.
enum class BlockSolver { dual, newton };

constexpr std::array<std::pair<std::string_view, BlockSolver>, 2> choices(BlockSolver) {
  return {{{"dual", BlockSolver::dual}, {"newton", BlockSolver::newton}}};
}

struct Indexed {
  static constexpr std::string_view kName = "indexed";
  static constexpr std::string_view kHelp = "block coordinate descent on rows that an index finds";
  static constexpr std::string_view kNeeds = "a loss that is zero beyond the margin";
  template <Loss L>
  static constexpr bool kSupports = L::kSparseDuals;
  // The index is for models of few support vectors, and those are what truncated losses make.
  static constexpr Abilities kAbilities = {
      .reads = Reads::index, .truncates = Truncates::itself, .usual_truncation = 1};

  size_t query = 1000;
  BlockSolver block_solver = BlockSolver::dual;

  static constexpr auto options() {
    return std::tuple{option("query", &Indexed::query, "N", "Rows that a query of the index is to find", {.from = 1}),
                      option("block_solver", &Indexed::block_solver, "NAME",
                             "Solver of a block: dual, or newton with the squared hinge")};
  }
  std::string check(const AnyLoss& loss) const {
    if (block_solver == BlockSolver::dual || std::holds_alternative<SquaredHinge>(loss)) return {};
    return library_text("`block_solver` newton needs `loss` {}: other losses lack its curvature", SquaredHinge::kName);
  }

  Plan plan(const Problem& problem, const SolveOptions& options, const Context& context) const;
  std::unique_ptr<Solver> make(const Setup& setup) const;
};

}  // namespace linblock
