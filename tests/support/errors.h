// What a test says of errors: their kind, and words of their sentence and remedies.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace linblock::test {

// The whole of an error in the library's words: its sentence, then each remedy in brackets.
inline std::string words_of(const Error& error) {
  std::string words = error.what();
  for (const auto& [verb, setting, value, with] : error.remedies()) {
    switch (verb) {
      case Remedy::Verb::give_at_least: words += " (give " + setting + " " + value + " or more)"; break;
      case Remedy::Verb::use: words += " (use " + setting + " " + value + ")"; break;
      case Remedy::Verb::leave_out: words += " (leave out " + setting + ")"; break;
      case Remedy::Verb::rebuild:
        words += " (rebuild the " + setting + " of " + value + (with.empty() ? ")" : " with " + plain_text(with) + ")");
        break;
      case Remedy::Verb::say: words += " (" + plain_text(value) + ")"; break;
    }
  }
  return words;
}

// The least value of a setting that the error's remedies ask for: "40M".
inline std::string advised(const Error& error, std::string_view setting) {
  for (const Remedy& remedy : error.remedies())
    if (remedy.verb == Remedy::Verb::give_at_least && remedy.setting == setting) return remedy.value;
  ADD_FAILURE() << "no remedy of '" << setting << "' in: " << words_of(error);
  return "";
}

// EXPECT_THAT([&] { work(); }, fails_with(ErrorKind::input, "two classes"));
inline auto fails_with(ErrorKind kind, const std::string& words) {
  return testing::Throws<Error>(testing::AllOf(testing::Property("kind", &Error::kind, kind),
                                               testing::ResultOf(words_of, testing::HasSubstr(words))));
}

// The Error that `work` ends with, if it does. Any other exception is the test's failure.
template <typename Work>
std::optional<Error> error_of(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Fails unless `work` ends with an Error of this kind whose sentence and remedies have all of these parts.
template <typename Work>
void expect_error(ErrorKind kind, const std::vector<std::string>& parts, Work&& work) {
  const std::optional<Error> error = error_of(work);
  ASSERT_TRUE(error.has_value()) << "no error";
  EXPECT_EQ(static_cast<int>(error->kind()), static_cast<int>(kind)) << error->what();
  for (const std::string& part : parts)
    EXPECT_TRUE(contains(words_of(*error), part)) << "no '" << part << "' in: " << words_of(*error);
}

}  // namespace linblock::test
