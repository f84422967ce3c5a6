#include "store/chunk/index_code.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "store/chunk/format.h"

namespace linblock {
namespace {

using Numbers = std::vector<uint32_t>;
constexpr auto kSets = static_cast<unsigned>(format::kWidthSets.size());

// Memory with exactly what the contract allows a reader and a writer to touch, so that a sanitizer sees one more.
std::vector<unsigned char> encode(const Numbers& numbers, unsigned set) {
  std::vector<unsigned char> code(index_code_limit(numbers.size()), 0xee);
  code.resize(encode_indices(numbers, set, code.data()));
  return code;
}

using Decoder = uint32_t (*)(std::span<const unsigned char>, size_t, unsigned, uint32_t*);

struct Decoded {
  uint32_t largest;
  Numbers numbers;
  bool operator==(const Decoded&) const = default;
};

Decoded decode(Decoder decoder, const std::vector<unsigned char>& code, size_t count, unsigned set,
               unsigned char slack = 0xff) {
  std::vector<unsigned char> memory = code;
  memory.resize(code.size() + 16, slack);
  Numbers out(count + 3, 0xabababab);
  const uint32_t largest = decoder({memory.data(), code.size()}, count, set, out.data());
  out.resize(largest == UINT32_MAX ? 0 : count);  // what a refused row leaves there says nothing
  return {largest, std::move(out)};
}

// Gaps of all sizes, mostly short as in real rows.
Numbers random_numbers(Random& random, size_t count) {
  Numbers numbers;
  const uint64_t most_bits = random.below(33);
  uint64_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t gap = random.next() & ((uint64_t{1} << random.below(most_bits + 1)) - 1);
    next += gap;
    if (next >= UINT32_MAX) break;
    numbers.push_back(static_cast<uint32_t>(next++));
  }
  return numbers;
}

uint32_t largest_gap(const Numbers& numbers) {
  uint32_t most = 0;
  uint32_t next = 0;
  for (const uint32_t number : numbers) {
    most = std::max(most, number - next);
    next = number + 1;
  }
  return most;
}

bool fits(uint32_t gap, unsigned set) {
  const unsigned widest = format::kWidthSets[set][3];
  return widest >= 8 || gap < (uint32_t{1} << (4 * widest));
}

TEST(IndexCode, GivesBackWhatWentInForEverySetAndSize) {
  Random random(1);
  for (size_t count = 0; count < 70; ++count)
    for (int repeat = 0; repeat < 40; ++repeat) {
      const Numbers numbers = random_numbers(random, count);
      for (unsigned set = 0; set < kSets; ++set) {
        const auto code = encode(numbers, set);
        if (numbers.empty()) {
          EXPECT_TRUE(code.empty());
        } else if (!fits(largest_gap(numbers), set)) {
          EXPECT_TRUE(code.empty()) << "a gap of " << largest_gap(numbers) << " in set " << set;
          continue;
        } else {
          ASSERT_FALSE(code.empty()) << "set " << set << ", largest gap " << largest_gap(numbers);
        }
        const Decoded expected{numbers.empty() ? 0 : numbers.back(), numbers};
        ASSERT_EQ(decode(decode_indices, code, numbers.size(), set), expected) << "set " << set << ", count " << count;
        ASSERT_EQ(decode(detail::decode_indices_portable, code, numbers.size(), set), expected) << "set " << set;
      }
    }
}

RC_GTEST_PROP(IndexCode, GivesBackAnySetOfNumbers, ()) {
  const auto any = rc::gen::oneOf(rc::gen::inRange<uint32_t>(0, 40), rc::gen::inRange<uint32_t>(0, 1 << 20),
                                  rc::gen::inRange<uint32_t>(0, UINT32_MAX));
  const auto chosen = *rc::gen::container<std::set<uint32_t>>(any);
  const Numbers numbers(chosen.begin(), chosen.end());
  const auto set = *rc::gen::inRange<unsigned>(0, kSets);
  const auto code = encode(numbers, set);
  RC_ASSERT(set != 0 || numbers.empty() || !code.empty());
  RC_PRE(numbers.empty() || !code.empty());
  const Decoded expected{numbers.empty() ? 0 : numbers.back(), numbers};
  RC_ASSERT(decode(decode_indices, code, numbers.size(), set) == expected);
  RC_ASSERT(decode(detail::decode_indices_portable, code, numbers.size(), set) == expected);
}

TEST(IndexCode, HoldsTheLargestNumberAndTheWidestGapInSetZero) {
  for (const Numbers& numbers :
       {Numbers{0}, Numbers{UINT32_MAX - 1}, Numbers{0, UINT32_MAX - 1}, Numbers{1, 2, 3, 4, UINT32_MAX - 1},
        Numbers{UINT32_MAX - 5, UINT32_MAX - 4, UINT32_MAX - 3, UINT32_MAX - 2, UINT32_MAX - 1}}) {
    const auto code = encode(numbers, 0);
    EXPECT_EQ(decode(decode_indices, code, numbers.size(), 0), (Decoded{numbers.back(), numbers}));
    EXPECT_EQ(decode(detail::decode_indices_portable, code, numbers.size(), 0), (Decoded{numbers.back(), numbers}));
  }
}

TEST(IndexCode, TakesEachGapUpToItsWidthAndNotOneMore) {
  for (unsigned set = 1; set < kSets; ++set)
    for (size_t before = 0; before < 9; ++before) {
      Numbers numbers(before);
      for (size_t i = 0; i < before; ++i) numbers[i] = static_cast<uint32_t>(i);
      const auto start = static_cast<uint32_t>(before);
      const uint32_t widest = (uint32_t{1} << (4 * format::kWidthSets[set][3])) - 1;
      numbers.push_back(start + widest);
      EXPECT_EQ(decode(decode_indices, encode(numbers, set), numbers.size(), set).numbers, numbers) << "set " << set;
      ++numbers.back();
      EXPECT_TRUE(encode(numbers, set).empty()) << "set " << set;
      EXPECT_FALSE(encode(numbers, 0).empty());
    }
}

// docs/format.md: control bytes first, two bits a gap from the low end; then nibbles, low first, filled up to a byte.
TEST(IndexCode, WritesTheBytesOfTheSpecification) {
  const std::vector<unsigned char> expected = {
      0b11'10'01'00,        // gaps 0x5, 0x345, 0x54321, 0x1234567 in set 0: codes 0, 1, 2, 3
      0b00'00'00'00,        // gap 0
      0x05,                 // two nibbles
      0x45,          0x03,  // four
      0x21,          0x43, 0x05, 0x67, 0x45, 0x23, 0x01, 0x00};
  Numbers numbers;
  uint32_t next = 0;
  for (const uint32_t gap : {0x5U, 0x345U, 0x54321U, 0x1234567U, 0U}) {
    numbers.push_back(next + gap);
    next = numbers.back() + 1;
  }
  EXPECT_EQ(encode(numbers, 0), expected);
  // Set 3 has widths of 1, 2, 3 and 5 nibbles: gaps 0, 17 and 4 take 1 + 2 + 1.
  EXPECT_EQ(encode({0, 18, 23}, 3), (std::vector<unsigned char>{0b00'00'01'00, 0x10, 0x41}));
}

TEST(IndexCode, RefusesRowsThatAreCutShortOrTooLong) {
  Random random(3);
  for (int repeat = 0; repeat < 300; ++repeat) {
    const Numbers numbers = random_numbers(random, 1 + random.below(20));
    if (numbers.empty()) continue;
    const auto code = encode(numbers, 0);
    for (const Decoder decoder : {Decoder{decode_indices}, Decoder{detail::decode_indices_portable}}) {
      for (size_t kept = 0; kept < code.size(); ++kept)
        ASSERT_EQ(
            decode(decoder, {code.begin(), code.begin() + static_cast<ptrdiff_t>(kept)}, numbers.size(), 0).largest,
            UINT32_MAX)
            << kept << " of " << code.size() << " bytes";
      auto longer = code;
      longer.push_back(0);
      ASSERT_EQ(decode(decoder, longer, numbers.size(), 0).largest, UINT32_MAX);
    }
  }
}

// Either refused, or numbers none of which is above the one returned: the caller's one comparison covers them all.
TEST(IndexCode, NeverGivesANumberAboveTheLargestItNamesForAnyBytes) {
  Random random(4);
  for (int repeat = 0; repeat < 30000; ++repeat) {
    const auto set = static_cast<unsigned>(random.below(kSets));
    const size_t count = random.below(24);
    std::vector<unsigned char> code = encode(random_numbers(random, count), random.below(4) == 0 ? 0 : set);
    if (random.below(3) == 0) code.resize(random.below(60));
    for (uint64_t change = random.below(4); change > 0 && !code.empty(); --change)
      code[random.below(code.size())] = static_cast<unsigned char>(random.next());
    const Decoded fast = decode(decode_indices, code, count, set);
    const Decoded portable = decode(detail::decode_indices_portable, code, count, set);
    for (const uint32_t number : fast.numbers) ASSERT_LE(number, fast.largest);
    if (portable.largest != UINT32_MAX) {
      ASSERT_EQ(fast, portable) << "what the portable decoder takes, the other takes too";
      ASSERT_TRUE(std::ranges::is_sorted(portable.numbers, std::less_equal<>()) || count < 2);
    }
    ASSERT_EQ(decode(decode_indices, code, count, set, 0), fast) << "it depends on the bytes behind the row";
  }
}

// A store that one machine refuses must not be taken by another: the same rows for any processor.
TEST(IndexCode, RefusesGapsThatLeadAroundPastTheLargestNumber) {
  for (const Numbers& gaps : {Numbers{5, UINT32_MAX}, Numbers{5, UINT32_MAX, 1, 1}, Numbers{0, 0, 0, 7, UINT32_MAX, 3},
                              Numbers{0x80000000, 0x7fffffff, 4, 0}, Numbers{0xf0000000, 0xf0000000, 0xf0000000}}) {
    std::vector<unsigned char> code((gaps.size() + 3) / 4, 0xff);  // every gap eight nibbles
    for (const uint32_t gap : gaps)
      for (unsigned byte = 0; byte < 4; ++byte) code.push_back(static_cast<unsigned char>(gap >> (8 * byte)));
    EXPECT_EQ(decode(detail::decode_indices_portable, code, gaps.size(), 0).largest, UINT32_MAX);
    EXPECT_EQ(decode(decode_indices, code, gaps.size(), 0).largest, UINT32_MAX)
        << "gaps " << testing::PrintToString(gaps);
  }
}

TEST(GapHistogram, CountsGapsByTheirNibbles) {
  GapHistogram histogram;
  histogram.add(Numbers{0, 1, 3, 19, 20 + 255, 276 + 256, UINT32_MAX - 1});
  histogram.add(Numbers{});
  histogram.add(Numbers{15});
  // Gaps 0, 0, 1, 15, 255, 256, and one of eight nibbles; then 15.
  const std::vector<uint64_t> expected = {2, 3, 1, 1, 0, 0, 0, 0, 1};
  EXPECT_EQ(std::vector<uint64_t>(std::begin(histogram.nibbles), std::end(histogram.nibbles)), expected);
}

TEST(BestWidthSet, IsTheOneThatWritesTheFewestBytes) {
  Random random(6);
  std::set<unsigned> chosen;
  for (int repeat = 0; repeat < 400; ++repeat) {
    // Long rows of gaps below one to six nibbles, in random shares.
    const std::array<uint64_t, 3> bits = {random.below(25), random.below(13), random.below(9)};
    Numbers numbers;
    uint32_t next = 0;
    for (int i = 0; i < 200; ++i) {
      next += static_cast<uint32_t>(random.next() & ((uint64_t{1} << bits[random.below(3)]) - 1));
      numbers.push_back(next++);
    }
    GapHistogram histogram;
    histogram.add(numbers);
    const unsigned best = best_width_set(histogram);
    const size_t bytes = encode(numbers, best).size();
    ASSERT_GT(bytes, 0U) << "set " << best << " cannot hold the row";
    for (unsigned set = 0; set < kSets; ++set) {
      const size_t other = encode(numbers, set).size();
      ASSERT_TRUE(other == 0 || bytes <= other) << "set " << set << " is shorter than set " << best;
    }
    chosen.insert(best);
  }
  EXPECT_GE(chosen.size(), 5U) << "the data was too uniform to say much";
}

TEST(BestWidthSet, LeavesRareWideGapsToSetZero) {
  GapHistogram histogram;
  histogram.nibbles[1] = 1000000;
  histogram.nibbles[8] = 10;
  EXPECT_NE(best_width_set(histogram), 0U);
  histogram.nibbles[8] = 1000000;
  EXPECT_EQ(best_width_set(histogram), 0U);
  EXPECT_LT(best_width_set(GapHistogram()), kSets);
}

}  // namespace
}  // namespace linblock
