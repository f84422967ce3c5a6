// Names of labels: codes by first appearance, what may be a name, and names that nobody wrote.
#include "store/text/label_names.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "base/json.h"
#include "store/chunk/format.h"
#include "support/errors.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

LabelNames names_of(const std::vector<std::string>& words) {
  LabelNames names;
  for (const std::string& word : words) names.add(word);
  return names;
}

TEST(LabelNames, HaveCodesByFirstAppearance) {
  LabelNames names;
  EXPECT_TRUE(names.empty());
  EXPECT_EQ(names.find("spam"), std::nullopt);
  EXPECT_EQ(names.add("spam"), 0);
  EXPECT_EQ(names.add("ham"), 1);
  EXPECT_EQ(names.add("spam"), 0);
  EXPECT_EQ(names.add("1"), 2);
  EXPECT_EQ(names.size(), 3U);
  EXPECT_EQ(names.find("ham"), 1);
  EXPECT_EQ(names.find("eggs"), std::nullopt);
  EXPECT_EQ(names[0], "spam");
  names.clear();
  EXPECT_TRUE(names.empty());
  EXPECT_EQ(names.add("eggs"), 0);
}

RC_GTEST_PROP(LabelNames, AreFoundAgainHoweverManyThereAre, (const std::vector<uint16_t>& numbers)) {
  LabelNames names;
  std::map<std::string, int32_t> expected;
  for (const uint16_t number : numbers) {
    const std::string name = "n" + std::to_string(number % 600);
    const auto [place, isNew] = expected.try_emplace(name, static_cast<int32_t>(expected.size()));
    RC_ASSERT(names.add(name) == place->second);
  }
  RC_ASSERT(names.size() == expected.size());
  for (const auto& [name, code] : expected) {
    RC_ASSERT(names.find(name) == std::optional(code));
    RC_ASSERT(names[static_cast<size_t>(code)] == name);
  }
  if (!expected.empty()) RC_ASSERT(LabelNames::from_text(names.text()).text() == names.text());
}

TEST(LabelNames, AreShownAndReadWhereLabelsAreWordsElseNumbersAre) {
  const LabelNames words = names_of({"spam", "1"});
  EXPECT_EQ(words.show(0), "spam");
  EXPECT_EQ(words.show(7), "7");  // no name: of a file that nobody wrote
  EXPECT_EQ(words.read("1"), 1);
  EXPECT_EQ(words.read("+1"), std::nullopt);
  EXPECT_EQ(words.json({1, 0}).dump(), R"(["1","spam"])");
  EXPECT_EQ(words.list({1, 0}, ", "), "1, spam");
  const LabelNames numbers;
  EXPECT_EQ(numbers.show(-3), "-3");
  EXPECT_EQ(numbers.read("+1"), 1);
  EXPECT_EQ(numbers.read("spam"), std::nullopt);
  EXPECT_EQ(numbers.json({1, -1}).dump(), "[1,-1]");
}

TEST(LabelNames, MayBeAnyWord) {
  for (const std::string& word :
       {std::string("spam"), std::string("1"), std::string("C#"), std::string("a=b"), std::string("__label__x"),
        std::string("na\xC3\xAFve"), std::string("\xE6\x97\xA5\xE6\x9C\xAC"), std::string("\xF0\x9F\x98\x80"),
        std::string(format::kMostLabelBytes, 'x')})
    EXPECT_EQ(wrong_with_label(word), "") << word;
}

TEST(LabelNames, MayNotHaveWhatSeparatesThemOrIsNoText) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"", "empty"},
      {std::string(format::kMostLabelBytes + 1, 'x'), "longer than 256 bytes"},
      {"#spam", "comment"},
      {"a:b", "':'"},
      {"a,b", "','"},
      {"a;b", "';'"},
      {"\"a\"", "'\"'"},
      {"a b", "white space"},
      {"a\xC2\xA0"
       "b",
       "white space"},
      {"a\x7F", "control"},
      {std::string("a\0b", 3), "control"},
      {"a\xC2\x85", "control"},
      {"\xEF\xBB\xBF"
       "1",
       "byte order mark"},
      {"\xFF", "not UTF-8"},
      {"\xC3", "not UTF-8"},
      {"\xC0\xAF", "not UTF-8"},           // overlong
      {"\xE0\x80\xAF", "not UTF-8"},       // overlong
      {"\xED\xA0\x80", "not UTF-8"},       // a surrogate
      {"\xF4\x90\x80\x80", "not UTF-8"}};  // beyond Unicode
  for (const auto& [word, why] : wrong) EXPECT_TRUE(contains(wrong_with_label(word), why)) << word;
}

TEST(LabelNames, ThatNobodyWroteAreDamage) {
  for (const char* text : {"", "spam spam", "spam  ham", " spam", "spam ", "a:b c", "a\tb"})
    EXPECT_THAT([&] { LabelNames::from_text(text); }, fails_with(ErrorKind::damaged, "label")) << text;
  std::string many;
  for (size_t i = 0; i <= format::kMostLabels; ++i) many += (i == 0 ? "" : " ") + std::to_string(i);
  EXPECT_THAT([&] { LabelNames::from_text(many); }, fails_with(ErrorKind::damaged, "too many"));
}

}  // namespace
}  // namespace linblock
