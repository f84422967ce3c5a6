// Real refusals of the operating system: no permission, no such folder, no space.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/damage.h"

namespace linblock::test {
namespace {

TEST(Refusals, AReadOnlyFolderIsNamed) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  const Folder folder;
  std::filesystem::create_directory(folder / "locked");
  std::filesystem::permissions(folder / "locked",
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  expect_error(ErrorKind::io, {"locked", "permission"},
               [&] { pack_rows(sample_rows(10), folder / "locked/store", small_options()); });
  std::filesystem::permissions(folder / "locked", std::filesystem::perms::owner_all);
}

TEST(Refusals, AReadOnlyStoreCanBeReadAndNotAppendedTo) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  const Folder folder;
  const auto rows = sample_rows(10);
  pack_rows(rows, folder / "store", small_options());
  for (const auto& entry : std::filesystem::directory_iterator(folder / "store"))
    std::filesystem::permissions(entry.path(), std::filesystem::perms::owner_read);
  std::filesystem::permissions(folder / "store",
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  EXPECT_EQ(verified_rows(folder / "store"), rows);
  expect_error(ErrorKind::io, {"store", "permission"},
               [&] { append_rows(sample_rows(10), folder / "store", small_options()); });
  std::filesystem::permissions(folder / "store", std::filesystem::perms::owner_all);
}

class Unwritable : public ::testing::Test {
 protected:
  Unwritable() { write_file(folder_ / "data.svm", text_of(sample_rows(10))); }
  void refused(const std::string& store, ErrorKind kind, const std::vector<std::string>& parts) {
    const auto before = names_in(folder_.path());
    expect_error(kind, parts, [&] { pack({folder_ / "data.svm"}, store, small_options()); });
    EXPECT_EQ(names_in(folder_.path()), before);
  }
  const Folder folder_;
};

TEST_F(Unwritable, AFolderThatDoesNotExistIsNamed) {
  refused(folder_ / "nowhere/store", ErrorKind::io, {folder_ / "nowhere", "does not exist"});
}
TEST_F(Unwritable, APathThroughAFileIsRefused) { refused(folder_ / "data.svm/store", ErrorKind::io, {"data.svm"}); }
TEST_F(Unwritable, AnExistingFileIsRefused) { refused(folder_ / "data.svm", ErrorKind::usage, {"data.svm", "exists"}); }
TEST_F(Unwritable, ANameThatIsTooLongIsRefused) {
  refused(folder_ / std::string(300, 'n'), ErrorKind::io, {"nnnn", "too long"});
}

// A disk of a few hundred kilobytes.
class FullDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(disk_);
    if (::mount("linblock-test", disk_.c_str(), "tmpfs", 0, "size=400k") != 0)
      GTEST_SKIP() << "mounting a small file system is not permitted: " << std::strerror(errno);
    mounted_ = true;
    write_file(folder_ / "data.svm", text_of(rows_));
  }
  void TearDown() override {
    if (mounted_) {
      EXPECT_EQ(::umount(disk_.c_str()), 0) << std::strerror(errno);
    }
  }
  void pack_there(size_t threads) { pack({folder_ / "data.svm"}, disk_ + "/store", small_options("none", threads)); }

  const Folder folder_;
  const std::string disk_ = folder_ / "disk";
  bool mounted_ = false;
  const std::vector<OwnedRow> rows_ = sample_rows(3000);
};

// The store takes about 300 KB: the estimate before the work lets it through, the disk does not.
TEST_F(FullDisk, StopsPackingAndFreeingSpaceHelps) {
  for (const size_t threads : {1U, 2U}) {
    write_file(disk_ + "/ballast", std::string(180 << 10, 'x'));
    expect_error(ErrorKind::io, {disk_, "the disk is full", "free some space"}, [&] { pack_there(threads); });
    EXPECT_EQ(names_in(disk_), std::vector<std::string>{"ballast"});
    std::filesystem::remove(disk_ + "/ballast");
    pack_there(threads);
    EXPECT_TRUE(verified_rows(disk_ + "/store") == rows_);
    std::filesystem::remove_all(disk_ + "/store");
  }
}

TEST_F(FullDisk, IsNoticedBeforeTheWorkWhereItSurelyWouldNotDo) {
  write_file(disk_ + "/ballast", std::string(370 << 10, 'x'));
  PackOptions options = small_options();
  options.chunk_bytes = 64 << 10;
  expect_error(ErrorKind::io, {disk_, "would need", "free some space", "pack: output, train: store"},
               [&] { pack({folder_ / "data.svm"}, disk_ + "/store", options); });
  EXPECT_EQ(names_in(disk_), std::vector<std::string>{"ballast"});
}

TEST_F(FullDisk, WithNotOneByteLeftIsAnErrorToo) {
  write_file(disk_ + "/ballast", std::string(1 << 20, 'x'));
  ASSERT_EQ(std::filesystem::space(disk_).available, 0U);
  expect_error(ErrorKind::io, {disk_, "disk is full"}, [&] { pack_there(1); });
  EXPECT_EQ(names_in(disk_), std::vector<std::string>{"ballast"});
}

TEST_F(FullDisk, LeavesTheOldStoreWhenAnAppendDoesNotFit) {
  const std::vector<OwnedRow> old(rows_.begin(), rows_.begin() + 500);
  write_file(folder_ / "old.svm", text_of(old));
  pack({folder_ / "old.svm"}, disk_ + "/store", small_options());
  write_file(disk_ + "/ballast", std::string(150 << 10, 'x'));
  const auto before = files_of(disk_ + "/store");
  expect_error(ErrorKind::io, {disk_, "the disk is full"},
               [&] { append({folder_ / "data.svm"}, disk_ + "/store", small_options()); });
  EXPECT_TRUE(files_of(disk_ + "/store") == before);
  EXPECT_TRUE(verified_rows(disk_ + "/store") == old);
}

}  // namespace
}  // namespace linblock::test
