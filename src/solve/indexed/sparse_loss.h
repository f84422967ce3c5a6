// Losses whose rows beyond flat_from() have no part in the answer.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <type_traits>
#include <variant>

#include "objective/losses/losses.h"

namespace linblock {

template <class Visitor>
auto visit_sparse(const AnyLoss& any_loss, const Visitor& visitor) {
  using Result = std::invoke_result_t<const Visitor&, const Hinge&>;
  return std::visit(
      [&]<class L>(const L& loss) -> Result {
        if constexpr (L::kSparseDuals)
          return visitor(loss);
        else
          throw std::logic_error(fmt::format("with the {} loss every row matters", L::kName));
      },
      any_loss);
}

// The margin from which on a row has no part in the answer.
inline double flat_from(const AnyLoss& any_loss) {
  return std::visit([](const auto& loss) { return loss.flat_from(); }, any_loss);
}

}  // namespace linblock
