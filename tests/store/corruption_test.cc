// Every bit of every file of a store: a flipped one is found out and its file and chunk are named.
#include <gtest/gtest.h>

#include "support/damage.h"
#include "support/memory_folder.h"

namespace linblock::test {
namespace {

class EveryBit : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    rows_ = make_small_store(path_, GetParam());
    ASSERT_EQ(verified_rows(path_), rows_);
    const Store store = Store::open(path_);
    ASSERT_GE(store.chunks().size(), 4U);
    ASSERT_GE(store.features().frequent().size(), 128U);
    ASSERT_TRUE(store.info().weighted);
  }
  void TearDown() override { EXPECT_EQ(verified_rows(path_), rows_); }

  // Flips each bit of [begin, end) of a file, one at a time; `work` must find the damage and name `parts`.
  template <typename Work>
  void flip_all(const std::string& name, size_t begin, size_t end, const std::vector<std::string>& parts, Work&& work) {
    FlippableFile file(path_ + "/" + name);
    for (size_t at = begin; at < std::min(end, file.size()); ++at)
      for (unsigned bit = 0; bit < 8; ++bit) {
        file.flip(at, bit);
        const std::string wrong = damage_overlooked(parts, work);
        file.restore(at);
        ASSERT_EQ(wrong, "") << name << ", byte " << at << ", bit " << bit;
      }
  }

  const MemoryFolder folder_;
  const std::string path_ = folder_ / "store";
  std::vector<OwnedRow> rows_;
};

TEST_P(EveryBit, IsOfAFileOfThisTest) {
  auto names = small_store_files();
  names.insert(names.begin() + 1, "LOCK");
  EXPECT_EQ(names_in(path_), names);
}

TEST_P(EveryBit, OfTheManifestIsChecked) {
  flip_all("MANIFEST", 0, SIZE_MAX, {"MANIFEST"}, [&] { Store::open(path_); });
}

TEST_P(EveryBit, OfTheFeatureMapIsChecked) {
  flip_all("FEATURES", 0, SIZE_MAX, {"FEATURES"}, [&] { Store::open(path_); });
}

TEST_P(EveryBit, OfADirectoryIsChecked) {
  for (const char* name : {"segment-000001.directory", "segment-000002.directory"})
    flip_all(name, 0, SIZE_MAX, {name}, [&] { Store::open(path_); });
}

// No codec touches the header: one store is enough.
class EveryBitOfAHeader : public EveryBit {};

TEST_P(EveryBitOfAHeader, IsChecked) {
  for (const char* name : {"segment-000001.rows", "segment-000002.rows"})
    flip_all(name, 0, format::kPageBytes, {name}, [&] { Store::open(path_); });
}

TEST_P(EveryBit, OfAChunkAndItsPaddingIsChecked) {
  const Store store = Store::open(path_);
  uint64_t covered = 0;
  for (size_t number = 0; number < store.chunks().size(); ++number) {
    const ChunkInfo& chunk = store.chunks()[number];
    ASSERT_GT(chunk.extent(), chunk.stored_bytes) << "no padding to test";
    const std::string name = small_store_files()[chunk.segment == 0 ? 3 : 5];
    const std::vector<std::string> parts = {name, "chunk " + std::to_string(chunk.number) + " "};
    Chunk into;
    flip_all(name, chunk.offset, chunk.offset + chunk.extent(), parts, [&] { store.read(number, into); });
    covered += chunk.extent();
  }
  EXPECT_EQ(covered + 2 * format::kPageBytes, std::filesystem::file_size(path_ + "/segment-000001.rows") +
                                                  std::filesystem::file_size(path_ + "/segment-000002.rows"));
}

// The same from the outside: a store that was damaged while it was closed.
TEST_P(EveryBit, OfAChunkIsCheckedByVerify) {
  const Store store = Store::open(path_);
  for (const ChunkInfo& chunk : store.chunks()) {
    const std::string name = small_store_files()[chunk.segment == 0 ? 3 : 5];
    FlippableFile file(path_ + "/" + name);
    for (size_t at = chunk.offset; at < chunk.offset + chunk.extent(); at += 61) {
      file.flip(at, at % 8);
      const std::string wrong = damage_overlooked({name, "chunk " + std::to_string(chunk.number) + " "},
                                                  [&] { verify(Store::open(path_), 1 + at % 3); });
      file.restore(at);
      ASSERT_EQ(wrong, "") << name << ", byte " << at;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Store, EveryBitOfAHeader, ::testing::Values("none"));
INSTANTIATE_TEST_SUITE_P(Store, EveryBit, ::testing::Values("none", "lz4", "zstd", "zlib"),
                         [](const auto& codec) { return std::string(codec.param); });

}  // namespace
}  // namespace linblock::test
