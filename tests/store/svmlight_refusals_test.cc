// What the svmlight parser refuses: the exact place, the reason, and how both are shown.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "store/text/svmlight.h"

namespace linblock {
namespace {

using namespace std::string_literals;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

struct Refused {
  std::string text;
  uint64_t line;  // 0-based
  size_t column;  // 1-based
  std::string words;
};

BadLine refusal(const std::string& text) {
  std::vector<unsigned char> memory(text.begin(), text.end());
  memory.resize(text.size() + Buffer::kSlack, '7');
  ParsedRows rows;
  parse_svmlight({memory.data(), text.size()}, {}, rows);
  return rows.bad().empty() ? BadLine{.reason = "accepted"} : rows.bad()[0];
}

void expect_refused(const std::vector<Refused>& cases) {
  for (const auto& [text, line, column, words] : cases) {
    const BadLine bad = refusal(text);
    EXPECT_EQ(bad.line, line) << text;
    EXPECT_EQ(bad.column, column) << text;
    EXPECT_THAT(bad.reason, HasSubstr(words)) << text;
  }
}

TEST(Svmlight, RefusesLabelsThatAreNotWholeNumbers) {
  expect_refused({
      {"abc 1:1\n", 0, 1, "the label 'abc' is not a number"},
      {"  x\n", 0, 3, "the label 'x' is not a number"},
      {"+ 1:1\n", 0, 1, "'+' is not a number"},
      {"-\n", 0, 1, "'-' is not a number"},
      {"+-1\n", 0, 1, "'+-1' is not a number"},
      {"--1\n", 0, 1, "'--1' is not a number"},
      {"1x 1:1\n", 0, 1, "'1x' is not a number"},
      {"0x1 1:1\n", 0, 1, "'0x1' is not a number"},
      {"1,2 1:1\n", 0, 1, "'1,2' is not a number"},
      {"1\r2\n", 0, 1, "is not a number"},
      {"1.5 1:1\n", 0, 1, "'1.5' is not an integer"},
      {"nan 1:1\n", 0, 1, "'nan' is not an integer"},
      {"inf 1:1\n", 0, 1, "'inf' is not an integer"},
      {"-inf\n", 0, 1, "'-inf' is not an integer"},
      {"3000000000 1:1\n", 0, 1, "'3000000000' is not an integer between -2147483647 and 2147483647"},
      {"2147483648\n", 0, 1, "is not an integer between"},
      {"-2147483648\n", 0, 1, "is not an integer between"},
      {"1e400\n", 0, 1, "is not an integer between"},
      {"1e-400\n", 0, 1, "is not an integer between"},
  });
}

TEST(Svmlight, GuessesWhatElseATextIs) {
  expect_refused({
      {"label,a,b\n", 0, 1, "is this CSV?"},
      {"1,0.5,2\n", 0, 1, "is this CSV?"},
      {"1;0,5;2\n", 0, 1, "is this CSV?"},
      {"spam 1:1\n", 0, 1, "labels are all numbers or all words, as in the first row"},
      {"1 0.5 0.25\n", 0, 4, "is this a table of numbers?"},
      {"1 3 4\n", 0, 4, "is this a table of numbers?"},
  });
  for (const char* text : {"1 1:1 2\n", "1 1.5:2\n", "-x 1:1\n"})
    EXPECT_THAT(refusal(text).reason, testing::Not(HasSubstr("?"))) << text;
}

TEST(Svmlight, RefusesRowsWithoutALabel) {
  expect_refused({
      {"1:1 2:1\n", 0, 1, "the label is missing: the line begins with '1:1'"},
      {"\t 7:0.5\n", 0, 3, "the label is missing"},
      {"qid:3 1:1\n", 0, 1, "the label is missing"},
      {"1 1:1\n1:1\n", 1, 1, "the label is missing"},
  });
}

TEST(Svmlight, RefusesFeaturesThatAreNotPairs) {
  expect_refused({
      {"1 1:\n", 0, 5, "the value is missing"},
      {"1 1:\r\n", 0, 5, "the value is missing"},
      {"1 1: 2:1\n", 0, 5, "the value is missing"},
      {"1 1:\t5\n", 0, 5, "the value is missing"},
      {"1 1\n", 0, 4, "feature '1' has no value"},
      {"1 12345678\n", 0, 11, "feature '12345678' has no value"},
      {"1 1 :2\n", 0, 4, "feature '1' has no value"},
      {"1 1;2\n", 0, 4, "feature '1;2' has no value"},
      {"1 1.5:2\n", 0, 4, "feature '1.5:2' has no value"},
      {"1 a:1\n", 0, 3, "'a:1' is not a feature"},
      {"1 :1\n", 0, 3, "':1' is not a feature"},
      {"1 -3:1\n", 0, 3, "'-3:1' is not a feature"},
      {"1 +3:1\n", 0, 3, "'+3:1' is not a feature"},
      {"1 1:1 qid:2\n", 0, 7, "'qid:2' is not a feature"},
      {"1 1:1 2:2 foo\n", 0, 11, "'foo' is not a feature"},
      {"1 1:1,2:1\n", 0, 5, "the value '1,2:1' is not a number"},
      {"1 1:1:1\n", 0, 5, "the value '1:1' is not a number"},
  });
}

TEST(Svmlight, RefusesIndicesOutOfOrderOrRange) {
  expect_refused({
      {"1 3:1 2:1\n", 0, 7, "feature index 2 follows 3"},
      {"1 1:1 20:1 3:1\n", 0, 12, "feature index 3 follows 20"},
      {"1 1:1 0:1\n", 0, 7, "feature index 0 follows 1"},
      {"1 5:1 5:2\n", 0, 7, "feature index 5 stands twice"},
      {"1 0:1 0:2\n", 0, 7, "feature index 0 stands twice"},
      {"1 05:1 5:2\n", 0, 8, "feature index 5 stands twice"},
      {"1 4294967294:1 4294967294:1\n", 0, 16, "feature index 4294967294 stands twice"},
      {"1 4294967295:1\n", 0, 3, "feature index '4294967295:1' is beyond 4294967294"},
      {"1 99999999999:1\n", 0, 3, "is beyond 4294967294"},
      {"1 1:1 18446744073709551617:1\n", 0, 7, "is beyond 4294967294"},
      {"1 99999999999999999999999999999999999999999999999999:1\n", 0, 3, "99...' is beyond 4294967294"},
  });
}

TEST(Svmlight, RefusesValuesThatAreNotFiniteFloats) {
  expect_refused({
      {"1 1:x\n", 0, 5, "the value 'x' is not a number"},
      {"1 1:1x 2:1\n", 0, 5, "the value '1x' is not a number"},
      {"1 1:1.5.2\n", 0, 5, "the value '1.5.2' is not a number"},
      {"1 1:--1\n", 0, 5, "the value '--1' is not a number"},
      {"1 1:+-1\n", 0, 5, "the value '+-1' is not a number"},
      {"1 1:++1\n", 0, 5, "the value '++1' is not a number"},
      {"1 1:-+1\n", 0, 5, "the value '-+1' is not a number"},
      {"1 1:.\n", 0, 5, "the value '.' is not a number"},
      {"1 1:+\n", 0, 5, "the value '+' is not a number"},
      {"1 1:-\n", 0, 5, "the value '-' is not a number"},
      {"1 1:e5\n", 0, 5, "the value 'e5' is not a number"},
      {"1 1:1e\n", 0, 5, "the value '1e' is not a number"},
      {"1 1:1e+\n", 0, 5, "the value '1e+' is not a number"},
      {"1 1:1e5.5\n", 0, 5, "the value '1e5.5' is not a number"},
      {"1 1:0x10\n", 0, 5, "the value '0x10' is not a number"},
      {"1 1:1\r2\n", 0, 5, "is not a number"},
      {"1 1:true\n", 0, 5, "the value 'true' is not a number"},
      {"1 1:nan\n", 0, 5, "the value 'nan' is not finite"},
      {"1 1:-nan\n", 0, 5, "the value '-nan' is not finite"},
      {"1 1:NaN\n", 0, 5, "the value 'NaN' is not finite"},
      {"1 1:1 2:inf 3:1\n", 0, 9, "the value 'inf' is not finite"},
      {"1 1:-inf\n", 0, 5, "the value '-inf' is not finite"},
      {"1 1:+Infinity\n", 0, 5, "the value '+Infinity' is not finite"},
      {"1 1:1e400\n", 0, 5, "the value '1e400' is beyond the range of 32-bit floats"},
      {"1 1:-1e400\n", 0, 5, "is beyond the range"},
      {"1 1:1e39\n", 0, 5, "the value '1e39' is beyond the range"},
      {"1 1:-1e39 2:1\n", 0, 5, "is beyond the range"},
      {"1 1:1000000000000000000000000000000000000000\n", 0, 5, "is beyond the range"},
      {"1 1:3.5e38\n", 0, 5, "is beyond the range"},
      {"1 1:1e99999999999999999999\n", 0, 5, "is beyond the range"},
  });
}

TEST(Svmlight, RefusesBinaryDataAndSaysWhatItFound) {
  expect_refused({
      {"1 1:1\0 2:1\n"s, 0, 6, "byte 0x00 is not text"},
      {"\0\0\0\n"s, 0, 1, "byte 0x00 is not text"},
      {"\x7f"
       "ELF\x02\n",
       0, 5, "byte 0x02 is not text"},
      {"1 1:1\nPK\x03\x04junk\n", 1, 3, "byte 0x03 is not text"},
      {"1 1:1\v2:1\n", 0, 6, "byte 0x0b is not text"},
  });
}

TEST(Svmlight, NamesTheLineWhateverStandsBefore) {
  expect_refused({
      {"1\n\n# comment\n\r\n  \n2 x\n", 5, 3, "'x' is not a feature"},
      {"1 1:1\r\n1 1:x\r\n", 1, 5, "the value 'x' is not a number"},
  });
}

TEST(Svmlight, LeavesTheEndOfALineOutOfABadLine) {
  EXPECT_EQ(refusal("x y\n").length, 3U);
  EXPECT_EQ(refusal("x y\r\n").length, 3U);
  EXPECT_EQ(refusal("1\nx y z\n2\n").begin, 2U);
  EXPECT_EQ(refusal("1\nx y z\n2\n").length, 5U);
}

std::vector<std::string> shown(const std::string& line, size_t column) {
  const std::string text = describe_bad_line("data.svm", 12, {.column = column, .reason = "the reason"}, line);
  std::vector<std::string> lines;
  for (size_t begin = 0, end = 0; begin <= text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
  }
  return lines;
}

TEST(DescribeBadLine, ShowsPlaceReasonLineAndCaret) {
  EXPECT_EQ(describe_bad_line("data.svm", 12, {.column = 5, .reason = "the value 'x' is not a number"}, "1 1:x 2:1"),
            "data.svm:12:5: the value 'x' is not a number\n"
            "  1 1:x 2:1\n"
            "      ^");
}

RC_GTEST_PROP(DescribeBadLine, PutsTheCaretUnderThePlaceOfAnyLine, ()) {
  const auto length = *rc::gen::element<size_t>(1, 2, 49, 50, 51, 52, 99, 100, 101, 102, 150, 1000, 100000);
  const auto place = *rc::gen::oneOf(rc::gen::inRange<size_t>(0, length), rc::gen::just(length - 1),
                                     rc::gen::inRange<size_t>(length - std::min<size_t>(length, 60), length));
  std::string line(length, '.');
  line[place] = 'X';
  const auto lines = shown(line, place + 1);
  RC_ASSERT(lines.size() == 3U);
  RC_ASSERT(lines[0] == fmt::format("data.svm:12:{}: the reason", place + 1));
  RC_ASSERT(lines[1].size() <= 120);
  RC_ASSERT(lines[2].find('^') == lines[1].find('X'));
  RC_ASSERT(lines[2].find('^') == lines[2].size() - 1);
  if (length <= 100) RC_ASSERT(lines[1] == "  " + line);
}

TEST(DescribeBadLine, PointsBehindTheEndWhereSomethingIsMissing) {
  const auto lines = shown("1 1:", 5);
  EXPECT_EQ(lines[1], "  1 1:");
  EXPECT_EQ(lines[2], "      ^");
  const auto last = shown(std::string(1000, 'a'), 1001);
  EXPECT_EQ(last[2].find('^'), last[1].size());
  EXPECT_THAT(last[1], EndsWith("a"));
}

TEST(DescribeBadLine, MarksWhereALongLineIsCut) {
  EXPECT_THAT(shown(std::string(1000, 'a'), 500)[1], StartsWith("  ...a"));
  EXPECT_THAT(shown(std::string(1000, 'a'), 500)[1], EndsWith("a..."));
  EXPECT_THAT(shown(std::string(1000, 'a'), 3)[1], StartsWith("  aaa"));
  EXPECT_THAT(shown(std::string(1000, 'a'), 3)[1], EndsWith("a..."));
  EXPECT_THAT(shown(std::string(1000, 'a'), 1000)[1], StartsWith("  ...a"));
}

TEST(DescribeBadLine, ShowsControlCharactersAsOneColumnEach) {
  const auto lines = shown("1\t2:1\x01\x1b\x7f z", 10);
  EXPECT_EQ(lines[1], "  1 2:1??? z");
  EXPECT_EQ(lines[2], "           ^");
}

}  // namespace
}  // namespace linblock
