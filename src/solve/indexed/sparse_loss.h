// Hinge and squared hinge: rows beyond the margin have no part in the answer. Logistic loss knows no such rows.
#pragma once

#include <type_traits>
#include <variant>

#include "base/error.h"
#include "objective/loss.h"

namespace linblock {

template <class Visitor>
auto visit_sparse(const AnyLoss& any, const Visitor& visitor) {
  using Result = std::invoke_result_t<const Visitor&, const Hinge&>;
  return std::visit(
      [&](const auto& loss) -> Result {
        if constexpr (std::is_same_v<std::decay_t<decltype(loss)>, Logistic>)
          fail(ErrorKind::usage, "with logistic loss every row matters: use --solver dual, or --loss squared-hinge");
        else
          return visitor(loss);
      },
      any);
}

}  // namespace linblock
