#include "base/bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "support/errors.h"

namespace linblock {
namespace {

using test::fails_with;

TEST(Bytes, ReadsSizesInPowersOf1024) {
  const std::vector<std::pair<std::string, uint64_t>> cases = {
      {"0", 0},
      {"1", 1},
      {"4096", 4096},
      {"7B", 7},
      {"3K", 3 << 10},
      {"3k", 3 << 10},
      {"3KB", 3 << 10},
      {"64M", uint64_t{64} << 20},
      {"64mb", uint64_t{64} << 20},
      {"1G", uint64_t{1} << 30},
      {"2T", uint64_t{2} << 40},
      {"9223372036854775807", INT64_MAX},
      {"8388607T", uint64_t{8388607} << 40},
  };
  for (const auto& [text, bytes] : cases) EXPECT_EQ(read_size(text), bytes) << text;
}

TEST(Bytes, RefusesWhatIsNotASizeAndNamesTheOption) {
  for (const char* text : {"", "K", "x", "-1", "+1", " 1", "1 ", "1 G", "1.5G", "1X", "1KK", "1GiB", "0x10", "1BB",
                           "9223372036854775808", "18446744073709551616", "8388608T", "99999999999999999999G"}) {
    EXPECT_FALSE(read_size(text)) << text;
  }
}

TEST(Bytes, RefusesASizeBeyondItsLimitAsDamage) {
  EXPECT_EQ(checked_size(0, 0, "a field"), 0U);
  EXPECT_EQ(checked_size(17, 17, "a field"), 17U);
  EXPECT_THAT([] { checked_size(18, 17, "a field"); }, fails_with(ErrorKind::damaged, "a field claims 18"));
  EXPECT_THAT([] { checked_size(UINT64_MAX, 17, "a field"); }, fails_with(ErrorKind::damaged, "17"));
}

TEST(Bytes, RoundsUpToMultiples) {
  EXPECT_EQ(round_up(0, 16), 0);
  EXPECT_EQ(round_up(1, 16), 16);
  EXPECT_EQ(round_up(16, 16), 16);
  EXPECT_EQ(round_up<uint64_t>(4097, 4096), 8192U);
}

TEST(Bytes, StoresAndLoadsLittleEndianAtAnyAddress) {
  std::array<unsigned char, 12> bytes{};
  store_le(bytes.data() + 3, uint32_t{0x01020304});
  EXPECT_EQ(bytes[3], 4);
  EXPECT_EQ(bytes[6], 1);
  EXPECT_EQ(load_le<uint32_t>(bytes.data() + 3), 0x01020304U);
  EXPECT_EQ(load_le<uint16_t>(bytes.data() + 5), 0x0102U);
}

TEST(Bytes, WritesSizesForPeople) {
  EXPECT_EQ(human_bytes(0), "0 bytes");
  EXPECT_EQ(human_bytes(1023), "1023 bytes");
  EXPECT_EQ(human_bytes(1024), "1.0 KB");
  EXPECT_EQ(human_bytes(1536), "1.5 KB");
  EXPECT_EQ(human_bytes(20 << 10), "20 KB");
  EXPECT_EQ(human_bytes(uint64_t{3} << 30), "3.0 GB");
  EXPECT_EQ(human_bytes(uint64_t{5000} << 40), "5000 TB");
}

TEST(Bytes, NamesASizeThatIsEnough) {
  EXPECT_EQ(size_of_at_least(0), "1M");
  EXPECT_EQ(size_of_at_least(16 << 20), "16M");
  EXPECT_EQ(size_of_at_least((16 << 20) + 1), "17M");
  EXPECT_EQ(read_size(size_of_at_least(uint64_t{3} << 40)), uint64_t{3} << 40);
}

TEST(Bytes, GroupsDigitsForPeople) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(1234567), "1,234,567");
}

RC_GTEST_PROP(Buffer, HasZeroedSlackBehindAnySizeAndPageAlignment, ()) {
  Buffer buffer;
  for (const uint16_t bytes : *rc::gen::container<std::vector<uint16_t>>(rc::gen::arbitrary<uint16_t>())) {
    buffer.resize(bytes);
    RC_ASSERT(buffer.size() == bytes);
    RC_ASSERT(buffer.capacity() >= bytes + Buffer::kSlack);
    RC_ASSERT(reinterpret_cast<uintptr_t>(buffer.data()) % 4096 == 0);
    const unsigned char* slack = buffer.data() + bytes;
    RC_ASSERT(std::all_of(slack, slack + Buffer::kSlack, [](unsigned char byte) { return byte == 0; }));
    std::fill(buffer.data(), buffer.data() + bytes + Buffer::kSlack, 0xff);
  }
}

RC_GTEST_PROP(Buffer, KeepsItsContentsWhenItGrows, ()) {
  const size_t before = *rc::gen::inRange<size_t>(0, 20000);
  const size_t after = before + *rc::gen::inRange<size_t>(0, 20000);
  Buffer buffer(before);
  std::iota(buffer.data(), buffer.data() + before, 7);
  const std::vector<unsigned char> held(buffer.data(), buffer.data() + before);
  buffer.grow(after);
  RC_ASSERT(buffer.size() == after);
  RC_ASSERT(std::equal(held.begin(), held.end(), buffer.data()));
  const unsigned char* slack = buffer.data() + after;
  RC_ASSERT(std::all_of(slack, slack + Buffer::kSlack, [](unsigned char byte) { return byte == 0; }));
}

TEST(Buffer, KeepsItsMemoryWhenItShrinksAndGivesItBackWhenReleased) {
  Buffer buffer(100000);
  const size_t capacity = buffer.capacity();
  const unsigned char* memory = buffer.data();
  buffer.resize(10);
  EXPECT_EQ(buffer.capacity(), capacity);
  EXPECT_EQ(buffer.data(), memory);
  buffer.release();
  EXPECT_EQ(buffer.capacity(), 0U);
  EXPECT_EQ(buffer.size(), 0U);
  EXPECT_EQ(buffer.data(), nullptr);
}

TEST(Buffer, GrowsAtLeastToTwiceItsCapacitySoThatManyStepsAreCheap) {
  Buffer buffer(10);
  size_t moves = 0;
  for (size_t bytes = 10; bytes < 1000000; bytes += 100) {
    const unsigned char* memory = buffer.data();
    buffer.grow(bytes);
    moves += buffer.data() != memory ? 1 : 0;
  }
  EXPECT_LE(moves, 10U);
}

TEST(Buffer, IsEmptyAfterItWasMovedFromAndCanBeUsedAgain) {
  Buffer first(100);
  const Buffer second = std::move(first);
  EXPECT_EQ(second.size(), 100U);
  // NOLINTBEGIN(bugprone-use-after-move): the state after a move is what is tested.
  ASSERT_EQ(first.data(), nullptr);
  EXPECT_EQ(first.size(), 0U);
  ASSERT_EQ(first.capacity(), 0U) << "the next resize would believe that it has memory";
  first.resize(50);
  EXPECT_NE(first.data(), nullptr);
  // NOLINTEND(bugprone-use-after-move)
}

}  // namespace
}  // namespace linblock
