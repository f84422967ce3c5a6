// Counter-based random numbers: a value is a function of (seed, counter), so any thread can make any of them.
#pragma once

#include <cstdint>

namespace linblock {

// A bijection of 64-bit words in which every input bit reaches every output bit (the finaliser of splitmix64).
constexpr uint64_t mix64(uint64_t word) {
  word += 0x9e3779b97f4a7c15ULL;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
  return word ^ (word >> 31);
}

constexpr uint64_t mix64(uint64_t seed, uint64_t counter) { return mix64(mix64(seed) ^ counter); }

// The high half of word x limit: uniform over [0, limit) without a division.
constexpr uint64_t scale_to(uint64_t word, uint64_t limit) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(word) * limit) >> 64);
}

class Random {
 public:
  explicit constexpr Random(uint64_t seed, uint64_t stream = 0) : state_(mix64(seed, stream)) {}

  constexpr uint64_t next() { return mix64(state_++); }
  constexpr uint64_t below(uint64_t limit) { return scale_to(next(), limit); }
  // In [0, 1).
  constexpr double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

}  // namespace linblock
