#include "base/checksum.h"

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include <new>

namespace linblock {

#if defined(__x86_64__)
uint64_t checksum_avx2(const void* bytes, size_t size, uint64_t seed);
void add_avx2(void* state, const void* bytes, size_t size);

namespace {
bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}
}  // namespace
#endif

uint64_t checksum(std::span<const unsigned char> bytes, uint64_t seed) {
#if defined(__x86_64__)
  if (has_avx2()) return checksum_avx2(bytes.data(), bytes.size(), seed);
#endif
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

Checksum::Checksum(uint64_t seed) : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_64bits_reset_withSeed(state_, seed);
}

Checksum::~Checksum() { XXH3_freeState(state_); }

void Checksum::add(std::span<const unsigned char> bytes) {
#if defined(__x86_64__)
  if (has_avx2()) return add_avx2(state_, bytes.data(), bytes.size());
#endif
  XXH3_64bits_update(state_, bytes.data(), bytes.size());
}

uint64_t Checksum::value() const { return XXH3_64bits_digest(state_); }

}  // namespace linblock
