#include "base/checksum.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <string_view>
#include <vector>

namespace linblock {
namespace {

using Bytes = std::vector<unsigned char>;

Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

// Long enough to pass every path of XXH3 (16, 128, 240 bytes, then stripes).
Bytes some_bytes() {
  const auto size = *rc::gen::inRange<size_t>(0, 3000);
  return *rc::gen::container<Bytes>(size, rc::gen::arbitrary<unsigned char>());
}

RC_GTEST_PROP(Checksum, IsTheSameInPiecesAsInOne, (uint64_t seed)) {
  const Bytes bytes = some_bytes();
  Checksum pieces(seed);
  for (size_t at = 0; at < bytes.size();) {
    const size_t take = std::min(bytes.size() - at, *rc::gen::inRange<size_t>(0, 700));
    pieces.add({bytes.data() + at, take});
    at += take;
  }
  RC_ASSERT(pieces.value() == checksum(bytes, seed));
}

RC_GTEST_PROP(Checksum, ChangesWithTheSeed, (uint64_t seed)) {
  const Bytes bytes = some_bytes();
  const auto other = *rc::gen::suchThat(rc::gen::arbitrary<uint64_t>(), [&](uint64_t s) { return s != seed; });
  RC_ASSERT(checksum(bytes, seed) != checksum(bytes, other));
}

TEST(Checksum, ChangesWithAnyBit) {
  Bytes bytes(600);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 37);
  std::set<uint64_t> seen = {checksum(bytes)};
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
    EXPECT_TRUE(seen.insert(checksum(bytes)).second) << "bit " << bit;
    bytes[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
  }
}

// The values that xxhsum -H3 prints: a store packed on one machine must be read on every other.
TEST(Checksum, IsXxh3With64Bits) {
  EXPECT_EQ(checksum({}), 0x2d06800538d394c2ULL);
  EXPECT_EQ(checksum(bytes_of("abc")), 0x78af5f94892f3950ULL);
  EXPECT_EQ(checksum(bytes_of("linblock")), checksum(bytes_of("linblock"), 0));
}

TEST(Checksum, CanBeReadBeforeTheEnd) {
  const Bytes bytes = bytes_of("first and second");
  Checksum pieces(5);
  pieces.add({bytes.data(), 5});
  EXPECT_EQ(pieces.value(), checksum(bytes_of("first"), 5));
  pieces.add({bytes.data() + 5, bytes.size() - 5});
  EXPECT_EQ(pieces.value(), checksum(bytes, 5));
}

}  // namespace
}  // namespace linblock
