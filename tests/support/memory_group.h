// A memory cgroup of our own, version 1 or 2, with a limit; removed when destroyed.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace linblock::test {

class MemoryGroup {
 public:
  explicit MemoryGroup(uint64_t limit_bytes) {
    const std::string name = "/linblock-test-" + std::to_string(::getpid());
    for (const auto& [root, limit] :
         {std::pair("/sys/fs/cgroup/memory", "/memory.limit_in_bytes"), std::pair("/sys/fs/cgroup", "/memory.max")}) {
      path_ = root + name;
      if (::mkdir(path_.c_str(), 0755) != 0) continue;
      if (write(limit, limit_bytes)) return;
      ::rmdir(path_.c_str());
    }
    path_.clear();
  }
  ~MemoryGroup() {
    // A process that has just ended may still be on its way out.
    for (int i = 0; !path_.empty() && i < 200 && ::rmdir(path_.c_str()) != 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  // False where this machine does not let us make one.
  bool works() const { return !path_.empty(); }
  // Writing "0" there puts a process into the group.
  std::string tasks() const { return path_ + "/cgroup.procs"; }

 private:
  bool write(const std::string& file, uint64_t number) const {
    std::ofstream out(path_ + file);
    return static_cast<bool>(out << number << std::flush);
  }
  std::string path_;
};

}  // namespace linblock::test
