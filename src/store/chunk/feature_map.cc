#include "store/chunk/feature_map.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "store/chunk/format.h"

namespace linblock {

namespace {

constexpr size_t kMostFrequent = size_t{1} << 17;
constexpr size_t kFirstClass = 128;
constexpr size_t kMostKept = 16384;  // nonzeros of a row that scratch memory is kept for

struct Counted {
  uint32_t index;
  uint32_t count;
};

// Least significant digit first, 11 bits a digit: three passes instead of a comparison sort's twenty.
void radix_sort(std::vector<uint32_t>& numbers) {
  constexpr unsigned kDigitBits = 11;
  constexpr size_t kDigits = size_t{1} << kDigitBits;
  std::vector<uint32_t> other(numbers.size());
  for (unsigned shift = 0; shift < 32; shift += kDigitBits) {
    std::array<uint32_t, kDigits + 1> start{};
    for (const uint32_t number : numbers) ++start[(number >> shift & (kDigits - 1)) + 1];
    for (size_t digit = 0; digit < kDigits; ++digit) start[digit + 1] += start[digit];
    for (const uint32_t number : numbers) other[start[number >> shift & (kDigits - 1)]++] = number;
    numbers.swap(other);
  }
}

// Features seen at least twice (once in a whole sample says nothing), in the order of the index.
std::vector<Counted> count_repeated(const std::vector<uint32_t>& sorted, uint64_t index_limit) {
  std::vector<Counted> seen;
  for (size_t i = 0; i < sorted.size();) {
    size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[i]) ++end;
    if (end - i >= 2 && sorted[i] < index_limit) seen.push_back({sorted[i], static_cast<uint32_t>(end - i)});
    i = end;
  }
  return seen;
}

// For each of them its rank by falling count, equal counts in the order of the index: a counting sort.
std::vector<uint32_t> ranks_by_count(const std::vector<Counted>& seen) {
  uint32_t most = 0;
  for (const Counted& feature : seen) most = std::max(most, feature.count);
  std::vector<uint32_t> next(most + 2, 0);
  for (const Counted& feature : seen) ++next[most - feature.count + 1];
  for (size_t i = 0; i + 1 < next.size(); ++i) next[i + 1] += next[i];
  std::vector<uint32_t> ranks(seen.size());
  for (size_t i = 0; i < seen.size(); ++i) ranks[i] = next[most - seen[i].count]++;
  return ranks;
}

}  // namespace

FeatureMap FeatureMap::from_sample(std::vector<uint32_t>& sample, uint64_t memory_bytes) {
  radix_sort(sample);
  const uint64_t index_limit = std::min<uint64_t>(memory_bytes / sizeof(Word) * 64, format::kLargestIndex);
  const std::vector<Counted> seen = count_repeated(sample, index_limit);
  FeatureMap map;
  if (seen.size() < kFirstClass) return map;
  const std::vector<uint32_t> ranks = ranks_by_count(seen);
  const size_t count = std::min(kMostFrequent, std::bit_floor(seen.size()));
  // A class is a range of ranks; features come in the order of their index, and so does each class.
  std::array<size_t, kClasses> next{};
  for (unsigned c = 1; c < kClasses; ++c) next[c] = kFirstClass << (c - 1);
  map.frequent_.resize(count);
  map.sorted_.reserve(count);
  for (size_t i = 0; i < seen.size(); ++i) {
    if (ranks[i] >= count) continue;
    map.frequent_[next[class_of(ranks[i])]++] = seen[i].index;
    map.sorted_.push_back(seen[i].index);
  }
  map.make_words();
  return map;
}

FeatureMap FeatureMap::from_frequent(std::vector<uint32_t> frequent, uint64_t memory_bytes, const std::string& where) {
  FeatureMap map;
  map.frequent_ = std::move(frequent);
  if (map.frequent_.empty()) return map;
  const size_t count = map.frequent_.size();
  if (count < kFirstClass || count > kMostFrequent || !std::has_single_bit(count))
    fail(ErrorKind::damaged, "'{}' lists {} frequent features, which no version of linblock writes", where, count);
  const uint32_t largest = *std::max_element(map.frequent_.begin(), map.frequent_.end());
  if (largest / 64 * sizeof(Word) > memory_bytes)
    fail(ErrorKind::memory, "the feature map of '{}' needs {} bytes of memory, more than the {} it may take", where,
         largest / 64 * sizeof(Word), memory_bytes);
  map.sorted_ = map.frequent_;
  std::sort(map.sorted_.begin(), map.sorted_.end());
  map.make_words();
  for (size_t i = 1; i < count; ++i)
    if (map.sorted_[i] == map.sorted_[i - 1])
      fail(ErrorKind::damaged, "'{}' lists feature {} twice", where, map.sorted_[i]);
  for (size_t i = 1; i < count; ++i)
    if (class_of(static_cast<uint32_t>(i)) == class_of(static_cast<uint32_t>(i - 1)) &&
        map.frequent_[i] <= map.frequent_[i - 1])
      fail(ErrorKind::damaged, "'{}' lists its frequent features out of order", where);
  return map;
}

void FeatureMap::make_words() {
  words_.assign(sorted_.back() / 64 + 1, {});
  for (const uint32_t index : sorted_) words_[index / 64].bits |= uint64_t{1} << (index % 64);
  uint32_t rank = 0;
  for (Word& word : words_) {
    word.rank = rank;
    rank += static_cast<uint32_t>(std::popcount(word.bits));
  }
  number_of_rank_.assign(sorted_.size() + 1, 0);
  for (size_t number = 0; number < frequent_.size(); ++number) {
    const Word& word = words_[frequent_[number] / 64];
    const uint64_t below = word.bits & ((uint64_t{1} << (frequent_[number] % 64)) - 1);
    // A feature listed twice would leave a hole here; from_frequent finds it out.
    number_of_rank_[word.rank + static_cast<size_t>(std::popcount(below))] = static_cast<uint32_t>(number);
  }
}

uint32_t FeatureMap::index(uint32_t number) const {
  if (number < frequent_.size()) return frequent_[number];
  const uint32_t place = number - static_cast<uint32_t>(frequent_.size());
  return place + static_cast<uint32_t>(frequent_before(place, 0, sorted_.size()));
}

// The place-th of the other features stands behind as many frequent ones as have no more than `place` others before
// them; they are no fewer than `low`, and no more than `high`.
size_t FeatureMap::frequent_before(uint32_t place, size_t low, size_t high) const {
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (sorted_[middle] - middle <= place)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void FeatureMap::indices(std::span<const uint32_t> numbers, uint32_t* index) const {
  const auto frequent = static_cast<uint32_t>(frequent_.size());
  size_t low = 0;  // frequent ones before the last one found
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < frequent) {
      index[i] = frequent_[numbers[i]];
      continue;
    }
    const uint32_t place = numbers[i] - frequent;
    size_t step = 1;
    while (low + step <= sorted_.size() && sorted_[low + step - 1] - (low + step - 1) <= place) {
      low += step;
      step *= 2;
    }
    low = frequent_before(place, low, std::min(sorted_.size(), low + step - 1));
    index[i] = place + static_cast<uint32_t>(low);
  }
}

// Two passes that no branch can mispredict: frequent features and others part, each in order; the others are then in
// place behind, and the frequent ones are put in order by a counting sort over their few classes.
template <bool kWithValues>
void FeatureMap::apply_to(std::span<const uint32_t> index, const float* value, uint32_t* numbers, float* values) const {
  thread_local std::vector<uint32_t> numbers_apart;
  thread_local std::vector<float> values_apart;
  const size_t count = index.size();
  if (numbers_apart.size() < 2 * count) {
    numbers_apart.resize(2 * count);
    values_apart.resize(2 * count);
  }
  uint32_t* const near = numbers_apart.data();
  uint32_t* const far = near + count;
  float* const near_value = values_apart.data();
  float* const far_value = near_value + count;
  const auto frequent_count = static_cast<uint32_t>(frequent_.size());
  size_t frequent = 0;
  size_t rare = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t mapped = number(index[i]);
    near[frequent] = mapped;
    far[rare] = mapped;
    if constexpr (kWithValues) {
      near_value[frequent] = value[i];
      far_value[rare] = value[i];
    }
    const size_t is_frequent = mapped < frequent_count ? 1 : 0;
    frequent += is_frequent;
    rare += 1 - is_frequent;
  }
  std::array<uint32_t, kClasses + 1> start{};
  for (size_t i = 0; i < frequent; ++i) ++start[class_of(near[i]) + 1];
  for (size_t c = 0; c < kClasses; ++c) start[c + 1] += start[c];
  for (size_t i = 0; i < frequent; ++i) {
    const uint32_t to = start[class_of(near[i])]++;
    numbers[to] = near[i];
    if constexpr (kWithValues) values[to] = near_value[i];
  }
  std::copy_n(far, rare, numbers + frequent);
  if constexpr (kWithValues) std::copy_n(far_value, rare, values + frequent);
  if (count > kMostKept) {  // a very long row's memory is not kept
    numbers_apart = {};
    values_apart = {};
  }
}

void FeatureMap::apply(std::span<const uint32_t> index, std::span<const float> value, uint32_t* numbers,
                       float* values) const {
  if (frequent_.empty()) {
    std::copy(index.begin(), index.end(), numbers);
    std::copy(value.begin(), value.end(), values);
  } else if (value.empty()) {
    apply_to<false>(index, nullptr, numbers, nullptr);
  } else {
    apply_to<true>(index, value.data(), numbers, values);
  }
}

}  // namespace linblock
