// Locks between processes: each test forks, and the child never runs the test framework's exit code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "support/folder.h"

namespace linblock {
namespace {

using test::Folder;
using testing::HasSubstr;

// A process that has taken the lock and waits to be killed.
class Holder {
 public:
  Holder(const std::string& path, const std::string& purpose) {
    std::array<int, 2> ready{};
    if (::pipe(ready.data()) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      try {
        const FileLock lock = FileLock::acquire(path, purpose);
        if (::write(ready[1], "y", 1) == 1)
          while (true) ::pause();
      } catch (...) {
        ::_exit(1);
      }
      ::_exit(0);
    }
    ::close(ready[1]);
    char byte = 0;
    holds_ = ::read(ready[0], &byte, 1) == 1;
    ::close(ready[0]);
  }
  ~Holder() { kill(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  bool holds() const { return holds_; }
  pid_t pid() const { return pid_; }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  bool holds_ = false;
};

std::string refusal(const std::string& path) {
  try {
    const FileLock lock = FileLock::acquire(path, "second");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    return error.what();
  }
  return "";
}

TEST(FileLock, IsRefusedToASecondProcessWithTheNameOfTheFirst) {
  const Folder folder;
  const Holder holder(folder / "LOCK", "packing rows");
  ASSERT_TRUE(holder.holds());
  const std::string why = refusal(folder / "LOCK");
  EXPECT_THAT(why, HasSubstr("'" + folder.path() + "' is in use"));
  EXPECT_THAT(why, HasSubstr("process " + std::to_string(holder.pid()) + " (packing rows)"));
}

TEST(FileLock, DiesWithItsProcessHoweverItDies) {
  const Folder folder;
  Holder holder(folder / "LOCK", "a very long purpose, longer than the next one");
  ASSERT_TRUE(holder.holds());
  ASSERT_NE(refusal(folder / "LOCK"), "");
  holder.kill();
  const FileLock lock = FileLock::acquire(folder / "LOCK", "next");
  EXPECT_EQ(test::read_file(folder / "LOCK"), "process " + std::to_string(::getpid()) + " (next)");
}

TEST(FileLock, IsRefusedToTheSameProcessToo) {
  const Folder folder;
  const FileLock lock = FileLock::acquire(folder / "LOCK", "first");
  EXPECT_THAT(refusal(folder / "LOCK"), HasSubstr("(first)"));
}

TEST(FileLock, IsGivenBackWhenDestroyedAndNotWhenMoved) {
  const Folder folder;
  {
    FileLock first = FileLock::acquire(folder / "LOCK", "first");
    {
      const FileLock second = std::move(first);
      EXPECT_NE(refusal(folder / "LOCK"), "");
    }
    EXPECT_EQ(refusal(folder / "LOCK"), "");
  }
  EXPECT_EQ(refusal(folder / "LOCK"), "");
}

TEST(FileLock, IsNotHeldByAnotherFileOfTheFolder) {
  const Folder folder;
  const FileLock lock = FileLock::acquire(folder / "LOCK", "first");
  EXPECT_EQ(refusal(folder / "OTHER"), "");
}

TEST(FileLock, FailsInAFolderThatDoesNotExist) {
  const Folder folder;
  EXPECT_THAT(refusal(folder / "absent/LOCK"), HasSubstr(folder / "absent/LOCK"));
}

}  // namespace
}  // namespace linblock
