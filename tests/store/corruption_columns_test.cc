// Every file of a column store, and what only its manifest says: damage to any of it is found out and named.
#include <gtest/gtest.h>

#include "base/checksum.h"
#include "store/core/remove.h"
#include "support/columns.h"
#include "support/damage.h"
#include "support/memory_folder.h"

namespace linblock::test {
namespace {

class DamagedColumns : public ::testing::Test {
 protected:
  void SetUp() override {
    make_small_store(store_, "none");
    remove_rows(store_, {.ids = {3, 77}});
    TransposeOptions options = small_transpose();
    options.columns_per_chunk = 40;
    transpose(Store::open(store_), options);
    columns_ = columns_in(Store::open(path_));
    files_ = files_of(path_);
  }
  void TearDown() override {
    put_back();
    open_and_verify(path_);
    EXPECT_EQ(columns_in(Store::open(path_)), columns_);
  }
  void put_back() {
    for (const auto& [name, bytes] : files_) write_file(path_ + "/" + name, bytes);
  }
  // A manifest that says something else, well formed and with a checksum of its own.
  template <typename Change>
  std::string overlooked(Change&& change) {
    StoreInfo info = read_manifest(path_);
    change(info);
    write_manifest(path_, info);
    const std::string wrong = damage_overlooked({}, [&] { open_and_verify(path_); });
    put_back();
    return wrong;
  }

  static constexpr const char* kFacts = "rows-000001";
  const MemoryFolder folder_;
  const std::string store_ = folder_ / "store";
  const std::string path_ = columns_path(store_);
  ColumnMap columns_;
  std::map<std::string, std::string> files_;
};

TEST_F(DamagedColumns, OfAnyByteAreNamed) {
  for (const auto& [name, bytes] : files_) {
    FlippableFile file(path_ + "/" + name);
    const size_t step = bytes.size() > 8192 ? 37 : 1;
    for (size_t at = 0; at < file.size(); at += step) {
      file.flip(at, static_cast<unsigned>(at % 8));
      const std::string wrong = damage_overlooked({name}, [&] { open_and_verify(path_); });
      file.restore(at);
      ASSERT_EQ(wrong, "") << name << ", byte " << at;
    }
  }
}

TEST_F(DamagedColumns, AreFoundOutWhenTheFactsAreRead) {
  const Store rows = Store::open(store_);
  const Columns columns = Columns::open(rows);
  FlippableFile file(path_ + "/" + kFacts);
  for (size_t at = 0; at < file.size(); ++at) {
    file.flip(at, 3);
    const std::string wrong = damage_overlooked({kFacts}, [&] { columns.facts(); });
    file.restore(at);
    ASSERT_EQ(wrong, "") << at;
  }
  const std::string whole = files_.at(kFacts);
  for (const std::string& other : {whole.substr(0, whole.size() - 1), whole + "x", std::string()}) {
    write_file(path_ + "/" + kFacts, other);
    EXPECT_EQ(damage_overlooked({kFacts, "size"}, [&] { columns.facts(); }), "");
  }
  std::filesystem::remove(path_ + "/" + kFacts);
  EXPECT_EQ(damage_overlooked({kFacts, "missing"}, [&] { columns.facts(); }), "");
  EXPECT_EQ(damage_overlooked({kFacts, "missing"}, [&] { Store::open(path_); }), "");
}

TEST_F(DamagedColumns, WithFactsOfAnotherStoreAreRefusedWhateverTheChecksum) {
  for (size_t at = 0; at < format::kRowFactsHeaderBytes; ++at) {
    std::string bytes = files_.at(kFacts);
    ++bytes[at];
    write_file(path_ + "/" + kFacts, bytes);
    StoreInfo info = read_manifest(path_);
    info.row_facts.checksum = checksum({reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()});
    write_manifest(path_, info);
    EXPECT_EQ(damage_overlooked({kFacts, "header"}, [&] { open_and_verify(path_); }), "") << at;
    put_back();
  }
}

TEST_F(DamagedColumns, ThatContradictTheManifestAreRefused) {
  EXPECT_EQ(overlooked([](StoreInfo& info) { ++info.columns; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { --info.columns; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.columns = UINT64_MAX; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.next_row_id = info.columns - 1; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { --info.next_row_id; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { ++info.row_facts.number; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { ++info.row_facts.rows; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.row_facts.rows = UINT64_MAX / 16; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.row_facts.weighted = false; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.row_facts.checksum ^= 1; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.largest_index = 5; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.removed = {.number = 1, .rows = 1}; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { ++info.rows, ++info.labels[0]; }), "");
}

// Only a column may go on in the next chunk: the same bytes called rows are refused.
TEST_F(DamagedColumns, PiecesAreRefusedAmongRows) {
  std::vector<OwnedRow> rows(6000);
  for (uint32_t i = 0; i < rows.size(); ++i) rows[i] = {.id = i, .label = 1, .index = {9}, .value = {0.5F + 0.1F}};
  for (uint32_t i = 0; i < rows.size(); ++i) rows[i].value[0] += static_cast<float>(i);
  const std::string path = folder_ / "long";
  pack_rows(rows, path, small_options());
  transpose(Store::open(path), small_transpose());
  StoreInfo info = read_manifest(columns_path(path));
  ASSERT_GT(info.rows, info.columns);
  open_and_verify(columns_path(path));
  info.axis = Axis::rows;
  info.next_row_id = 100;
  write_manifest(columns_path(path), info);
  EXPECT_EQ(damage_overlooked({"does not continue"}, [&] { open_and_verify(columns_path(path)); }), "");
}

TEST_F(DamagedColumns, OfAnUnknownAxisAreRefused) {
  std::string manifest = files_.at("MANIFEST");
  manifest.replace(manifest.find("\"features\""), 10, "\"featurez\"");
  const std::string body = manifest.substr(manifest.find('\n') + 1);
  const uint64_t sum = checksum({reinterpret_cast<const unsigned char*>(body.data()), body.size()});
  write_file(path_ + "/MANIFEST", fmt::format("linblock-store 1 {:016x} {}\n{}", sum, body.size(), body));
  EXPECT_EQ(damage_overlooked({"MANIFEST", "axis"}, [&] { Store::open(path_); }), "");
}

}  // namespace
}  // namespace linblock::test
