// The list of removed rows, and what the manifest says of it: damage to any of it is found out and named.
#include <gtest/gtest.h>

#include "base/checksum.h"
#include "store/core/remove.h"
#include "store/core/removed_rows.h"
#include "support/damage.h"
#include "support/memory_folder.h"

namespace linblock::test {
namespace {

class DamagedRemovals : public ::testing::Test {
 protected:
  void SetUp() override {
    make_small_store(path_, "lz4");
    remove_rows(path_, {.ids = {3, 77, 200}});
    remove_rows(path_, {.ids = {5, 400}});
    rows_ = verified_rows(path_);
    files_ = files_of(path_);
  }
  // Every file back to what it was; then the store must be well again, or the test damaged more than it meant to.
  void TearDown() override {
    put_back();
    EXPECT_EQ(verified_rows(path_), rows_);
  }
  void put_back() {
    for (const char* name : {"MANIFEST", kName}) write_file(path_ + "/" + name, files_.at(name));
  }

  // A list and a manifest that agree: the work of another program, or of a bug.
  template <typename Change>
  std::string overlooked_list(Change&& change, const std::vector<std::string>& parts) {
    std::string bytes = files_.at(kName);
    change(bytes);
    write_file(path_ + "/" + kName, bytes);
    StoreInfo info = read_manifest(path_);
    info.removed.checksum = checksum({reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()});
    write_manifest(path_, info);
    const std::string wrong = damage_overlooked(parts, [&] { open_and_verify(path_); });
    put_back();
    return wrong;
  }
  template <typename Change>
  std::string overlooked(Change&& change) {
    StoreInfo info = read_manifest(path_);
    change(info);
    write_manifest(path_, info);
    const std::string wrong = damage_overlooked({}, [&] { open_and_verify(path_); });
    put_back();
    return wrong;
  }
  static void put_id(std::string& bytes, size_t place, uint64_t id) {
    std::memcpy(bytes.data() + format::kRemovedHeaderBytes + place * sizeof(id), &id, sizeof(id));
  }

  static constexpr const char* kName = "removed-000002";
  const MemoryFolder folder_;
  const std::string path_ = folder_ / "store";
  std::vector<OwnedRow> rows_;
  std::map<std::string, std::string> files_;
};

TEST_F(DamagedRemovals, OfAnyBitAreNamed) {
  for (const char* name : {kName, "MANIFEST"}) {
    FlippableFile file(path_ + "/" + name);
    for (size_t at = 0; at < file.size(); ++at)
      for (unsigned bit = 0; bit < 8; ++bit) {
        file.flip(at, bit);
        const std::string wrong = damage_overlooked({name}, [&] { Store::open(path_); });
        file.restore(at);
        ASSERT_EQ(wrong, "") << name << ", byte " << at << ", bit " << bit;
      }
  }
}

TEST_F(DamagedRemovals, OfAnyLengthAreNamed) {
  const std::string whole = files_.at(kName);
  ASSERT_EQ(whole.size(), format::kRemovedHeaderBytes + 5 * sizeof(uint64_t));
  for (size_t length = 0; length < whole.size(); ++length) {
    write_file(path_ + "/" + kName, whole.substr(0, length));
    ASSERT_EQ(damage_overlooked({kName}, [&] { Store::open(path_); }), "") << length;
  }
  for (const std::string& more : {std::string("\n"), std::string(8, '\0'), whole}) {
    write_file(path_ + "/" + kName, whole + more);
    ASSERT_EQ(damage_overlooked({kName}, [&] { Store::open(path_); }), "");
  }
}

TEST_F(DamagedRemovals, WithoutTheirFileAreNamed) {
  std::filesystem::remove(path_ + "/" + kName);
  EXPECT_EQ(damage_overlooked({kName, "missing"}, [&] { Store::open(path_); }), "");
  std::filesystem::create_directory(path_ + "/" + kName);
  EXPECT_EQ(damage_overlooked({kName}, [&] { Store::open(path_); }), "");
  std::filesystem::remove(path_ + "/" + kName);
}

TEST_F(DamagedRemovals, OfAnotherStoreOrTimeAreRefused) {
  make_small_store(folder_ / "other", "lz4", 77);
  remove_rows(folder_ / "other", {.ids = {3, 77, 200}});
  remove_rows(folder_ / "other", {.ids = {5, 400}});
  const std::string other = read_file(folder_ / "other/removed-000002");
  EXPECT_EQ(overlooked_list([&](std::string& bytes) { bytes = other; }, {kName, "header"}), "");
}

TEST_F(DamagedRemovals, WithAWrongHeaderAreRefusedWhateverTheChecksum) {
  for (size_t at = 0; at < format::kRemovedHeaderBytes; ++at)
    EXPECT_EQ(overlooked_list([&](std::string& bytes) { ++bytes[at]; }, {kName, "header"}), "") << at;
}

TEST_F(DamagedRemovals, WithRowsThatCannotBeAreRefusedWhateverTheChecksum) {
  EXPECT_EQ(overlooked_list([](std::string& bytes) { put_id(bytes, 1, 3); }, {kName, "do not increase"}), "");
  EXPECT_EQ(overlooked_list([](std::string& bytes) { put_id(bytes, 0, 300); }, {kName, "do not increase"}), "");
  EXPECT_EQ(overlooked_list([](std::string& bytes) { put_id(bytes, 4, 410); }, {kName, "not in"}), "");
  EXPECT_EQ(overlooked_list([](std::string& bytes) { put_id(bytes, 4, UINT64_MAX); }, {kName, "not in"}), "");
  // Another row of the store: the sums of the manifest tell, unless it looks the same.
  const auto all = joined(sample_rows(320, 1, 0, 200, true), sample_rows(90, 2, 320, 250));
  uint64_t other = 401;
  while (all[other].index.size() == all[400].index.size()) ++other;
  EXPECT_EQ(overlooked_list([&](std::string& bytes) { put_id(bytes, 4, other); }, {"nonzeros"}), "");
}

TEST_F(DamagedRemovals, ThatContradictTheManifestAreRefused) {
  EXPECT_EQ(overlooked([](StoreInfo& info) { --info.removed.rows, ++info.rows, ++info.labels[1]; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { ++info.removed.rows; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { ++info.removed.rows, --info.rows, --info.labels[1]; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.removed.rows = UINT64_MAX; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.removed.rows = uint64_t{1} << 61; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.removed.rows = 0; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { ++info.removed.nonzeros; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { ++info.removed.nonzeros, --info.nonzeros; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.removed.nonzeros = UINT64_MAX; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.removed.checksum ^= 1; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.removed.number = 1; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.removed.number = 3; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.removed = {}; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { ++info.rows; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { --info.labels[1], ++info.labels[-1]; }), "");
}

// The number of a list is kept when no list is left; then it names nothing.
TEST_F(DamagedRemovals, OfNoRowsHaveNoSumsEither) {
  EXPECT_EQ(overlooked([](StoreInfo& info) {
              info.rows += info.removed.rows;
              info.removed.rows = 0;
            }),
            "");
  make_small_store(folder_ / "plain", "none");
  StoreInfo info = read_manifest(folder_ / "plain");
  info.removed = {.number = 4, .checksum = 5};
  write_manifest(folder_ / "plain", info);
  EXPECT_EQ(damage_overlooked({"MANIFEST", "removed rows"}, [&] { Store::open(folder_ / "plain"); }), "");
  info.removed.checksum = 0;
  write_manifest(folder_ / "plain", info);
  Store::open(folder_ / "plain");
}

// An older manifest whose files are still there is the older state, as after a power cut.
TEST_F(DamagedRemovals, UndoneByAnOlderManifestAreUndone) {
  make_small_store(folder_ / "older", "lz4");
  const auto all = verified_rows(folder_ / "older");
  write_file(path_ + "/MANIFEST", read_file(folder_ / "older/MANIFEST"));
  EXPECT_EQ(verified_rows(path_), all);
}

// A writer that does not know of dropped segments must not write over one that a reader has open.
TEST_F(DamagedRemovals, KeepTheNumberOfTheNextSegmentInTheManifest) {
  copy_store(path_, folder_ / "dropped");
  remove_segment(folder_ / "dropped", 2);
  EXPECT_EQ(read_manifest(folder_ / "dropped").next_segment, 3U);
  EXPECT_EQ(read_manifest(folder_ / "dropped").new_segment_number(), 3U);
  append_rows(sample_rows(5, 1, 410), folder_ / "dropped", small_options());
  EXPECT_EQ(read_manifest(folder_ / "dropped").next_segment, 0U);
  EXPECT_EQ(read_manifest(folder_ / "dropped").segments.back().number, 3U);
}

}  // namespace
}  // namespace linblock::test
