// XXH3-64: every byte that linblock reads back from disk is checked with it.
#pragma once

#include <cstdint>
#include <span>

struct XXH3_state_s;

namespace linblock {

uint64_t checksum(std::span<const unsigned char> bytes, uint64_t seed = 0);

// The same value over bytes that arrive in pieces.
class Checksum {
 public:
  explicit Checksum(uint64_t seed = 0);
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void add(std::span<const unsigned char> bytes);
  uint64_t value() const;

 private:
  ::XXH3_state_s* state_;
};

}  // namespace linblock
