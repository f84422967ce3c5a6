// What --json prints: one line on stdout.
#pragma once

#include <fmt/format.h>

#include "base/json.h"

namespace linblock::cli {

inline void print_line(const Json& json) { fmt::print("{}\n", json.dump()); }

}  // namespace linblock::cli
