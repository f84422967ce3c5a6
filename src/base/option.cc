#include "base/option.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/bytes.h"

namespace linblock {

std::string join_words(const std::vector<std::string>& words, std::string_view last) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? std::string(last) : ", ") + words[i];
  return text;
}

std::string ValueRange::words() const {
  const bool has_end = std::isfinite(to) || std::isfinite(below);
  std::string text = "a number";
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

std::optional<SizeText> SizeText::read(std::string_view text) {
  const std::optional<uint64_t> bytes = read_size(text);
  return bytes ? std::optional<SizeText>(*bytes) : std::nullopt;
}

std::string SizeText::show() const {
  constexpr std::string_view kUnits = "KMGT";
  uint64_t number = bytes;
  size_t unit = 0;
  while (number > 0 && number % 1024 == 0 && unit < kUnits.size()) {
    number /= 1024;
    ++unit;
  }
  return std::to_string(number) + (unit == 0 ? "" : std::string(1, kUnits[unit - 1]));
}

Json to_json(const std::vector<Setting>& settings) {
  Json object = Json::object();
  for (const Setting& setting : settings) {
    const std::string text = setting.get();
    const std::optional<Json> number = setting.is_number ? Json::try_parse(text) : std::nullopt;
    if (setting.is_flag)
      object[setting.name] = text == "true";
    else
      object[setting.name] = number ? *number : Json(text);
  }
  return object;
}

std::string set_from_json(const std::vector<Setting>& settings, const Json& object) {
  for (const auto& [name, value] : object.members()) {
    const auto place = std::find_if(settings.begin(), settings.end(),
                                    [&name = name](const Setting& setting) { return setting.name == name; });
    if (place == settings.end()) return fmt::format("there is no setting '{}'", name);
    const std::string wrong = place->set(value.is_text() ? value.text() : value.dump());
    if (!wrong.empty()) return fmt::format("{}: {}", name, wrong);
  }
  return {};
}

}  // namespace linblock
