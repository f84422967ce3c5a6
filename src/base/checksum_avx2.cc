// XXH3 compiled for AVX2: three times faster than the SSE2 that every x86 has. The static library of Debian's package
// cannot choose at run time, so checksum.cc does. No header of C++ here: an inline function compiled for AVX2 might be
// the one that the linker keeps for all.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace linblock {

uint64_t checksum_avx2(const void* bytes, size_t size, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, size, seed);
}

void add_avx2(void* state, const void* bytes, size_t size) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state), bytes, size);
}

}  // namespace linblock
