#include "store/text/utf8.h"

namespace linblock {

CodePoint first_code_point(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xC2 && lead < 0xE0   ? 2
                       : (lead & 0xF0) == 0xE0       ? 3
                       : lead >= 0xF0 && lead < 0xF5 ? 4
                                                     : 0;
  if (bytes == 0 || text.size() < bytes) return {};
  char32_t value = lead & (0x7F >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = (value << 6) | (byte(i) & 0x3F);
  }
  const bool overlong = (bytes == 3 && value < 0x800) || (bytes == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value < 0xE000;
  if (overlong || surrogate || value > 0x10FFFF) return {};
  return {value, bytes};
}

bool is_control(char32_t value) { return value < 32 || (value >= 127 && value < 160); }

}  // namespace linblock
