// A directory in memory for targets whose code reads files by name.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace linblock::fuzz {

inline void require(bool promise) {
  if (!promise) std::abort();
}

class MemoryDirectory {
 public:
  MemoryDirectory() {
    std::string pattern = std::filesystem::exists("/dev/shm") ? "/dev/shm/linblock-fuzz-XXXXXX" : "/tmp/fuzz-XXXXXX";
    require(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~MemoryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MemoryDirectory(const MemoryDirectory&) = delete;
  MemoryDirectory& operator=(const MemoryDirectory&) = delete;

  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  require(file.good());
}

inline std::string read_file(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

}  // namespace linblock::fuzz
