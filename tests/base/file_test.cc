#include "base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/errors.h"
#include "support/folder.h"

namespace linblock {
namespace {

using test::fails_with;
using test::Folder;
using testing::ElementsAre;

std::vector<unsigned char> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

TEST(File, WritesAndReadsAtAnyOffset) {
  const Folder folder;
  File file = File::create(folder / "f", "");
  file.write_at(bytes_of("world"), 6);
  file.write_at(bytes_of("hello "), 0);
  std::vector<unsigned char> back(5);
  EXPECT_EQ(file.read_at(back, 6), 5U);
  EXPECT_EQ(back, bytes_of("world"));
  EXPECT_EQ(file.size(), 11U);
  EXPECT_TRUE(file.is_regular());
  file.sync();
  file.close();
  EXPECT_FALSE(file.is_open());
  EXPECT_EQ(test::read_file(folder / "f"), "hello world");
}

TEST(File, ReadsFewerBytesOnlyAtTheEnd) {
  const Folder folder;
  test::write_file(folder / "f", "abcdef");
  const File file = File::open_read(folder / "f");
  std::vector<unsigned char> back(10);
  EXPECT_EQ(file.read_at(back, 0), 6U);
  EXPECT_EQ(file.read_at(back, 4), 2U);
  EXPECT_EQ(file.read_at(back, 6), 0U);
  EXPECT_EQ(file.read_at(back, 100), 0U);
  EXPECT_EQ(file.read_next({back.data(), 4}), 4U);
  EXPECT_EQ(file.read_next({back.data(), 4}), 2U);
  EXPECT_EQ(file.read_next({back.data(), 4}), 0U);
}

TEST(File, CallsAFileThatIsTooShortDamaged) {
  const Folder folder;
  test::write_file(folder / "short", "abcdef");
  const File file = File::open_read(folder / "short");
  std::vector<unsigned char> back(4);
  file.read_exactly_at(back, 2);
  EXPECT_EQ(back, bytes_of("cdef"));
  EXPECT_THAT([&] { file.read_exactly_at(back, 3); }, fails_with(ErrorKind::damaged, folder / "short"));
  EXPECT_THAT([&] { file.read_exactly_at(back, 3); }, fails_with(ErrorKind::damaged, "cut short"));
  EXPECT_THAT([&] { file.read_exactly_at(back, 1000); }, fails_with(ErrorKind::damaged, "offset 1000"));
}

TEST(File, SaysThatAFileToReadDoesNotExist) {
  const Folder folder;
  EXPECT_THAT([&] { File::open_read(folder / "absent"); }, fails_with(ErrorKind::input, folder / "absent"));
}

TEST(File, SaysThatTheDirectoryOfANewFileDoesNotExist) {
  const Folder folder;
  EXPECT_THAT([&] { File::create(folder / "absent/f", ""); },
              fails_with(ErrorKind::io, "the directory '" + (folder / "absent") + "' does not exist"));
  EXPECT_THAT([&] { make_directory(folder / "absent/d"); },
              fails_with(ErrorKind::io, "the directory '" + (folder / "absent") + "' does not exist"));
}

TEST(File, TruncatesWhatItCreatesAnew) {
  const Folder folder;
  test::write_file(folder / "f", "something long");
  File file = File::create(folder / "f", "");
  file.write_next(bytes_of("ab"));
  file.write_next(bytes_of("c"));
  file.close();
  EXPECT_EQ(test::read_file(folder / "f"), "abc");
}

TEST(File, ClosesItsDescriptor) {
  const Folder folder;
  test::write_file(folder / "f", "x");
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = open_files();
  {
    File first = File::open_read(folder / "f");
    File second = std::move(first);
    first = File::open_read(folder / "f");
    first = std::move(second);
    EXPECT_EQ(open_files(), before + 2);
  }
  EXPECT_EQ(open_files(), before);
}

TEST(File, TellsTheKindsOfPathsApart) {
  const Folder folder;
  test::write_file(folder / "f", "x");
  EXPECT_EQ(path_kind(folder / "f"), PathKind::file);
  EXPECT_EQ(path_kind(folder.path()), PathKind::directory);
  EXPECT_EQ(path_kind("/dev/null"), PathKind::other);
  EXPECT_EQ(path_kind(folder / "absent"), PathKind::absent);
  EXPECT_EQ(path_kind(folder / "f/below"), PathKind::absent);
}

TEST(File, ListsMakesAndRemovesFolders) {
  const Folder folder;
  make_directory(folder / "d");
  EXPECT_THAT([&] { make_directory(folder / "d"); }, fails_with(ErrorKind::io, folder / "d"));
  test::write_file(folder / "d/b", "x");
  test::write_file(folder / "d/a", "x");
  EXPECT_THAT(list_directory(folder / "d"), ElementsAre("a", "b"));
  remove_empty_directory(folder / "d");
  EXPECT_EQ(path_kind(folder / "d"), PathKind::directory) << "it is not empty";
  remove_file(folder / "d/a");
  remove_file(folder / "d/b");
  remove_empty_directory(folder / "d");
  EXPECT_EQ(path_kind(folder / "d"), PathKind::absent);
  EXPECT_THAT([&] { list_directory(folder / "d"); }, fails_with(ErrorKind::io, folder / "d"));
}

TEST(File, RemovesAFileThatMayBeGoneAlready) {
  const Folder folder;
  test::write_file(folder / "f", "x");
  remove_file(folder / "f");
  EXPECT_EQ(path_kind(folder / "f"), PathKind::absent);
  EXPECT_NO_THROW(remove_file(folder / "f"));
}

TEST(File, CanHaveTwoNames) {
  const Folder folder;
  test::write_file(folder / "f", "x");
  EXPECT_TRUE(link_file(folder / "f", folder / "g"));
  EXPECT_TRUE(same_file(folder / "f", folder / "g"));
  remove_file(folder / "f");
  EXPECT_EQ(test::read_file(folder / "g"), "x");
  test::write_file(folder / "other", "precious");
  EXPECT_THAT([&] { link_file(folder / "g", folder / "other"); }, fails_with(ErrorKind::io, folder / "g"));
  EXPECT_EQ(test::read_file(folder / "other"), "precious");
  EXPECT_THAT([&] { link_file(folder / "absent", folder / "h"); }, fails_with(ErrorKind::io, folder / "absent"));
}

TEST(File, IsNotCreatedThroughALinkUnlessTheUserNamedIt) {
  const Folder folder;
  test::write_file(folder / "victim", "precious");
  std::filesystem::create_symlink(folder / "victim", folder / "link");
  EXPECT_THAT([&] { File::create(folder / "link", ""); }, fails_with(ErrorKind::usage, "is a symbolic link"));
  EXPECT_THAT([&] { File::open_update(folder / "link"); }, fails_with(ErrorKind::usage, "is a symbolic link"));
  EXPECT_EQ(test::read_file(folder / "victim"), "precious");
  File::create_output(folder / "link").close();
  EXPECT_EQ(test::read_file(folder / "victim"), "");
}

TEST(File, IsCreatedInThePlaceOfNothingButWhatBeginsTheSame) {
  const Folder folder;
  for (const char* ours : {"", "HEAD", "HEADER", "HEADER and more"}) {
    test::write_file(folder / "f", ours);
    File::create(folder / "f", "HEADER").close();
    EXPECT_EQ(test::read_file(folder / "f"), "") << ours;
  }
  for (const char* foreign : {"head", "X", "HEADless and more"}) {
    test::write_file(folder / "f", foreign);
    EXPECT_THAT([&] { File::create(folder / "f", "HEADER"); },
                fails_with(ErrorKind::usage, "linblock did not write it"));
    EXPECT_EQ(test::read_file(folder / "f"), foreign);
  }
}

TEST(File, NamesTheFolderOfAPath) {
  EXPECT_EQ(parent_directory("a/b"), "a");
  EXPECT_EQ(parent_directory("a/b/"), "a");
  EXPECT_EQ(parent_directory("/a"), "/");
  EXPECT_EQ(parent_directory("/a/b/c"), "/a/b");
  EXPECT_EQ(parent_directory("a"), ".");
  EXPECT_EQ(parent_directory("a/"), ".");
  EXPECT_EQ(parent_directory("/"), "/");
}

TEST(File, ReadsAWholeFileUpToALimit) {
  const Folder folder;
  test::write_file(folder / "f", "abcdef");
  EXPECT_EQ(read_whole_file(folder / "f", 6), bytes_of("abcdef"));
  EXPECT_THAT([&] { read_whole_file(folder / "f", 5); }, fails_with(ErrorKind::damaged, folder / "f"));
  test::write_file(folder / "empty", "");
  EXPECT_EQ(read_whole_file(folder / "empty", 5), bytes_of(""));
}

TEST(File, FindsTheFreeSpaceOfADisk) {
  const Folder folder;
  EXPECT_GT(free_disk_bytes(folder.path()), 0U);
  EXPECT_THAT([&] { free_disk_bytes(folder / "absent"); }, fails_with(ErrorKind::io, folder / "absent"));
}

}  // namespace
}  // namespace linblock
