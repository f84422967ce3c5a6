#include "cli/numbers.h"

#include <cmath>
#include <optional>

namespace linblock::cli {

namespace {

std::optional<double> finite_number(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) return {};
  return number;
}

}  // namespace

double positive_number(const std::string& text, const std::string& option) {
  const std::optional<double> number = finite_number(text);
  if (!number || *number <= 0) fail(ErrorKind::usage, "{} '{}' is not a number above 0", option, text);
  return *number;
}

double number_from_0(const std::string& text, const std::string& option) {
  const std::optional<double> number = finite_number(text);
  if (!number || *number < 0) fail(ErrorKind::usage, "{} '{}' is not a number from 0 up", option, text);
  return *number;
}

CLI::Option* add_positive_number(CLI::App& command, const std::string& name, double& number, const std::string& help) {
  return command
      .add_option_function<std::string>(
          name, [&number, name](const std::string& text) { number = positive_number(text, name); }, help)
      ->type_name("X");
}

CLI::Option* add_number(CLI::App& command, const std::string& name, double& number, const std::string& help) {
  return command
      .add_option_function<std::string>(
          name, [&number, name](const std::string& text) { number = number_from_0(text, name); }, help)
      ->type_name("X");
}

}  // namespace linblock::cli
