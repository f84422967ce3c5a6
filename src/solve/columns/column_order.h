// In which order the methods over columns visit the features.
#pragma once

#include <array>
#include <string_view>
#include <utility>

namespace linblock {

enum class ColumnOrder {
  permuted,  // drawn anew for each pass
  cyclic,    // as they are numbered
  once,      // drawn once, then the same in each pass
  online,    // each step draws a feature anew
};

constexpr std::array<std::pair<std::string_view, ColumnOrder>, 4> choices(ColumnOrder) {
  return {{{"permuted", ColumnOrder::permuted},
           {"cyclic", ColumnOrder::cyclic},
           {"once", ColumnOrder::once},
           {"online", ColumnOrder::online}}};
}

}  // namespace linblock
