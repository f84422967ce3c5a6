// Options that are numbers: what is not one is refused with the option's name and what would be right.
#pragma once

#include <CLI/App.hpp>
#include <charconv>
#include <concepts>
#include <limits>
#include <string>

#include "base/error.h"

namespace linblock::cli {

template <std::integral T>
T whole_number(const std::string& text, const std::string& option, T least = std::numeric_limits<T>::min(),
               T most = std::numeric_limits<T>::max()) {
  T number = 0;
  const char* const begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || after != end || number < least || number > most)
    fail(ErrorKind::usage, "{} '{}' is not a whole number from {} to {}", option, text, least, most);
  return number;
}

template <std::integral T>
CLI::Option* add_whole_number(CLI::App& command, const std::string& name, T& number, const std::string& help,
                              std::type_identity_t<T> least = std::numeric_limits<T>::min(),
                              std::type_identity_t<T> most = std::numeric_limits<T>::max()) {
  return command
      .add_option_function<std::string>(
          name,
          [&number, name, least, most](const std::string& text) { number = whole_number<T>(text, name, least, most); },
          help)
      ->type_name("N");
}

double positive_number(const std::string& text, const std::string& option);
CLI::Option* add_positive_number(CLI::App& command, const std::string& name, double& number, const std::string& help);
double number_from_0(const std::string& text, const std::string& option);
// 0 and above.
CLI::Option* add_number(CLI::App& command, const std::string& name, double& number, const std::string& help);

}  // namespace linblock::cli
