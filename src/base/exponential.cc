#include "base/exponential.h"

#include <cstring>

namespace linblock {

namespace {

constexpr size_t kLanes = 4;
using Reals = double __attribute__((vector_size(kLanes * sizeof(double))));
using Words = uint64_t __attribute__((vector_size(kLanes * sizeof(uint64_t))));

// Four at a time, one vector or two.
[[gnu::always_inline]] inline void in_fours(double* x, size_t count) {
  size_t k = 0;
  for (; k + kLanes <= count; k += kLanes) {
    Reals piece;
    std::memcpy(&piece, x + k, sizeof(piece));
    exponentiate<Reals, Words>(piece);
    std::memcpy(x + k, &piece, sizeof(piece));
  }
  for (; k < count; ++k) x[k] = fast_exponential(x[k]);
}

void portable(double* x, size_t count) { in_fours(x, count); }

#if defined(__x86_64__)
__attribute__((target("avx2"))) void with_avx2(double* x, size_t count) { in_fours(x, count); }
#endif

}  // namespace

void fast_exponentials(double* x, size_t count) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return with_avx2(x, count);
#endif
  portable(x, count);
}

}  // namespace linblock
