#include "base/memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <vector>

namespace linblock {
namespace {

TEST(Memory, SeesWhatIsAllocatedAndTouched) {
  constexpr size_t kBytes = size_t{64} << 20;
  const uint64_t before = resident_bytes();
  EXPECT_GT(before, 0U);
  const std::vector<char> held(kBytes, 1);
  EXPECT_EQ(held[kBytes / 2], 1);
  EXPECT_GE(resident_bytes(), before + kBytes / 2);
  EXPECT_GE(peak_resident_bytes(), before + kBytes / 2);
}

TEST(Memory, RemembersThePeak) {
  { const std::vector<char> held(size_t{96} << 20, 1); }
  EXPECT_GE(peak_resident_bytes(), size_t{96} << 20);
}

TEST(Memory, HasALimitThatThisProcessIsBelow) {
  EXPECT_GT(permitted_memory_bytes(), uint64_t{1} << 20);
  EXPECT_LT(resident_bytes(), permitted_memory_bytes());
}

TEST(Memory, IsNoMoreThanTheResourceLimitsAllow) {
  const uint64_t without = permitted_memory_bytes();
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit before{};
    ASSERT_EQ(::getrlimit(resource, &before), 0);
    const rlim_t least = without - 12345;
    if (before.rlim_max < least) GTEST_SKIP() << "the limit is lower already";
    const rlimit lower{.rlim_cur = least, .rlim_max = before.rlim_max};
    ASSERT_EQ(::setrlimit(resource, &lower), 0);
    EXPECT_EQ(permitted_memory_bytes(), least);
    ASSERT_EQ(::setrlimit(resource, &before), 0);
    EXPECT_EQ(permitted_memory_bytes(), without);
  }
}

TEST(Memory, GivesLargeBlocksBackAtOnceWhenTheHeapIsKeptSmall) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer has a heap of its own";
#endif
  keep_heap_small();
  const uint64_t before = resident_bytes();
  {
    std::vector<std::vector<char>> blocks;
    for (int i = 0; i < 128; ++i) blocks.emplace_back(size_t{512} << 10, 1);
    EXPECT_GE(resident_bytes(), before + (size_t{48} << 20));
  }
  EXPECT_LE(resident_bytes(), before + (size_t{8} << 20));
}

}  // namespace
}  // namespace linblock
