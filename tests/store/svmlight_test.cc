// What the svmlight parser accepts, and what it reports of lines that it skips.
#include "store/text/svmlight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/rows.h"

namespace linblock {
namespace {

using test::OwnedRow;
using testing::HasSubstr;

// The slack is filled with digits: a parser that reads past the text into it would be found out.
void parse(const std::string& text, ParsedRows& rows, const SvmlightOptions& options = {}) {
  std::vector<unsigned char> memory(text.begin(), text.end());
  memory.resize(text.size() + Buffer::kSlack, '7');
  parse_svmlight({memory.data(), text.size()}, options, rows);
}

std::string in_one_spelling(const ParsedRows& rows) {
  std::string out;
  for (size_t row = 0; row < rows.size(); ++row) {
    out += (row == 0 ? "" : " | ") + std::to_string(rows.label(row));
    for (size_t i = 0; i < rows.index(row).size(); ++i)
      out += fmt::format(" {}:{:.9g}", rows.index(row)[i], rows.value(row)[i]);
  }
  return out;
}

struct Accepted {
  std::string text;
  std::string rows;
};

TEST(Svmlight, AcceptsEverySpellingOfARow) {
  const std::vector<Accepted> cases = {
      {"", ""},
      {"1 3:1 7:0.5\n", "1 3:1 7:0.5"},
      // labels
      {"1\n", "1"},
      {"1 \n-1\n+1\n", "1 | -1 | 1"},
      {"1.0\n-1e0\n+1.0\n20e-1\n", "1 | -1 | 1 | 2"},
      {"0\n-0\n00\n0.0\n", "0 | 0 | 0 | 0"},
      {"2147483647\n-2147483647\n2147483647.0\n", "2147483647 | -2147483647 | 2147483647"},
      {"1234567\n12345678\n0000000000012\n", "1234567 | 12345678 | 12"},
      // blanks and ends of lines
      {"1 3:1\r\n2 4:1\r\n", "1 3:1 | 2 4:1"},
      {"1\r\n2\r\n", "1 | 2"},
      {"1 3:0.25\r\n", "1 3:0.25"},
      {"1\t3:1\t4:2\n", "1 3:1 4:2"},
      {"1   3:1 \t 4:2   \n", "1 3:1 4:2"},
      {"  1 3:1 \t\n", "1 3:1"},
      {"1 3:1 \r\n", "1 3:1"},
      // lines without a row
      {"\n\n1 3:1\n\n", "1 3:1"},
      {"  \n\t\n\r\n1\n", "1"},
      {"# only a comment\n1\n   # indented 1:1\n2\n", "1 | 2"},
      // comments behind rows
      {"1 3:1 # doc 17, 5:5\n", "1 3:1"},
      {"1 # no features\n", "1"},
      {"1 3:1 #\n2 #x\r\n", "1 3:1 | 2"},
      {std::string("1 3:1 # \x01\xff") + '\0' + " any byte\n", "1 3:1"},
      // query ids are skipped
      {"1 qid:3 4:1\n", "1 4:1"},
      {"1 qid:3\n", "1"},
      {"1  qid:3\t4:1\r\n", "1 4:1"},
      // indices
      {"1 0:1 1:1\n", "1 0:1 1:1"},
      {"1 1234567:1 12345678:2 123456789:3\n", "1 1234567:1 12345678:2 123456789:3"},
      {"1 4294967294:1\n", "1 4294967294:1"},
      {"1 007:1 00000000000000000000008:2\n", "1 7:1 8:2"},
      // values
      {"1 1:0 2:9 3:10 4:-3\n", "1 1:0 2:9 3:10 4:-3"},
      {"1 1:+1 2:+0.5 3:+.5\n", "1 1:1 2:0.5 3:0.5"},
      {"1 1:.5 2:5. 3:-.25 4:-5.\n", "1 1:0.5 2:5 3:-0.25 4:-5"},
      {"1 1:1e2 2:1E2 3:1e+2 4:1e-2 5:1.5e1\n", "1 1:100 2:100 3:100 4:0.00999999978 5:15"},
      {"1 1:1e38 2:1e-38 3:1e-45 4:1e-400 5:-1e-400\n",
       "1 1:9.99999968e+37 2:9.99999935e-39 3:1.40129846e-45 4:0 5:-0"},
      {"1 1:-0 2:-0.0 3:-0e5 4:0.0\n", "1 1:-0 2:-0 3:-0 4:0"},
      {"1 1:12345678 2:123456789 3:16777216 4:12345678901234567890\n",
       "1 1:12345678 2:123456792 3:16777216 4:1.23456794e+19"},
      {"1 1:0.3333333333333333333333333333333333333333 2:3.14159265358979323846264338327950288\n",
       "1 1:0.333333343 2:3.14159274"},
      {"1 1:0.00000000000000000000000000000000000001\n", "1 1:9.99999935e-39"},
      {"1 1:000000000000000000000001.50000000000000000000000000\n", "1 1:1.5"},
      {"1 1:3.4028234e38 2:-3.4028234e38\n", "1 1:3.40282347e+38 2:-3.40282347e+38"},
  };
  ParsedRows rows;
  for (const auto& [text, expected] : cases) {
    parse(text, rows);
    EXPECT_TRUE(rows.bad().empty()) << text << rows.bad()[0].reason;
    EXPECT_EQ(in_one_spelling(rows), expected) << text;
    EXPECT_EQ(rows.lines(), static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'))) << text;
  }
}

TEST(Svmlight, CountsIndexZeroAsAnErrorOnlyWhereDataIsNumberedFromOne) {
  ParsedRows rows;
  parse("1 0:1 1:1\n", rows, {.index_zero = true});
  EXPECT_EQ(in_one_spelling(rows), "1 0:1 1:1");
  parse("1 1:1\n", rows, {.index_zero = false});
  EXPECT_EQ(in_one_spelling(rows), "1 1:1");
  parse("1 0:1 1:1\n", rows, {.index_zero = false});
  EXPECT_EQ(rows.size(), 0U);
  ASSERT_EQ(rows.bad().size(), 1U);
  EXPECT_EQ(rows.bad()[0].column, 3U);
  EXPECT_THAT(rows.bad()[0].reason, HasSubstr("index 0"));
}

rc::Gen<OwnedRow> arbitrary_row() {
  return rc::gen::exec([] {
    OwnedRow row;
    row.label = *rc::gen::suchThat(rc::gen::arbitrary<int32_t>(), [](int32_t l) { return l != INT32_MIN; });
    const auto any_index =
        rc::gen::oneOf(rc::gen::inRange<uint32_t>(0, 300), rc::gen::inRange<uint32_t>(0, UINT32_MAX));
    for (const uint32_t index : *rc::gen::container<std::set<uint32_t>>(any_index)) {
      row.index.push_back(index);
      const auto finite = [](float value) { return std::isfinite(value); };
      row.value.push_back(*rc::gen::oneOf(
          rc::gen::element(1.0F, 2.0F, 0.5F, -0.0F),
          rc::gen::suchThat(
              rc::gen::map(rc::gen::arbitrary<uint32_t>(), [](uint32_t b) { return std::bit_cast<float>(b); }),
              [&](float value) { return finite(value) && std::abs(value) < 3.4e38F; })));
    }
    return row;
  });
}

RC_GTEST_PROP(Svmlight, ReadsPrintedRowsBack, ()) {
  const auto printed = *rc::gen::container<std::vector<OwnedRow>>(arbitrary_row());
  const std::string end = *rc::gen::element<std::string>("\n", "\r\n", " \n", "\n\n", " # c\n");
  std::string text;
  for (const OwnedRow& row : printed) {
    text += std::to_string(row.label);
    for (size_t i = 0; i < row.index.size(); ++i) text += fmt::format(" {}:{}", row.index[i], row.value[i]);
    text += end;
  }
  ParsedRows rows;
  parse(text, rows);
  RC_ASSERT(rows.bad().empty());
  RC_ASSERT(rows.size() == printed.size());
  std::vector<uint32_t> all;
  for (size_t row = 0; row < printed.size(); ++row) {
    RC_ASSERT(rows.label(row) == printed[row].label);
    RC_ASSERT(std::ranges::equal(rows.index(row), printed[row].index));
    RC_ASSERT(std::ranges::equal(rows.value(row), printed[row].value, [](float a, float b) {
      return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
    }));
    all.insert(all.end(), printed[row].index.begin(), printed[row].index.end());
  }
  RC_ASSERT(std::ranges::equal(rows.all_indices(), all));
}

TEST(Svmlight, SkipsAndCountsAsManyBadLinesAsAllowed) {
  const std::string text = "1 1:1\nbad\n2 2:2\n\nworse 1:1\r\n3 3:3\n";
  ParsedRows rows;
  parse(text, rows, {.most_bad = 2});
  EXPECT_EQ(in_one_spelling(rows), "1 1:1 | 2 2:2 | 3 3:3");
  EXPECT_EQ(rows.lines(), 6U);
  ASSERT_EQ(rows.bad().size(), 2U);
  EXPECT_EQ(rows.bad()[0].line, 1U);
  EXPECT_EQ(rows.bad()[0].rows_before, 1U);
  EXPECT_EQ(text.substr(rows.bad()[0].begin, rows.bad()[0].length), "bad");
  EXPECT_EQ(rows.bad()[1].line, 4U);
  EXPECT_EQ(rows.bad()[1].rows_before, 2U);
  EXPECT_EQ(text.substr(rows.bad()[1].begin, rows.bad()[1].length), "worse 1:1");
}

TEST(Svmlight, StopsAfterOneBadLineMoreThanAllowed) {
  const std::string text = "1\nbad\n2\nworse\n3\nworst\n4\n";
  for (size_t most_bad = 0; most_bad < 5; ++most_bad) {
    ParsedRows rows;
    parse(text, rows, {.most_bad = most_bad});
    EXPECT_EQ(rows.bad().size(), std::min<size_t>(most_bad + 1, 3));
    EXPECT_EQ(rows.size(), std::min<size_t>(most_bad + 1, 4)) << most_bad << " allowed";
    EXPECT_EQ(rows.lines(), std::min<size_t>(2 * most_bad + 2, 7));
  }
}

TEST(Svmlight, KeepsNothingOfABadLineThatBeganWell) {
  ParsedRows rows;
  parse("1 1:1 2:2\n2 3:3 4:4 5:x\n3 6:6\n", rows, {.most_bad = 1});
  EXPECT_EQ(in_one_spelling(rows), "1 1:1 2:2 | 3 6:6");
  EXPECT_THAT(std::vector(rows.all_indices().begin(), rows.all_indices().end()), testing::ElementsAre(1, 2, 6));
}

TEST(Svmlight, ForgetsTheLastTextWhenItsMemoryIsUsedAgain) {
  ParsedRows rows;
  parse("1 1:1 2:2\nbad\n", rows, {.most_bad = 1});
  parse("5 9:1\n", rows);
  EXPECT_EQ(in_one_spelling(rows), "5 9:1");
  EXPECT_EQ(rows.lines(), 1U);
  EXPECT_TRUE(rows.bad().empty());
  parse("", rows);
  EXPECT_EQ(rows.size(), 0U);
  EXPECT_TRUE(rows.all_indices().empty());
}

TEST(Svmlight, HasRoomForTheShortestRowsAndFeatures) {
  std::string labels;
  std::string features = "1";
  for (int i = 0; i < 5000; ++i) labels += "1\n";
  for (int i = 0; i < 10; ++i) features += fmt::format(" {}:1", i);
  features += "\n";
  ParsedRows rows;
  parse(labels, rows);
  EXPECT_EQ(rows.size(), 5000U);
  parse(features + features + features, rows);
  EXPECT_EQ(rows.all_indices().size(), 30U);
}

}  // namespace
}  // namespace linblock
