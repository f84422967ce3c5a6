// A Folder on a file system in memory where there is one: for tests that sync thousands of times.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "support/folder.h"

namespace linblock::test {

class TemporaryPathInMemory {
 protected:
  TemporaryPathInMemory() : old_(std::getenv("TMPDIR") == nullptr ? "" : std::getenv("TMPDIR")) {
    if (::access("/dev/shm", W_OK) == 0) ::setenv("TMPDIR", "/dev/shm", 1);
  }
  void restore() const {
    if (old_.empty())
      ::unsetenv("TMPDIR");
    else
      ::setenv("TMPDIR", old_.c_str(), 1);
  }

 private:
  std::string old_;
};

class MemoryFolder : private TemporaryPathInMemory, public Folder {
 public:
  MemoryFolder() { restore(); }
};

}  // namespace linblock::test
