// Numbers in svmlight text, against the C library: every spelling must give the float nearest to the nearest double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "store/text/svmlight.h"

namespace linblock {
namespace {

// One number a row, each followed by something else.
class Numbers {
 public:
  void add(const std::string& spelled) {
    static constexpr std::array<const char*, 6> kEnds = {"\n", " \n", "\r\n", "\t9:1\n", " 9:1\n", " # 7\n"};
    text_ += "1 5:" + spelled + kEnds[spelled_.size() % kEnds.size()];
    spelled_.push_back(spelled);
  }

  // Rows and refused lines, in step with what was added.
  void check() const {
    Buffer memory(text_.size());
    std::copy(text_.begin(), text_.end(), memory.data());
    ParsedRows rows;
    parse_svmlight(memory.span(), {.most_bad = SIZE_MAX}, rows);
    ASSERT_EQ(rows.lines(), spelled_.size());
    size_t row = 0;
    size_t bad = 0;
    for (size_t line = 0; line < spelled_.size(); ++line) {
      const auto expected = static_cast<float>(std::strtod(spelled_[line].c_str(), nullptr));
      if (bad < rows.bad().size() && rows.bad()[bad].line == line) {
        const BadLine& refused = rows.bad()[bad++];
        ASSERT_TRUE(std::isinf(expected)) << spelled_[line] << " is refused: " << refused.reason;
        ASSERT_THAT(refused.reason, testing::HasSubstr("beyond the range")) << spelled_[line];
      } else {
        ASSERT_LT(row, rows.size());
        const float value = rows.value(row++)[0];
        ASSERT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(expected))
            << spelled_[line] << " is read as " << value << ", should be " << expected;
      }
    }
  }

 private:
  std::string text_;
  std::vector<std::string> spelled_;
};

std::string digits(Random& random, size_t count) {
  std::string made;
  const bool zeros = random.below(4) == 0;  // many zeros, at the ends too
  for (size_t i = 0; i < count; ++i)
    made += static_cast<char>('0' + (zeros && random.below(4) != 0 ? 0 : random.below(10)));
  return made;
}

TEST(SvmlightNumbers, AgreeWithStrtodForDecimalsOfAllShapes) {
  Random random(2024);
  Numbers numbers;
  for (int i = 0; i < 200000; ++i) {
    const bool long_one = random.below(5) == 0;
    std::string spelled = std::array<const char*, 3>{"", "-", "+"}[random.below(3)];
    std::string whole = digits(random, random.below(long_one ? 30 : 10));
    std::string fraction = digits(random, random.below(long_one ? 40 : 18));
    if (whole.empty() && fraction.empty()) whole = digits(random, 1);
    spelled += whole;
    if (!fraction.empty() || random.below(3) == 0) spelled += '.';
    spelled += fraction;
    if (random.below(2) == 0) {
      spelled += random.below(2) == 0 ? 'e' : 'E';
      spelled += std::array<const char*, 3>{"", "-", "+"}[random.below(3)];
      spelled += digits(random, 1 + random.below(random.below(20) == 0 ? 4 : 2));
    }
    numbers.add(spelled);
  }
  numbers.check();
}

// The shapes that are parsed without the library: up to 15 digits, powers up to 22.
TEST(SvmlightNumbers, AgreeWithStrtodAtTheEdgesOfTheFastPath) {
  Random random(7);
  Numbers numbers;
  for (size_t whole = 1; whole <= 10; ++whole)
    for (size_t fraction = 0; fraction <= 18; ++fraction)
      for (int exponent = -40; exponent <= 30; ++exponent) {
        std::string spelled = random.below(5) == 0 ? std::string(whole, '9') : digits(random, whole);
        if (fraction > 0)
          spelled += "." + (random.below(5) == 0 ? std::string(fraction, '9') : digits(random, fraction));
        if (exponent != 0) spelled += "e" + std::to_string(exponent);
        numbers.add(spelled);
      }
  for (const char* spelled : {"9007199254740991",
                              "9007199254740992",
                              "9007199254740993",
                              "0.9007199254740991",
                              "0.9007199254740993",
                              "900719925.4740993",
                              "9007199.254740993",
                              "90071992.5",
                              "90071993.5",
                              "90071991.99999999",
                              "0.000000000000000000000000000000000000000000000001",
                              "8388608.5",
                              "8388609.5",
                              "16777217",
                              "16777219",
                              "33554434.0",
                              "1.00000005960464477539062",
                              "1.000000059604644775390625",
                              "1.00000005960464477539063",
                              "1e22",
                              "1e23",
                              "1e-22",
                              "1e-23"})
    numbers.add(spelled);
  numbers.check();
}

std::string shortest(float value) {
  std::array<char, 64> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

std::string with_9_digits(float value) {
  std::array<char, 64> text{};
  return {text.data(), static_cast<size_t>(std::snprintf(text.data(), text.size(), "%.9g", value))};
}

float read(const std::string& spelled) {
  const std::string text = "1 1:" + spelled + "\n";
  Buffer memory(text.size());
  std::copy(text.begin(), text.end(), memory.data());
  ParsedRows rows;
  parse_svmlight(memory.span(), {}, rows);
  return rows.size() == 1 ? rows.value(0)[0] : std::numeric_limits<float>::quiet_NaN();
}

TEST(SvmlightNumbers, ReadAnyPrintedFloatBackExactly) {
  Random random(99);
  for (int i = 0; i < 100000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(random.next()));
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(read(shortest(value))), std::bit_cast<uint32_t>(value)) << shortest(value);
    ASSERT_EQ(std::bit_cast<uint32_t>(read(with_9_digits(value))), std::bit_cast<uint32_t>(value))
        << with_9_digits(value);
  }
}

TEST(SvmlightNumbers, ReadTheSmallestFloatsBackExactly) {
  using Limits = std::numeric_limits<float>;
  for (const float value : {Limits::min(), Limits::denorm_min(), std::nextafter(Limits::min(), 0.0F), -Limits::min(),
                            -Limits::denorm_min(), 0.0F, -0.0F, Limits::epsilon()}) {
    EXPECT_EQ(std::bit_cast<uint32_t>(read(shortest(value))), std::bit_cast<uint32_t>(value)) << shortest(value);
    EXPECT_EQ(std::bit_cast<uint32_t>(read(with_9_digits(value))), std::bit_cast<uint32_t>(value)) << value;
  }
}

// Its shortest spelling, 3.4028235e+38, is a little above it: what unpack writes, pack must take.
TEST(SvmlightNumbers, ReadTheLargestFloatBackExactly) {
  const float largest = std::numeric_limits<float>::max();
  EXPECT_EQ(read("340282346638528859811704183484516925440"), largest);
  EXPECT_EQ(read(shortest(largest)), largest) << shortest(largest);
  EXPECT_EQ(read(with_9_digits(largest)), largest) << with_9_digits(largest);
  EXPECT_EQ(read(shortest(-largest)), -largest);
  EXPECT_TRUE(std::isnan(read("3.4028236e38"))) << "nearer to what would be the next float";
}

TEST(SvmlightNumbers, ReadAnyIndexAndLabelBack) {
  Random random(5);
  std::string text;
  std::vector<std::pair<int32_t, uint32_t>> expected;
  for (int i = 0; i < 20000; ++i) {
    const auto label =
        static_cast<int32_t>(static_cast<int64_t>(random.below(2 * uint64_t{INT32_MAX} + 1)) - INT32_MAX) >>
        random.below(31);
    const auto index = static_cast<uint32_t>(random.below(uint64_t{UINT32_MAX}) >> random.below(32));
    const std::string zeros(random.below(6) == 0 ? random.below(12) : 0, '0');
    text += label < 0 ? "-" : random.below(3) == 0 ? "+" : "";
    text += zeros + std::to_string(std::abs(int64_t{label})) + (random.below(5) == 0 ? ".0" : "");
    text += " " + zeros + std::to_string(index) + ":1\n";
    expected.emplace_back(label, index);
  }
  Buffer memory(text.size());
  std::copy(text.begin(), text.end(), memory.data());
  ParsedRows rows;
  parse_svmlight(memory.span(), {}, rows);
  ASSERT_TRUE(rows.bad().empty()) << rows.bad()[0].reason;
  ASSERT_EQ(rows.size(), expected.size());
  for (size_t row = 0; row < rows.size(); ++row) {
    ASSERT_EQ(rows.label(row), expected[row].first) << row;
    ASSERT_EQ(rows.index(row)[0], expected[row].second) << row;
  }
}

}  // namespace
}  // namespace linblock
