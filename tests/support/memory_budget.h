// The real program in a memory cgroup, with --memory 16M: what the system sees it hold.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/memory_group.h"
#include "support/process.h"

namespace linblock::test {

constexpr uint64_t kMegabyte = uint64_t{1} << 20;
constexpr uint64_t kBudget = 16 * kMegabyte;
constexpr uint64_t kPageCache = 32 * kMegabyte;  // what the kernel may keep of the files, beside the process

// Shared libraries and page tables of a sanitizer are not ours.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

class SixteenMegabytes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "a sanitizer takes memory of its own";
    if (!group_.works()) GTEST_SKIP() << "memory cgroups cannot be made on this machine";
  }

  // In the cgroup, with --memory 16M; `words` name the rest.
  Ended in_sixteen_megabytes(std::vector<std::string> words) {
    words.insert(words.end(), {"--memory", "16M", "-q"});
    Process process(linblock_command(words), {.watch_memory = true, .cgroup_tasks = group_.tasks()});
    return process.wait(300);
  }
  void expect_held(const Ended& ended) {
    EXPECT_EQ(ended.exit_code, 0) << "signal " << ended.signal << ": " << ended.errors;
    ASSERT_EQ(ended.held.count("VmHWM"), 1U) << "nothing was seen of the process";
    std::string numbers;
    for (const auto& [name, bytes] : ended.held)
      if (name == "VmHWM" || name.starts_with("Rss")) numbers += name + " " + std::to_string(bytes / 1024) + " KB, ";
    EXPECT_LE(ended.held.at("VmHWM"), kBudget) << numbers << "ru_maxrss " << ended.peak_bytes / 1024 << " KB";
  }
  std::string documents(const std::string& name, uint64_t rows, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"generate", "documents",          "-o", folder_ / name,
                                      "--rows",   std::to_string(rows), "-q"};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(linblock(words).exit_code, 0);
    return folder_ / name;
  }

  const Folder folder_;
  const std::string store_ = folder_ / "store";
  const MemoryGroup group_{kBudget + kPageCache};
};

}  // namespace linblock::test
