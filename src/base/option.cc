#include "base/option.h"

#include <fmt/format.h>

#include <cmath>

namespace linblock {

std::string join_words(const std::vector<std::string>& words, std::string_view last) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? std::string(last) : ", ") + words[i];
  return text;
}

std::string Range::words(bool whole) const {
  const bool has_end = std::isfinite(to) || std::isfinite(below);
  std::string text = whole ? "a whole number" : "a number";
  if (std::isfinite(from)) text += fmt::format(" from {}{}", from, has_end ? "" : " up");
  if (std::isfinite(above)) text += fmt::format(" above {}{}", above, has_end ? " and" : "");
  if (std::isfinite(to)) text += fmt::format(" {} {}", std::isfinite(from) ? "to" : "up to", to);
  if (std::isfinite(below)) text += fmt::format(" {} {}", std::isfinite(from) ? "to below" : "below", below);
  return text;
}

std::optional<double> read_finite(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) return {};
  return number;
}

std::string show_number(double value) { return fmt::format("{}", value); }

}  // namespace linblock
