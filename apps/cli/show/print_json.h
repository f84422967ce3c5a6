// What --json prints: one line on stdout.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace linblock::cli {

// Names of files need not be UTF-8, and JSON must be: what is not becomes a replacement character.
inline std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

inline void print_line(const nlohmann::ordered_json& json) { fmt::print("{}\n", json_text(json)); }

}  // namespace linblock::cli
