// Code points of UTF-8 (RFC 3629).
#pragma once

#include <cstddef>
#include <string_view>

namespace linblock {

// The code point that a text begins with, and its bytes; 0 bytes: it is not UTF-8.
struct CodePoint {
  char32_t value = 0;
  size_t bytes = 0;
};

// `text` is not empty.
CodePoint first_code_point(std::string_view text);
bool is_control(char32_t value);

}  // namespace linblock
