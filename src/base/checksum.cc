#include "base/checksum.h"

#define XXH_STATIC_LINKING_ONLY
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // picks AVX2 or AVX-512 at run time: three times faster than the SSE2 of the plain calls
#else
#include <xxhash.h>
#endif

#include <new>

namespace linblock {

uint64_t checksum(std::span<const unsigned char> bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

Checksum::Checksum(uint64_t seed) : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_64bits_reset_withSeed(state_, seed);
}

Checksum::~Checksum() { XXH3_freeState(state_); }

void Checksum::add(std::span<const unsigned char> bytes) { XXH3_64bits_update(state_, bytes.data(), bytes.size()); }

uint64_t Checksum::value() const { return XXH3_64bits_digest(state_); }

}  // namespace linblock
