// What happens when the operating system refuses, or moves fewer bytes than asked.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cerrno>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "support/errors.h"
#include "support/folder.h"

namespace linblock {
namespace {

using test::error_of;
using test::Folder;
using Call = FileCall::Kind;

class Hooked {
 public:
  explicit Hooked(FileHook hook) { set_file_hook(std::move(hook)); }
  ~Hooked() { set_file_hook({}); }
};

std::vector<unsigned char> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

// Every call once, in a folder of its own.
void touch_everything(const std::string& folder) {
  const FileLock lock = FileLock::acquire(folder + "/LOCK", "test");
  File file = File::create(folder + "/a", "");
  file.write_at(bytes_of("abcdef"), 0);
  file.write_next(bytes_of("x"));
  file.sync();
  file.close();
  rename_path(folder + "/a", folder + "/b");
  link_file(folder + "/b", folder + "/c");
  sync_directory(folder);
  const File again = File::open_read(folder + "/b");
  std::vector<unsigned char> bytes(3);
  again.read_at(bytes, 1);
  again.read_next(bytes);
  make_directory(folder + "/d");
  list_directory(folder + "/d");
  remove_file(folder + "/b");
}

TEST(FileHook, IsToldOfEveryCallInOrder) {
  const Folder folder;
  std::vector<Call> calls;
  const Hooked hooked([&](const FileCall& call) {
    calls.push_back(call.kind);
    return FileVerdict{};
  });
  touch_everything(folder.path());
  EXPECT_EQ(calls, (std::vector<Call>{Call::lock, Call::create, Call::write, Call::write, Call::sync, Call::close,
                                      Call::rename, Call::link, Call::sync_directory, Call::open, Call::read,
                                      Call::read, Call::make_directory, Call::list, Call::remove}));
}

TEST(FileHook, MakesTheNthCallFailWithAnErrorThatNamesThePath) {
  size_t calls = 0;
  for (size_t failing = 0;; ++failing) {
    const Folder folder;
    size_t number = 0;
    std::string path;
    const Hooked hooked([&](const FileCall& call) {
      if (number++ != failing) return FileVerdict{};
      path = call.path;
      return FileVerdict{.error = EIO};
    });
    const auto error = error_of([&] { touch_everything(folder.path()); });
    if (number <= failing) break;
    ++calls;
    EXPECT_EQ(number, failing + 1) << "a call followed the failed one";
    ASSERT_TRUE(error) << "call " << failing;
    EXPECT_EQ(error->kind(), ErrorKind::io) << "call " << failing;
    EXPECT_NE(std::string(error->what()).find("'" + path + "'"), std::string::npos) << error->what();
    EXPECT_TRUE(path.starts_with(folder.path()));
  }
  EXPECT_EQ(calls, 15U);
}

TEST(FileHook, ExplainsAFullDiskAndMissingPermissions) {
  const Folder folder;
  for (const auto& [number, words] : {std::pair{ENOSPC, "the disk is full"}, {EACCES, "permissions"}}) {
    const Hooked hooked([errno_value = number](const FileCall& call) {
      return FileVerdict{.error = call.kind == Call::write ? errno_value : 0};
    });
    const auto error = error_of([&] { File::create(folder / "f", "").write_at(bytes_of("x"), 0); });
    ASSERT_TRUE(error);
    EXPECT_NE(std::string(error->what()).find(words), std::string::npos) << error->what();
  }
}

TEST(FileHook, ToldThatADiskHasNoLinksIsNoError) {
  const Folder folder;
  test::write_file(folder / "a", "x");
  for (const int number : {EXDEV, EPERM, EOPNOTSUPP, EMLINK}) {
    const Hooked hooked(
        [&](const FileCall& call) { return FileVerdict{.error = call.kind == Call::link ? number : 0}; });
    EXPECT_FALSE(link_file(folder / "a", folder / "b"));
    EXPECT_EQ(path_kind(folder / "b"), PathKind::absent);
  }
}

TEST(FileHook, TriesAnInterruptedCallAgain) {
  const Folder folder;
  size_t interrupted = 0;
  const Hooked hooked([&](const FileCall& call) {
    const bool moves = call.kind == Call::read || call.kind == Call::write;
    return FileVerdict{.error = moves && interrupted++ % 2 == 0 ? EINTR : 0};
  });
  File file = File::create(folder / "f", "");
  file.write_at(bytes_of("abc"), 0);
  file.write_next(bytes_of("xyz"));
  std::vector<unsigned char> back(3);
  EXPECT_EQ(file.read_at(back, 0), 3U);
  EXPECT_EQ(back, bytes_of("xyz"));
  EXPECT_EQ(interrupted, 6U);
}

RC_GTEST_PROP(FileHook, ShortenedReadsAndWritesStillMoveEverything, ()) {
  const Folder folder;
  const auto size = *rc::gen::inRange<size_t>(0, 300);
  const auto most = *rc::gen::inRange<uint64_t>(0, 50);  // 0 means 1
  std::vector<unsigned char> bytes(size);
  std::iota(bytes.begin(), bytes.end(), 1);
  size_t calls = 0;
  const Hooked hooked([&](const FileCall&) {
    ++calls;
    return FileVerdict{.shortened_to = most};
  });
  File file = File::create(folder / "f", "");
  file.write_at(bytes, 10);
  RC_ASSERT(calls == 1 + (size + std::max<uint64_t>(most, 1) - 1) / std::max<uint64_t>(most, 1));
  std::vector<unsigned char> back(size);
  file.read_exactly_at(back, 10);
  RC_ASSERT(back == bytes);
  file.close();
  File next = File::create(folder / "g", "");
  next.write_next(bytes);
  next.close();
  std::vector<unsigned char> read(size + 5);
  RC_ASSERT(File::open_read(folder / "g").read_next(read) == size);
  read.resize(size);
  RC_ASSERT(read == bytes);
}

TEST(FileHook, ToldOfOffsetsAndSizes) {
  const Folder folder;
  std::vector<std::pair<uint64_t, uint64_t>> places;
  const Hooked hooked([&](const FileCall& call) {
    if (call.kind == Call::write) places.emplace_back(call.offset, call.bytes);
    return FileVerdict{.shortened_to = 4};
  });
  File::create(folder / "f", "").write_at(bytes_of("0123456789"), 100);
  EXPECT_EQ(places, (std::vector<std::pair<uint64_t, uint64_t>>{{100, 10}, {104, 6}, {108, 2}}));
}

TEST(ReplaceFile, PutsNewBytesInPlaceOfOldOnes) {
  const Folder folder;
  replace_file(folder / "f", bytes_of("first"), "");
  EXPECT_EQ(test::read_file(folder / "f"), "first");
  replace_file(folder / "f", bytes_of("2nd"), "");
  EXPECT_EQ(test::read_file(folder / "f"), "2nd");
  EXPECT_EQ(list_directory(folder.path()), std::vector<std::string>{"f"});
}

// Up to and including the rename; the sync of the folder comes after it, when readers already see the new bytes.
TEST(ReplaceFile, LeavesTheOldBytesWhenAnyCallFails) {
  std::vector<Call> failed;
  for (size_t failing = 0;; ++failing) {
    const Folder folder;
    test::write_file(folder / "f", "old");
    size_t number = 0;
    std::optional<Error> error;
    {
      const Hooked hooked([&](const FileCall& call) {
        if (number++ != failing) return FileVerdict{};
        failed.push_back(call.kind);
        return FileVerdict{.error = ENOSPC};
      });
      error = error_of([&] { replace_file(folder / "f", bytes_of("brand new"), ""); });
    }
    if (number <= failing) break;
    ASSERT_TRUE(error) << "call " << failing;
    EXPECT_EQ(error->kind(), ErrorKind::io);
    EXPECT_EQ(test::read_file(folder / "f"), failed.back() == Call::sync_directory ? "brand new" : "old");
    replace_file(folder / "f", bytes_of("next try"), "");
    EXPECT_EQ(test::read_file(folder / "f"), "next try") << "what the failure left is in the way";
    EXPECT_EQ(list_directory(folder.path()), std::vector<std::string>{"f"});
  }
  EXPECT_EQ(failed, (std::vector<Call>{Call::create, Call::write, Call::sync, Call::close, Call::rename,
                                       Call::sync_directory}));
}

TEST(ReplaceFile, SyncsTheBytesBeforeTheRenameAndTheFolderAfterIt) {
  const Folder folder;
  std::vector<std::pair<Call, std::string>> calls;
  const Hooked hooked([&](const FileCall& call) {
    calls.emplace_back(call.kind, call.target.empty() ? call.path : call.target);
    return FileVerdict{};
  });
  replace_file(folder / "f", bytes_of("bytes"), "");
  const std::string temporary = folder / "f.new";
  EXPECT_EQ(calls, (std::vector<std::pair<Call, std::string>>{
                       {Call::create, temporary},
                       {Call::write, temporary},
                       {Call::sync, temporary},
                       {Call::close, temporary},
                       {Call::rename, folder / "f"},
                       {Call::sync_directory, folder.path()},
                   }));
}

}  // namespace
}  // namespace linblock
