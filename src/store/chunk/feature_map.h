// Numbers the most frequent features first, so that their gaps are short and their weights share cache lines.
//
// The frequent ones, found from a sample, are a power of two many. The first 128 numbers go to the 128 most frequent,
// the next 128 to those after them, then 256, 512 and so on; within such a class, and among all other features,
// the original order stays. So the numbers of a row, whose indices arrive sorted, are sorted by one stable pass over
// the classes, and appended data with features never seen before needs no new map.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace linblock {

class FeatureMap {
 public:
  // The identity.
  FeatureMap() = default;
  // `sample`: feature indices of sampled rows, in any order; it is sorted in place. At most `memory_bytes` are kept.
  static FeatureMap from_sample(std::vector<uint32_t>& sample, uint64_t memory_bytes);
  // `frequent[number]` is the original index; throws ErrorKind::damaged unless it is what from_sample can make.
  static FeatureMap from_frequent(std::vector<uint32_t> frequent, uint64_t memory_bytes, const std::string& where);

  std::span<const uint32_t> frequent() const { return frequent_; }

  uint32_t number(uint32_t index) const {
    const size_t word = index / 64;
    if (word >= words_.size()) return index;
    const Word& place = words_[word];
    const uint64_t bit = uint64_t{1} << (index % 64);
    const auto rank = place.rank + static_cast<uint32_t>(std::popcount(place.bits & (bit - 1)));
    const auto other = static_cast<uint32_t>(frequent_.size()) + index - rank;
    // A mask and no branch: whether a feature is frequent cannot be predicted.
    const uint32_t frequent = 0U - static_cast<uint32_t>((place.bits >> (index % 64)) & 1);
    return (number_of_rank_[rank] & frequent) | (other & ~frequent);
  }
  uint32_t index(uint32_t number) const;
  // All of a row: increasing numbers, and their original indices in the same order. The others than the frequent ones
  // stand behind them, so each is looked for where the one before was found.
  void indices(std::span<const uint32_t> numbers, uint32_t* index) const;
  uint64_t memory_bytes() const {
    return (frequent_.capacity() + number_of_rank_.capacity() + sorted_.capacity()) * sizeof(uint32_t) +
           words_.capacity() * sizeof(Word);
  }

  // Increasing indices to increasing numbers, the values along with them; the outputs have room for as many. A row
  // whose values are all equal may come without them.
  void apply(std::span<const uint32_t> index, std::span<const float> value, uint32_t* numbers, float* values) const;

 private:
  static constexpr unsigned kFirstClassBits = 7;
  static constexpr unsigned kClasses = 33 - kFirstClassBits;

  // Features in sets of 64: which are frequent, and how many frequent ones stand before the set.
  struct Word {
    uint64_t bits = 0;
    uint32_t rank = 0;
  };

  static unsigned class_of(uint32_t number) {
    // Never of zero, so that it is one instruction and no branch.
    return static_cast<unsigned>(std::bit_width(number | ((1U << kFirstClassBits) - 1))) - kFirstClassBits;
  }
  void make_words();
  size_t frequent_before(uint32_t place, size_t low, size_t high) const;
  template <bool kWithValues>
  void apply_to(std::span<const uint32_t> index, const float* value, uint32_t* numbers, float* values) const;

  std::vector<uint32_t> frequent_;
  std::vector<uint32_t> number_of_rank_;  // one more than there are: number() reads it for every feature
  std::vector<uint32_t> sorted_;          // frequent_ in the order of the original indices
  std::vector<Word> words_;
};

}  // namespace linblock
