#include "base/cgroup.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/threads.h"
#include "support/folder.h"

namespace linblock {
namespace {

// A system of our own: which groups the process is in, and files under the root of all groups.
class Cgroup : public testing::Test {
 protected:
  void in_groups(const std::string& lines) { std::ofstream(files_.groups) << lines; }
  void put(const std::string& file, const std::string& text) {
    const std::filesystem::path path = files_.root + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }

  test::Folder folder_;
  CgroupFiles files_{.groups = folder_ / "groups", .root = folder_ / "root"};
};

TEST_F(Cgroup, HasNoLimitsWhereTheSystemSaysNothing) {
  EXPECT_EQ(cgroup_memory_bytes(files_), UINT64_MAX);
  EXPECT_TRUE(std::isinf(cgroup_processors(files_)));
  in_groups("0::/a/b\n");
  EXPECT_EQ(cgroup_memory_bytes(files_), UINT64_MAX);
  EXPECT_TRUE(std::isinf(cgroup_processors(files_)));
}

TEST_F(Cgroup, ReadsTheLimitsOfVersion2) {
  in_groups("0::/user/job\n");
  put("user/job/memory.max", "max");
  put("user/job/cpu.max", "max 100000");
  EXPECT_EQ(cgroup_memory_bytes(files_), UINT64_MAX);
  EXPECT_TRUE(std::isinf(cgroup_processors(files_)));
  put("user/job/memory.max", "123456");
  put("user/job/cpu.max", "150000 100000");
  EXPECT_EQ(cgroup_memory_bytes(files_), 123456U);
  EXPECT_EQ(cgroup_processors(files_), 1.5);
}

TEST_F(Cgroup, ReadsTheLimitsOfVersion1) {
  in_groups("12:memory:/job\n4:cpu,cpuacct:/job\n3:cpuset:/\n0::/job\n");
  put("memory/job/memory.limit_in_bytes", "9223372036854771712");
  put("cpu/job/cpu.cfs_quota_us", "-1");
  put("cpu/job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cgroup_memory_bytes(files_), 9223372036854771712U);
  EXPECT_TRUE(std::isinf(cgroup_processors(files_)));
  put("memory/job/memory.limit_in_bytes", "65536");
  put("cpu/job/cpu.cfs_quota_us", "20000");
  EXPECT_EQ(cgroup_memory_bytes(files_), 65536U);
  EXPECT_EQ(cgroup_processors(files_), 0.2);
}

// A container that sees its own group as the root still reads the name that the group has outside.
TEST_F(Cgroup, TakesTheLeastLimitOfAllGroupsAbove) {
  in_groups("0::/a/b/c\n");
  put("a/b/c/cpu.max", "400000 100000");
  put("a/cpu.max", "300000 100000");
  EXPECT_EQ(cgroup_processors(files_), 3);
  put("cpu.max", "100000 50000");
  EXPECT_EQ(cgroup_processors(files_), 2);
  put("memory.max", "1000");
  put("a/b/memory.max", "2000");
  EXPECT_EQ(cgroup_memory_bytes(files_), 1000U);
}

TEST_F(Cgroup, IgnoresOtherGroupsAndLinesThatItCannotRead) {
  in_groups("7:cpuset:/job\n6:cpuacct:/job\nnonsense\n5:\n0::\n1:name=systemd:/job\n");
  put("cpu/job/cpu.cfs_quota_us", "20000");
  put("cpu/job/cpu.cfs_period_us", "100000");
  put("job/cpu.max", "50000 100000");
  EXPECT_TRUE(std::isinf(cgroup_processors(files_)));
  in_groups("0::/job\n");
  put("job/cpu.max", "50000 0");
  EXPECT_TRUE(std::isinf(cgroup_processors(files_)));
}

TEST_F(Cgroup, AllowsAsManyThreadsAsTheQuotaPaysForRoundedUp) {
  const size_t all = available_threads({.groups = folder_ / "none", .root = folder_ / "none"});
  EXPECT_GE(all, 1U);
  in_groups("0::/job\n");
  const auto with = [&](const std::string& quota) {
    put("job/cpu.max", quota + " 100000");
    return available_threads(files_);
  };
  EXPECT_EQ(with("max"), all);
  EXPECT_EQ(with("1000"), 1U);
  EXPECT_EQ(with("100000"), 1U);
  EXPECT_EQ(with("100001"), std::min<size_t>(all, 2));
  EXPECT_EQ(with("100000000"), all);
}

}  // namespace
}  // namespace linblock
