// A snapshot of a store: the same rows under another name, and neither disturbs the other.
#include "store/core/store_snapshot.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "store/columns/columns.h"
#include "store/columns/transpose.h"
#include "store/core/compact.h"
#include "store/core/remove.h"
#include "store/index/build_forest.h"
#include "store/index/metric_forest.h"
#include "support/damage.h"
#include "support/faulty_work.h"
#include "support/memory_folder.h"

namespace linblock::test {
namespace {

// With the folders in it.
std::map<std::string, std::string> all_files_of(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().filename() != "LOCK")
      files[entry.path().string().substr(folder.size())] = read_file(entry.path());
  return files;
}

uint64_t inode(const std::string& path) {
  struct stat facts {};
  EXPECT_EQ(::stat(path.c_str(), &facts), 0) << path;
  return facts.st_ino;
}

class Snapshots : public ::testing::Test {
 protected:
  void SetUp() override {
    rows_ = make_small_store(store_, "lz4");
    remove_rows(store_, {.ids = {3, 77}});
    std::erase_if(rows_, [](const OwnedRow& row) { return row.id == 3 || row.id == 77; });
    transpose(Store::open(store_), {});
    build_forest(Store::open(store_), {});
    write_file(store_ + "/SOURCE", "{\n \"files\": []}\n");
  }

  const MemoryFolder folder_;
  const std::string store_ = folder_ / "store";
  const std::string copy_ = folder_ / "copy";
  std::vector<OwnedRow> rows_;
};

TEST_F(Snapshots, AreTheStoreUnderAnotherName) {
  const StoreSnapshotReport report = snapshot_store(store_, copy_);
  EXPECT_TRUE(all_files_of(copy_) == all_files_of(store_)) << ::testing::PrintToString(names_in(copy_));
  EXPECT_FALSE(std::filesystem::exists(copy_ + ".partial"));
  const Store copy = Store::open(copy_);
  EXPECT_EQ(report.id, copy.info().id);
  EXPECT_EQ(report.rows, rows_.size());
  EXPECT_EQ(verified_rows(copy_), rows_);
  EXPECT_EQ(columns_state(copy), ColumnsState::fresh);
  EXPECT_EQ(forest_state(copy), ForestState::fresh);
  open_and_verify(columns_path(copy_));
  open_and_verify(index_path(copy_));
}

TEST_F(Snapshots, ShareTheFilesThatNeverChangeAndNoOthers) {
  const StoreSnapshotReport report = snapshot_store(store_, copy_);
  uint64_t shared = 0;
  uint64_t bytes = 0;
  for (const auto& [name, text] : all_files_of(copy_)) {
    const bool replaced = name.ends_with("/MANIFEST") || name.ends_with("/BUILT") || name.ends_with("/SOURCE");
    EXPECT_EQ(inode(copy_ + name) == inode(store_ + name), !replaced) << name;
    if (replaced) continue;
    ++shared;
    bytes += text.size();
  }
  EXPECT_EQ(report.files, shared);
  EXPECT_EQ(report.bytes, bytes);
  EXPECT_NE(inode(copy_ + "/LOCK"), inode(store_ + "/LOCK"));
}

// Every command that writes to a store, on either side.
TEST_F(Snapshots, AndTheirStoresDoNotDisturbEachOther) {
  struct Change {
    const char* name;
    std::function<void(const std::string&)> work;
  };
  const std::vector<Change> changes = {
      {"append", [](const std::string& path) { append_rows(sample_rows(50, 8), path, small_options()); }},
      {"remove rows",
       [](const std::string& path) {
         remove_rows(path, {.ids = {5, 300}});
       }},
      {"remove a segment", [](const std::string& path) { remove_segment(path, 2); }},
      {"compact", [](const std::string& path) { compact(path, {}); }},
      {"transpose", [](const std::string& path) { transpose(Store::open(path), {}); }},
      {"index", [](const std::string& path) { build_forest(Store::open(path), {.force = true}); }},
      {"all",
       [](const std::string& path) {
         append_rows(sample_rows(50, 8), path, small_options());
         transpose(Store::open(path), {});
         build_forest(Store::open(path), {});
         remove_rows(path, {.ids = {5, 420}});
         compact(path, {});
         transpose(Store::open(path), {});
         build_forest(Store::open(path), {});
       }},
      {"delete", [](const std::string& path) { std::filesystem::remove_all(path); }},
  };
  const std::string old = folder_ / "old";
  copy_store(store_, old);
  for (const Change& change : changes)
    for (const bool on_the_copy : {false, true}) {
      SCOPED_TRACE(fmt::format("{} on the {}", change.name, on_the_copy ? "snapshot" : "store"));
      copy_store(old, store_);
      std::filesystem::remove_all(copy_);
      snapshot_store(store_, copy_);
      const std::string& other = on_the_copy ? store_ : copy_;
      const auto before = all_files_of(other);
      change.work(on_the_copy ? copy_ : store_);
      EXPECT_TRUE(all_files_of(other) == before);
      EXPECT_EQ(verified_rows(other), rows_);
    }
}

TEST_F(Snapshots, OfSnapshotsWork) {
  snapshot_store(store_, copy_);
  snapshot_store(copy_, folder_ / "third");
  std::filesystem::remove_all(copy_);
  EXPECT_EQ(verified_rows(folder_ / "third"), rows_);
}

TEST_F(Snapshots, TakeNoPlaceThatIsTaken) {
  const auto expect_refused = [&](const std::string& to, const std::vector<std::string>& parts) {
    const auto before = all_files_of(store_);
    expect_error(ErrorKind::usage, parts, [&] { snapshot_store(store_, to); });
    EXPECT_TRUE(all_files_of(store_) == before);
  };
  expect_refused(store_, {"exists already"});
  std::filesystem::create_directory(folder_ / "full");
  expect_refused(folder_ / "full", {"is a directory and not a store"});
  write_file(folder_ / "file", "");
  expect_refused(folder_ / "file", {"not a directory"});
  expect_refused(store_ + "/inside", {"is in a store"});
  std::filesystem::create_directory(copy_ + ".partial");
  write_file(copy_ + ".partial/letter", "mine");
  expect_refused(copy_, {"letter", "will not delete it"});
  EXPECT_EQ(read_file(copy_ + ".partial/letter"), "mine");
}

TEST_F(Snapshots, NeedAStoreOfRows) {
  expect_error(ErrorKind::input, {"does not exist"}, [&] { snapshot_store(folder_ / "none", copy_); });
  expect_error(ErrorKind::input, {"feature columns"}, [&] { snapshot_store(columns_path(store_), copy_); });
  EXPECT_FALSE(std::filesystem::exists(columns_path(store_) + "/LOCK"));
  EXPECT_FALSE(std::filesystem::exists(copy_));
  EXPECT_FALSE(std::filesystem::exists(copy_ + ".partial"));
}

TEST_F(Snapshots, OfADamagedStoreAreRefusedAndLeaveNothing) {
  std::filesystem::remove(segment_path(store_, 2));
  expect_error(ErrorKind::damaged, {"segment-000002.rows", "missing"}, [&] { snapshot_store(store_, copy_); });
  EXPECT_FALSE(std::filesystem::exists(copy_));
  EXPECT_FALSE(std::filesystem::exists(copy_ + ".partial"));
}

TEST_F(Snapshots, WaitForNoWriterAndLetNoneIn) {
  {
    const FileLock writer = FileLock::acquire(store_ + "/LOCK", "appending");
    expect_error(ErrorKind::io, {"appending"}, [&] { snapshot_store(store_, copy_); });
  }
  bool refused = false;
  {
    const ScopedHook hook([&](const FileCall& call) {
      if (call.kind == FileCall::Kind::link && !refused)
        refused = error_of([&] { FileLock::acquire(store_ + "/LOCK", "appending"); }).has_value();
      return FileVerdict{};
    });
    snapshot_store(store_, copy_);
  }
  EXPECT_TRUE(refused);
}

TEST_F(Snapshots, OnAnotherDiskAreRefusedWithAWayOut) {
  for (const int code : {EXDEV, EPERM, EOPNOTSUPP, EMLINK}) {
    const ScopedHook hook(
        [&](const FileCall& call) { return FileVerdict{.error = call.kind == FileCall::Kind::link ? code : 0}; });
    expect_error(ErrorKind::io, {"cannot share", "hard links", "choose a name on the disk of", "copy the folder"},
                 [&] { snapshot_store(store_, copy_); });
    EXPECT_FALSE(std::filesystem::exists(copy_ + ".partial"));
  }
}

// What a killed one has left goes away, and the files that it shares with the store stay whole.
TEST_F(Snapshots, AfterAKilledOneWork) {
  const auto before = all_files_of(store_);
  std::filesystem::create_directories(copy_ + ".partial/columns");
  for (const char* name : {"FEATURES", "segment-000001.rows", "segment-000001.directory", "removed-000001"})
    std::filesystem::create_hard_link(store_ + "/" + name, copy_ + ".partial/" + name);
  std::filesystem::create_hard_link(store_ + "/columns/rows-000001", copy_ + ".partial/columns/rows-000001");
  snapshot_store(store_, copy_);
  EXPECT_EQ(verified_rows(copy_), rows_);
  std::filesystem::rename(copy_, copy_ + ".partial");
  pack_rows(sample_rows(30), copy_, small_options());  // a pack that finds them there
  EXPECT_EQ(verified_rows(copy_), sample_rows(30));
  EXPECT_TRUE(all_files_of(store_) == before);
}

// A snapshot when the N-th file call fails, for every N, or the power goes at it: none, or all of it.
class FaultySnapshot : public FaultyWork<int> {
 protected:
  void SetUp() override {
    const std::string store = old_ + "/from";
    std::filesystem::create_directory(old_);
    make_small_store(store, "lz4");
    remove_rows(store, {.ids = {3, 77}});
    transpose(Store::open(store), {});
    learn_states();
  }
  void work_on(const std::string& folder) override { snapshot_store(folder + "/from", folder + "/to"); }
  std::string state_of(const std::string& folder) override {
    try {
      std::string state = fmt::format("{}\n", Store::open(folder + "/from").info().id);
      open_and_verify(folder + "/from");
      open_and_verify(columns_path(folder + "/from"));
      if (!std::filesystem::exists(folder + "/to")) return state;
      open_and_verify(folder + "/to");
      open_and_verify(columns_path(folder + "/to"));
      return state + fmt::format("{}", Store::open(folder + "/to").info().id);
    } catch (const Error& error) {
      return std::string("damaged: ") + error.what();
    }
  }
  void expect_next_try_works(const std::string& folder) override {
    FaultyWork::expect_next_try_works(folder);
    ASSERT_FALSE(std::filesystem::exists(folder + "/to.partial"));
  }
  void expect_as_before() override { EXPECT_FALSE(std::filesystem::exists(store_ + "/to.partial")); }
};

TEST_P(FaultySnapshot, IsNoneOrAllOfIt) {
  for (const bool later_calls_too : {false, true}) fail_every_call(EIO, later_calls_too, 3);
  EXPECT_GT(undone_, 20);
  EXPECT_GT(done_, 0);
}

TEST_P(FaultySnapshot, WithoutPowerIsNoneOrAllOfIt) { cut_power_at_every_call(6); }

INSTANTIATE_TEST_SUITE_P(Store, FaultySnapshot, ::testing::Values(0), [](const auto&) { return std::string("All"); });

}  // namespace
}  // namespace linblock::test
