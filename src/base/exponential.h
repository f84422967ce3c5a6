// A fast exponential: no table, no branch, so that a compiler makes vector code of it, and the same bits whatever
// vector instructions the machine has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace linblock {

// The relative error of fast_exponential is below this (and tested).
inline constexpr double kFastExponentialError = 1e-8;
// Beyond these x, the exponential of these.
inline constexpr double kLargestExponent = 708;

// e^x = 2^k e^r with k the integer nearest to x / ln 2, so that |r| <= ln 2 / 2 = 0.3466, and e^r by the first terms
// of its series, up to r^7 / 7!: what is left out is below r^8 / 8! * e^|r|, 7.4e-9 of e^r at the most. 2^k is added to
// the exponent's bits. `Real` is a double and `Word` as many bits, or both are vectors of them.
template <class Real, class Word>
[[gnu::always_inline]] inline void exponentiate(Real& x) {
  constexpr double kShift = 0x1.8p52;  // adding it leaves the nearest integer in the lowest bits
  constexpr double kPerLn2 = 1.4426950408889634074;
  constexpr double kLn2High = 0x1.62e42fefa0000p-1;  // so short that k times it is exact
  constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40;
  const Real least = Real{} - kLargestExponent;
  const Real most = Real{} + kLargestExponent;
  x = x < least ? least : x;
  x = x > most ? most : x;
  const Real shifted = x * kPerLn2 + kShift;
  const Real k = shifted - kShift;
  const Real r = (x - k * kLn2High) - k * kLn2Low;
  const Real r2 = r * r;
  const Real low = (1 + r) + r2 * (1.0 / 2 + r * (1.0 / 6));
  const Real high = (1.0 / 24 + r * (1.0 / 120)) + r2 * (1.0 / 720 + r * (1.0 / 5040));
  const Real power = low + (r2 * r2) * high;
  Word power_bits;
  Word k_bits;
  std::memcpy(&power_bits, &power, sizeof(power));
  std::memcpy(&k_bits, &shifted, sizeof(shifted));
  power_bits += k_bits << 52;
  std::memcpy(&x, &power_bits, sizeof(x));
}

inline double fast_exponential(double x) {
  exponentiate<double, uint64_t>(x);
  return x;
}

// Each x becomes its exponential; on the widest vectors that the machine has.
void fast_exponentials(double* x, size_t count);

}  // namespace linblock
