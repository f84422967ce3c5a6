// Every file of an index, and what only its manifest says: damage to any of it is found out and named.
#include <gtest/gtest.h>

#include "store/core/remove.h"
#include "support/damage.h"
#include "support/forest.h"
#include "support/memory_folder.h"

namespace linblock::test {
namespace {

class DamagedForest : public ::testing::Test {
 protected:
  void SetUp() override {
    make_small_store(store_, "none");
    remove_rows(store_, {.ids = {3, 77}});
    make_forest(store_);
    append_rows(sample_rows(60, 8, 410, 200), store_, small_options());
    make_forest(store_);
    files_ = files_of(path_);
    files_.erase("BUILT");
    ASSERT_TRUE(files_.contains(kTrees));
  }
  void TearDown() override {
    put_back();
    expect_whole(store_);
  }
  void put_back() {
    for (const auto& [name, bytes] : files_) write_file(path_ + "/" + name, bytes);
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

  static constexpr const char* kTrees = "forest-000001";
  const MemoryFolder folder_;
  const std::string store_ = folder_ / "store";
  const std::string path_ = index_path(store_);
  std::map<std::string, std::string> files_;
};

TEST_F(DamagedForest, OfAnyByteIsNamed) {
  for (const auto& [name, bytes] : files_) {
    FlippableFile file(path_ + "/" + name);
    const size_t step = name.starts_with("forest-") ? 3 : bytes.size() > 8192 ? 97 : 5;
    for (size_t at = 0; at < file.size(); at += step) {
      file.flip(at, static_cast<unsigned>(at % 8));
      const std::string wrong = damage_overlooked({name}, [&] { open_and_verify(path_); });
      file.restore(at);
      ASSERT_EQ(wrong, "") << name << ", byte " << at;
    }
  }
}

TEST_F(DamagedForest, IsFoundOutWhenItIsOpenedOrANodeIsRead) {
  const std::string whole = files_.at(kTrees);
  for (const std::string& other : {whole.substr(0, whole.size() - 1), whole + "x", std::string()}) {
    write_file(path_ + "/" + kTrees, other);
    EXPECT_EQ(damage_overlooked({kTrees, "size"}, [&] { MetricForest::open(Store::open(store_)); }), "");
  }
  std::filesystem::remove(path_ + "/" + kTrees);
  EXPECT_EQ(damage_overlooked({kTrees, "missing"}, [&] { Store::open(path_); }), "");
  put_back();
  const MetricForest forest = MetricForest::open(Store::open(store_));
  FlippableFile file(path_ + "/" + kTrees);
  file.flip(format::kForestHeaderBytes + 5, 1);
  EXPECT_EQ(damage_overlooked({kTrees, "node 0"}, [&] { forest.read_node(0); }), "");
}

TEST_F(DamagedForest, ThatContradictsTheManifestIsRefused) {
  EXPECT_EQ(overlooked([](StoreInfo& info) { ++info.forest.files[0].number; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { ++info.forest.files[0].bytes; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { ++info.forest.files[0].trees; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.forest.files[0].trees = UINT64_MAX / 8; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { --info.forest.files[0].nodes; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.forest.files[0].nodes = UINT64_MAX; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.forest.files[0].checksum ^= 1; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { std::swap(info.forest.files[0], info.forest.files[1]); }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.forest.files.pop_back(); }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.seal ^= 1; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.buckets = 2; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.removed = {.number = 1, .rows = 1}; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.largest_index = 5; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.axis = Axis::rows; }), "") << "pages are not in the order of rows";
}

// Well formed, with checksums of its own, and yet impossible.
TEST_F(DamagedForest, NodesThatMakeNoSenseAreRefused) {
  const ForestNode node = MetricForest::open(Store::open(store_)).read_node(0);
  const auto refused = [&](const std::function<void(ForestNode&)>& change) {
    ForestNode other = node;
    change(other);
    return damage_overlooked({"here"}, [&] { decode_node(encode_node(other), "here"); });
  };
  decode_node(encode_node(node), "here");
  EXPECT_EQ(refused([](ForestNode& n) { n.children[0].radius = -1; }), "");
  EXPECT_EQ(refused([](ForestNode& n) { n.children[0].radius = NAN; }), "");
  EXPECT_EQ(refused([](ForestNode& n) { n.children[0].smallest_norm = n.children[0].largest_norm * 2 + 1; }), "");
  EXPECT_EQ(refused([](ForestNode& n) { n.norm2[0] = NAN; }), "");
  EXPECT_EQ(refused([](ForestNode& n) { n.begin[0] = 1; }), "");
  EXPECT_EQ(refused([](ForestNode& n) { n.begin.back() += 1; }), "");
  EXPECT_EQ(refused([](ForestNode& n) { n.cosines.pop_back(); }), "");
  EXPECT_EQ(refused([](ForestNode& n) { n.index.push_back(1); }), "");
  EXPECT_EQ(refused([](ForestNode& n) { n = {}; }), "");
  std::vector<unsigned char> bytes = encode_node(node);
  for (size_t size = 0; size < bytes.size(); size += 3)
    ASSERT_EQ(damage_overlooked({"here"}, [&] { decode_node(std::span(bytes).first(size), "here"); }), "") << size;
}

}  // namespace
}  // namespace linblock::test
