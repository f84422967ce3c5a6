#include "store/chunk/feature_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "base/random.h"
#include "store/chunk/format.h"
#include "support/errors.h"

namespace linblock {
namespace {

using test::fails_with;
using Numbers = std::vector<uint32_t>;

constexpr uint64_t kMemory = uint64_t{1} << 20;

// Features below `features`, some much more frequent than others.
Numbers random_sample(Random& random, uint32_t features, size_t size) {
  Numbers sample(size);
  for (uint32_t& index : sample) {
    const double u = random.unit();
    const auto rank = static_cast<uint64_t>(u * u * u * features);
    index = static_cast<uint32_t>((rank * 7919 + 13) % features);
  }
  return sample;
}

std::map<uint32_t, size_t> counts_of(const Numbers& sample) {
  std::map<uint32_t, size_t> counts;
  for (const uint32_t index : sample) ++counts[index];
  return counts;
}

struct Made {
  FeatureMap map;
  Numbers sample;
  uint32_t features;
};

Made random_map(uint64_t seed) {
  Random random(seed);
  const auto features = static_cast<uint32_t>(200 + random.below(5000));
  Made made{.map = {}, .sample = random_sample(random, features, 2000 + random.below(30000)), .features = features};
  Numbers sample = made.sample;
  made.map = FeatureMap::from_sample(sample, kMemory);
  EXPECT_TRUE(std::ranges::is_sorted(sample));
  return made;
}

TEST(FeatureMap, ARowsIndicesAreTheIndicesOfItsNumbers) {
  Random random(3);
  for (const uint32_t features : {300U, 5000U, 100000U}) {
    Numbers sample = random_sample(random, features, 60000);
    const FeatureMap map = FeatureMap::from_sample(sample, kMemory);
    ASSERT_GE(map.frequent().size(), 128);
    for (const uint32_t step : {1U, 2U, 40U, 3000U}) {
      Numbers numbers;
      for (uint64_t number = random.below(step); number < features + 500; number += 1 + random.below(step))
        numbers.push_back(static_cast<uint32_t>(number));
      numbers.push_back(format::kLargestIndex);
      Numbers expected;
      for (const uint32_t number : numbers) expected.push_back(map.index(number));
      Numbers found(numbers.size());
      map.indices(numbers, found.data());
      ASSERT_EQ(found, expected) << features << " features, step " << step;
    }
  }
}

TEST(FeatureMap, IsABijectionWithItsInverse) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Made made = random_map(seed);
    ASSERT_GE(made.map.frequent().size(), 128U);
    std::vector<bool> taken(made.features + 500);
    for (uint32_t index = 0; index < taken.size(); ++index) {
      const uint32_t number = made.map.number(index);
      ASSERT_LT(number, taken.size());
      ASSERT_FALSE(taken[number]) << "number " << number << " is given twice, seed " << seed;
      taken[number] = true;
      ASSERT_EQ(made.map.index(number), index) << "seed " << seed;
    }
    for (const uint32_t index : {UINT32_MAX - 1, uint32_t{1} << 31, made.features + 100000})
      ASSERT_EQ(made.map.number(index), index) << "behind the last frequent feature nothing moves";
  }
}

TEST(FeatureMap, NumbersTheMostFrequentFirstByClasses) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Made made = random_map(seed);
    const auto counts = counts_of(made.sample);
    const auto frequent = made.map.frequent();
    const auto repeated =
        static_cast<size_t>(std::ranges::count_if(counts, [](const auto& c) { return c.second >= 2; }));
    ASSERT_EQ(frequent.size(), std::bit_floor(repeated));
    // Classes of 128, 128, 256, 512 ...: every count in one is at least every count in the next.
    size_t least_before = SIZE_MAX;
    for (size_t begin = 0, end = 128; begin < frequent.size(); begin = end, end *= 2) {
      size_t least = SIZE_MAX;
      for (size_t number = begin; number < end; ++number) {
        ASSERT_LE(counts.at(frequent[number]), least_before) << "number " << number;
        least = std::min(least, counts.at(frequent[number]));
      }
      ASSERT_TRUE(std::is_sorted(frequent.begin() + static_cast<ptrdiff_t>(begin),
                                 frequent.begin() + static_cast<ptrdiff_t>(end)));
      least_before = least;
    }
    const std::set<uint32_t> held(frequent.begin(), frequent.end());
    for (const auto& [index, count] : counts)
      ASSERT_TRUE(held.contains(index) || count <= least_before) << "feature " << index << " was left out";
  }
}

TEST(FeatureMap, KeepsTheOrderOfAllOtherFeatures) {
  const Made made = random_map(3);
  const std::set<uint32_t> frequent(made.map.frequent().begin(), made.map.frequent().end());
  uint32_t last = static_cast<uint32_t>(frequent.size()) - 1;
  for (uint32_t index = 0; index < made.features + 200; ++index) {
    if (frequent.contains(index)) continue;
    EXPECT_EQ(made.map.number(index), last + 1);
    last = made.map.number(index);
  }
}

TEST(FeatureMap, AppliesToARowInOrderWithItsValues) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Made made = random_map(seed);
    Random random(seed, 1);
    for (const size_t size : {0, 1, 2, 5, 100, 1000}) {
      std::set<uint32_t> chosen;
      while (chosen.size() < std::min<size_t>(size, made.features / 2))
        chosen.insert(static_cast<uint32_t>(random.below(made.features + (random.below(10) == 0 ? 1000000 : 0))));
      const Numbers index(chosen.begin(), chosen.end());
      std::vector<float> value;
      for (const uint32_t i : index) value.push_back(static_cast<float>(i) + 0.5F);
      Numbers numbers(index.size());
      std::vector<float> values(index.size());
      made.map.apply(index, value, numbers.data(), values.data());
      ASSERT_TRUE(std::ranges::is_sorted(numbers, std::less_equal<>()) || numbers.size() < 2);
      for (size_t i = 0; i < numbers.size(); ++i)
        ASSERT_EQ(values[i], static_cast<float>(made.map.index(numbers[i])) + 0.5F) << "a value went astray";
      Numbers alone(index.size());
      made.map.apply(index, {}, alone.data(), nullptr);
      ASSERT_EQ(alone, numbers) << "without values";
      Numbers back;
      for (const uint32_t number : numbers) back.push_back(made.map.index(number));
      std::ranges::sort(back);
      ASSERT_EQ(back, index);
    }
  }
}

TEST(FeatureMap, IsTheIdentityForSamplesWithFewRepeatedFeatures) {
  Numbers sample;
  for (uint32_t index = 0; index < 127; ++index) sample.insert(sample.end(), 2, index * 3);
  for (uint32_t index = 10000; index < 20000; ++index) sample.push_back(index);  // once says nothing
  FeatureMap map = FeatureMap::from_sample(sample, kMemory);
  EXPECT_TRUE(map.frequent().empty());
  const Numbers row = {0, 5, 300, UINT32_MAX - 1};
  for (const uint32_t index : row) {
    EXPECT_EQ(map.number(index), index);
    EXPECT_EQ(map.index(index), index);
  }
  Numbers numbers(4);
  std::vector<float> values(4);
  map.apply(row, std::vector<float>{1, 2, 3, 4}, numbers.data(), values.data());
  EXPECT_EQ(numbers, row);
  EXPECT_EQ(values, (std::vector<float>{1, 2, 3, 4}));
  sample.insert(sample.end(), 2, 127 * 3);
  EXPECT_EQ(FeatureMap::from_sample(sample, kMemory).frequent().size(), 128U);
  Numbers nothing;
  EXPECT_TRUE(FeatureMap::from_sample(nothing, kMemory).frequent().empty());
}

TEST(FeatureMap, IsTheSameFromItsListOfFrequentFeatures) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Made made = random_map(seed);
    const Numbers list(made.map.frequent().begin(), made.map.frequent().end());
    const FeatureMap again = FeatureMap::from_frequent(list, kMemory, "FEATURES");
    ASSERT_TRUE(std::ranges::equal(again.frequent(), made.map.frequent()));
    for (uint32_t index = 0; index < made.features + 200; ++index) {
      ASSERT_EQ(again.number(index), made.map.number(index));
      ASSERT_EQ(again.index(index), made.map.index(index));
    }
  }
  EXPECT_TRUE(FeatureMap::from_frequent({}, kMemory, "FEATURES").frequent().empty());
}

TEST(FeatureMap, RefusesListsThatNoSampleMakes) {
  Numbers list(256);
  std::iota(list.begin(), list.begin() + 128, 1000);
  std::iota(list.begin() + 128, list.end(), 0);
  EXPECT_NO_THROW(FeatureMap::from_frequent(list, kMemory, "FEATURES"));
  for (const size_t size : {1, 64, 127, 129, 255}) {
    EXPECT_THAT(
        [&] {
          FeatureMap::from_frequent({list.begin(), list.begin() + static_cast<ptrdiff_t>(size)}, kMemory, "FEATURES");
        },
        fails_with(ErrorKind::damaged, "'FEATURES' lists " + std::to_string(size) + " frequent features"));
  }
  Numbers many(size_t{1} << 18);
  std::iota(many.begin(), many.end(), 0);
  EXPECT_THAT([&] { FeatureMap::from_frequent(many, kMemory, "FEATURES"); }, fails_with(ErrorKind::damaged, "262144"));
  for (const size_t at : {size_t{0}, size_t{126}, size_t{128}, size_t{254}}) {
    Numbers swapped = list;
    std::swap(swapped[at], swapped[at + 1]);
    EXPECT_THAT([&] { FeatureMap::from_frequent(swapped, kMemory, "FEATURES"); },
                fails_with(ErrorKind::damaged, "out of order"));
  }
  Numbers twice = list;
  twice[130] = twice[131];
  EXPECT_THAT([&] { FeatureMap::from_frequent(twice, kMemory, "FEATURES"); },
              fails_with(ErrorKind::damaged, "'FEATURES' lists feature 3 twice"));
  Numbers across = list;
  across[127] = 1127;
  across[255] = 1127;
  EXPECT_THAT([&] { FeatureMap::from_frequent(across, kMemory, "FEATURES"); },
              fails_with(ErrorKind::damaged, "lists feature 1127 twice"));
}

TEST(FeatureMap, StaysWithinItsMemoryForHugeIndices) {
  // 64 features take 16 bytes: 4096 bytes are good for 16384 features.
  Numbers sample;
  for (uint32_t index = 0; index < 200; ++index) {
    sample.insert(sample.end(), 2, index * 50);
    sample.insert(sample.end(), 9, format::kLargestIndex - index);
    sample.insert(sample.end(), 5, 16384 + index);
  }
  const FeatureMap map = FeatureMap::from_sample(sample, 4096);
  EXPECT_EQ(map.frequent().size(), 128U);
  for (const uint32_t index : map.frequent()) EXPECT_LT(index, 16384U);
  EXPECT_EQ(map.number(format::kLargestIndex), format::kLargestIndex);
  Numbers list(128);
  std::iota(list.begin(), list.end(), format::kLargestIndex - 1000);
  EXPECT_THAT([&] { FeatureMap::from_frequent(list, kMemory, "FEATURES"); }, fails_with(ErrorKind::memory, "FEATURES"));
}

}  // namespace
}  // namespace linblock
