// What a test says of errors: their kind, and words of their sentence.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace linblock::test {

// EXPECT_THAT([&] { work(); }, fails_with(ErrorKind::input, "two classes"));
inline auto fails_with(ErrorKind kind, const std::string& words) {
  return testing::Throws<Error>(testing::AllOf(
      testing::Property("kind", &Error::kind, kind),
      testing::ResultOf([](const Error& error) { return std::string(error.what()); }, testing::HasSubstr(words))));
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

// Fails unless `work` ends with an Error of this kind whose sentence has all of these parts.
template <typename Work>
void expect_error(ErrorKind kind, const std::vector<std::string>& parts, Work&& work) {
  const std::optional<Error> error = error_of(work);
  ASSERT_TRUE(error.has_value()) << "no error";
  EXPECT_EQ(static_cast<int>(error->kind()), static_cast<int>(kind)) << error->what();
  for (const std::string& part : parts)
    EXPECT_TRUE(contains(error->what(), part)) << "no '" << part << "' in: " << error->what();
}

}  // namespace linblock::test
