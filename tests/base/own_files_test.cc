// Which files are linblock's own: by name and by how they begin.
#include "base/own_files.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "support/errors.h"
#include "support/folder.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

std::optional<std::string_view> beginning_of(std::string_view name) {
  if (name == "MAIN") return "MAGIC";
  if (is_numbered(name, "part-")) return "";
  return {};
}

const OwnDirectory kKind{.what = "test", .beginning_of = beginning_of, .subdirectories = {"inner"}};

class OwnFiles : public testing::Test {
 protected:
  OwnFiles() {
    std::filesystem::create_directories(directory_ + "/inner");
    write_file(directory_ + "/MAIN", "MAGIC and more");
    write_file(directory_ + "/MAIN.new", "MAG");
    write_file(directory_ + "/part-000001", "anything");
    write_file(directory_ + "/inner/MAIN", std::string(20, '\0'));
  }

  void expect_refused(const std::string& name) {
    EXPECT_EQ(foreign_entry(directory_, kKind), directory_ + "/" + name);
    EXPECT_THAT([&] { remove_own_directory(directory_, kKind, "MAIN"); }, fails_with(ErrorKind::usage, name));
    EXPECT_EQ(path_kind(directory_ + "/MAIN"), PathKind::file) << "nothing is deleted";
    EXPECT_EQ(path_kind(directory_ + "/inner/MAIN"), PathKind::file) << "nothing is deleted";
  }

  const Folder folder_;
  const std::string directory_ = folder_ / "d";
};

TEST_F(OwnFiles, AreAllDeletedWithTheirDirectory) {
  EXPECT_FALSE(foreign_entry(directory_, kKind));
  remove_own_directory(directory_, kKind, "MAIN");
  EXPECT_EQ(path_kind(directory_), PathKind::absent);
}

TEST_F(OwnFiles, AreNotThoseOfAnotherName) {
  write_file(directory_ + "/notes.txt", "mine");
  expect_refused("notes.txt");
}

TEST_F(OwnFiles, AreNotThoseThatBeginInAnotherWay) {
  write_file(directory_ + "/MAIN.new", "my own words");
  expect_refused("MAIN.new");
}

TEST_F(OwnFiles, AreNotInDirectoriesThatLinblockDoesNotMake) {
  std::filesystem::create_directories(directory_ + "/other");
  expect_refused("other");
}

TEST_F(OwnFiles, AreLookedForInDirectoriesThatLinblockMakes) {
  write_file(directory_ + "/inner/notes.txt", "mine");
  expect_refused("inner/notes.txt");
}

TEST_F(OwnFiles, AreNoLinks) {
  write_file(folder_ / "victim", "MAGIC");
  std::filesystem::remove(directory_ + "/MAIN.new");
  std::filesystem::create_symlink(folder_ / "victim", directory_ + "/MAIN.new");
  expect_refused("MAIN.new");
  EXPECT_EQ(read_file(folder_ / "victim"), "MAGIC");
}

TEST_F(OwnFiles, AreDeletedFromAmongOthersOneByOne) {
  write_file(directory_ + "/notes.txt", "mine");
  remove_own_files(directory_, kKind, "MAIN");
  EXPECT_EQ(list_directory(directory_), (std::vector<std::string>{"MAIN", "notes.txt"}));
}

TEST(Numbered, NamesHaveSixDigitsOrMore) {
  EXPECT_TRUE(is_numbered("segment-000001.rows", "segment-", ".rows"));
  EXPECT_TRUE(is_numbered("removed-1234567", "removed-"));
  for (const char* other : {"removed-2024", "removed-", "removed-00000x", "removed-000001.bak", "xremoved-000001"})
    EXPECT_FALSE(is_numbered(other, "removed-")) << other;
}

}  // namespace
}  // namespace linblock
