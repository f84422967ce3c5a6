#include "store/feature_map.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "store/format.h"

namespace linblock {

namespace {

constexpr size_t kMostFrequent = size_t{1} << 17;
constexpr size_t kFirstClass = 128;

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

// Stable: by falling count, equal counts in the order of the index.
std::vector<Counted> by_frequency(const std::vector<uint32_t>& sorted, uint64_t index_limit) {
  std::vector<Counted> seen;
  for (size_t i = 0; i < sorted.size();) {
    size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[i]) ++end;
    // Once in a whole sample says nothing about frequency.
    if (end - i >= 2 && sorted[i] < index_limit) seen.push_back({sorted[i], static_cast<uint32_t>(end - i)});
    i = end;
  }
  uint32_t most = 0;
  for (const Counted& feature : seen) most = std::max(most, feature.count);
  std::vector<uint32_t> start(most + 2, 0);
  for (const Counted& feature : seen) ++start[most - feature.count + 1];
  for (size_t i = 0; i + 1 < start.size(); ++i) start[i + 1] += start[i];
  std::vector<Counted> ordered(seen.size());
  for (const Counted& feature : seen) ordered[start[most - feature.count]++] = feature;
  return ordered;
}

}  // namespace

FeatureMap FeatureMap::from_sample(std::vector<uint32_t>& sample, uint64_t memory_bytes) {
  radix_sort(sample);
  const uint64_t index_limit = std::min<uint64_t>(memory_bytes / sizeof(Word) * 64, format::kLargestIndex);
  const std::vector<Counted> ordered = by_frequency(sample, index_limit);
  FeatureMap map;
  if (ordered.size() < kFirstClass) return map;
  const size_t count = std::min(kMostFrequent, std::bit_floor(ordered.size()));
  map.frequent_.resize(count);
  for (size_t i = 0; i < count; ++i) map.frequent_[i] = ordered[i].index;
  for (size_t begin = 0; begin < count; begin = std::max(kFirstClass, begin * 2)) {
    const size_t end = std::max(kFirstClass, begin * 2);
    std::sort(map.frequent_.begin() + static_cast<ptrdiff_t>(begin), map.frequent_.begin() + static_cast<ptrdiff_t>(end));
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
  sorted_ = frequent_;
  std::sort(sorted_.begin(), sorted_.end());
  words_.assign(sorted_.back() / 64 + 1, {});
  for (const uint32_t index : sorted_) words_[index / 64].bits |= uint64_t{1} << (index % 64);
  uint32_t rank = 0;
  for (Word& word : words_) {
    word.rank = rank;
    rank += static_cast<uint32_t>(std::popcount(word.bits));
  }
  number_of_rank_.resize(sorted_.size());
  for (size_t number = 0; number < frequent_.size(); ++number) {
    const Word& word = words_[frequent_[number] / 64];
    const uint64_t below = word.bits & ((uint64_t{1} << (frequent_[number] % 64)) - 1);
    // A feature listed twice would leave a hole here; from_frequent finds it out.
    number_of_rank_[word.rank + static_cast<size_t>(std::popcount(below))] = static_cast<uint32_t>(number);
  }
}

uint32_t FeatureMap::index(uint32_t number) const {
  if (number < frequent_.size()) return frequent_[number];
  // The place-th of the other features: it stands behind as many frequent ones as have no more than `place` others
  // before them.
  const uint32_t place = number - static_cast<uint32_t>(frequent_.size());
  size_t low = 0;
  size_t high = sorted_.size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (sorted_[middle] - middle <= place)
      low = middle + 1;
    else
      high = middle;
  }
  return place + static_cast<uint32_t>(low);
}

void FeatureMap::apply(std::span<const uint32_t> index, std::span<const float> value, uint32_t* numbers,
                       float* values) const {
  if (frequent_.empty()) {
    std::copy(index.begin(), index.end(), numbers);
    std::copy(value.begin(), value.end(), values);
    return;
  }
  thread_local std::vector<uint32_t> mapped;
  if (mapped.size() < index.size()) mapped.resize(index.size());
  std::array<uint32_t, kClasses + 1> start{};
  for (size_t i = 0; i < index.size(); ++i) {
    mapped[i] = number(index[i]);
    ++start[class_of(mapped[i]) + 1];
  }
  for (size_t c = 0; c < kClasses; ++c) start[c + 1] += start[c];
  if (value.empty()) {
    for (size_t i = 0; i < index.size(); ++i) numbers[start[class_of(mapped[i])]++] = mapped[i];
    return;
  }
  for (size_t i = 0; i < index.size(); ++i) {
    const uint32_t to = start[class_of(mapped[i])]++;
    numbers[to] = mapped[i];
    values[to] = value[i];
  }
}

}  // namespace linblock
