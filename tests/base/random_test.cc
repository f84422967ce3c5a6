#include "base/random.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <set>
#include <vector>

namespace linblock {
namespace {

// Stores depend on these numbers (buckets of rows): they may never change.
static_assert(mix64(0) == 0xe220a8397b1dcdafULL);
static_assert(mix64(1) == 0x910a2dec89025cc1ULL);
static_assert(mix64(3, 4) == mix64(mix64(3) ^ 4));

TEST(Random, GivesEachCounterItsOwnNumber) {
  std::set<uint64_t> seen;
  for (uint64_t counter = 0; counter < 20000; ++counter) seen.insert(mix64(9, counter));
  EXPECT_EQ(seen.size(), 20000U);
}

TEST(Random, FlipsHalfOfTheBitsWhenOneBitOfTheInputChanges) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    int flipped = 0;
    for (uint64_t word = 0; word < 1000; ++word)
      flipped += std::popcount(mix64(word * 977) ^ mix64((word * 977) ^ (uint64_t{1} << bit)));
    EXPECT_NEAR(flipped / 1000.0, 32, 1.5) << "bit " << bit;
  }
}

RC_GTEST_PROP(Random, RepeatsWithTheSameSeedAndStream, (uint64_t seed, uint64_t stream)) {
  Random first(seed, stream);
  Random second(seed, stream);
  for (int i = 0; i < 10; ++i) RC_ASSERT(first.next() == second.next());
}

RC_GTEST_PROP(Random, DiffersBetweenSeedsAndBetweenStreams, (uint64_t seed, uint64_t stream)) {
  RC_ASSERT(Random(seed, stream).next() != Random(seed + 1, stream).next());
  RC_ASSERT(Random(seed, stream).next() != Random(seed, stream + 1).next());
}

RC_GTEST_PROP(Random, StaysBelowAnyLimit, (uint64_t seed)) {
  const auto limit = *rc::gen::suchThat(rc::gen::arbitrary<uint64_t>(), [](uint64_t l) { return l > 0; });
  Random random(seed);
  for (int i = 0; i < 20; ++i) {
    RC_ASSERT(random.below(limit) < limit);
    RC_ASSERT(random.below(1) == 0U);
    const double unit = random.unit();
    RC_ASSERT(unit >= 0 && unit < 1);
  }
}

TEST(Random, ScalesTheWholeRangeOfWords) {
  EXPECT_EQ(scale_to(0, 10), 0U);
  EXPECT_EQ(scale_to(UINT64_MAX, 10), 9U);
  EXPECT_EQ(scale_to(UINT64_MAX, UINT64_MAX), UINT64_MAX - 1);
  EXPECT_EQ(scale_to(uint64_t{1} << 63, 10), 5U);
}

// The chi-squared statistic of 63 degrees of freedom is above 103.4 once in a thousand times; the seed is fixed.
TEST(Random, IsUniformEnough) {
  constexpr size_t kCells = 64;
  constexpr size_t kDraws = 64000;
  std::array<double, kCells> below{};
  std::array<double, kCells> unit{};
  Random random(42);
  for (size_t i = 0; i < kDraws; ++i) {
    ++below[random.below(kCells)];
    ++unit[static_cast<size_t>(random.unit() * kCells)];
  }
  for (const auto& counts : {below, unit}) {
    double statistic = 0;
    for (const double count : counts) statistic += (count - 1000) * (count - 1000) / 1000;
    EXPECT_LT(statistic, 103.4);
    EXPECT_GT(statistic, 33) << "more even than chance";
  }
}

TEST(Random, HasNoSerialCorrelation) {
  Random random(7);
  double product = 0;
  double last = random.unit() - 0.5;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double next = random.unit() - 0.5;
    product += last * next;
    last = next;
  }
  // The standard deviation of the mean product is (1/12) / sqrt(draws).
  EXPECT_LT(std::abs(product / kDraws), 4.0 / 12 / std::sqrt(kDraws));
}

}  // namespace
}  // namespace linblock
