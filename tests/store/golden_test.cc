// Stores written once and kept: whatever changes in the code, they can still be read.
//
// To write them anew after a change of format (and of format::kVersion):
//   store_tests --gtest_also_run_disabled_tests --gtest_filter='*WriteGoldenStores'
#include <gtest/gtest.h>

#include <set>

#include "base/bytes.h"
#include "store/core/compact.h"
#include "support/packing.h"

namespace linblock::test {
namespace {

class Golden : public ::testing::TestWithParam<const char*> {
 protected:
  std::string folder() const { return std::string(LINBLOCK_GOLDEN) + "/v1-" + GetParam(); }
  std::string store() const { return folder() + "/store"; }
  std::string expected_text() const { return read_file(folder() + "/first.svm") + read_file(folder() + "/second.svm"); }
};

TEST_P(Golden, StoreOpensAndVerifies) {
  const Store opened = Store::open(store());
  EXPECT_EQ(verify(opened, 1).rows, opened.info().rows);
  EXPECT_EQ(codec_name(opened.info().codec), GetParam());
  EXPECT_EQ(opened.info().segments.size(), 2U);
  EXPECT_GE(opened.features().frequent().size(), 128U);
}

TEST_P(Golden, StoreHoldsTheTextItWasMadeFrom) {
  std::string text;
  std::string weights;
  unpack(
      Store::open(store()), [&](std::string_view piece) { text += piece; },
      [&](std::string_view piece) { weights += piece; });
  EXPECT_TRUE(text == expected_text());
  EXPECT_TRUE(weights == read_file(folder() + "/weights"));
}

TEST_P(Golden, StoreCanBeAppendedTo) {
  const Folder folder;
  copy_store(store(), folder / "copy");
  write_file(folder / "more.svm", "7 3:0.5 99999:1\n");
  append({folder / "more.svm"}, folder / "copy", small_options());
  const Store opened = Store::open(folder / "copy");
  verify(opened, 1);
  EXPECT_TRUE(unpacked(opened) == expected_text() + "7 3:0.5 99999:1\n");
}

// What an older store does not know stays unknown until all of its rows are read.
TEST_P(Golden, StoreLearnsItsSquaresWhenItIsCompacted) {
  const Folder folder;
  copy_store(store(), folder / "copy");
  EXPECT_FALSE(Store::open(folder / "copy").info().values);
  write_file(folder / "more.svm", "7 3:0.5 99999:1\n");
  append({folder / "more.svm"}, folder / "copy", small_options());
  EXPECT_FALSE(Store::open(folder / "copy").info().values);
  compact(folder / "copy", {});
  const Store opened = Store::open(folder / "copy");
  ASSERT_TRUE(opened.info().values);
  double squares = 0;
  for (const OwnedRow& row : rows_by_chunk(opened)) squares += squares_of({row});
  EXPECT_NEAR(opened.info().values->squares, squares, 1e-9 * squares);
  EXPECT_TRUE(opened.info().values->negative);
}

TEST_P(Golden, StoreHasTheRowsItAlwaysHad) {
  const auto rows = rows_by_chunk(Store::open(store()));
  ASSERT_EQ(rows.size(), 671U);
  for (size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(rows[i].id, i);
  EXPECT_EQ(line_of(rows[0]), "-1 4294967294:1\n");
  EXPECT_EQ(rows[0].weight, 0.25F);
  EXPECT_EQ(line_of(rows[1]), "1 1:1e-45 2:-3.4e+38 70000:0.1\n");
  EXPECT_EQ(line_of(rows[670]), "5\n");
}

// Nearly every way a chunk can be written is in these stores: (section, encoding), as docs/format.md lists them.
TEST(GoldenStores, HaveChunksOfManyKinds) {
  std::set<std::pair<int, int>> found;
  for (const char* codec : {"none", "lz4", "zstd", "zlib"}) {
    const Store store = Store::open(std::string(LINBLOCK_GOLDEN) + "/v1-" + codec + "/store");
    Chunk chunk;
    for (size_t number = 0; number < store.chunks().size(); ++number) {
      store.read(number, chunk);
      const unsigned char* raw = chunk.raw().data();
      std::set<int> absent = {1, 3, 7};  // ids, weights, values
      for (uint32_t i = 0; i < load_le<uint32_t>(raw + 16); ++i) {
        const unsigned char* entry = raw + format::kChunkHeaderBytes + i * format::kSectionEntryBytes;
        found.emplace(load_le<uint16_t>(entry), load_le<uint16_t>(entry + 2));
        absent.erase(load_le<uint16_t>(entry));
      }
      for (const int section : absent) found.emplace(section, -1);
    }
  }
  using Kinds = std::vector<std::pair<int, int>>;
  for (const auto& expected : Kinds{{1, -1},
                                    {1, 1},
                                    {2, 0},
                                    {2, 1},
                                    {2, 2},
                                    {3, -1},
                                    {3, 0},
                                    {4, 0},
                                    {4, 1},
                                    {4, 2},
                                    {5, 0},
                                    {5, 1},
                                    {5, 2},
                                    {7, -1},
                                    {7, 1},
                                    {7, 2},
                                    {7, 3}})
    EXPECT_EQ(found.count(expected), 1U) << "section " << expected.first << ", encoding " << expected.second;
}

// Rows with some features each, values as `value` gives them.
template <typename Value>
void add_rows(std::vector<OwnedRow>& rows, size_t count, size_t features, int32_t labels, Value&& value) {
  Random random(rows.size() + 1);
  for (size_t i = 0; i < count; ++i) {
    OwnedRow row{rows.size(), static_cast<int32_t>(i % static_cast<size_t>(labels)) * 2 - 1, 1, {}, {}};
    uint32_t index = 0;
    for (size_t k = 0; k < features; ++k) {
      index += 1 + static_cast<uint32_t>(random.below(240 / features));
      row.index.push_back(index);
      row.value.push_back(value(i, random));
    }
    rows.push_back(row);
  }
}

void write_golden_store(const std::string& codec) {
  const std::string folder = std::string(LINBLOCK_GOLDEN) + "/v1-" + codec;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::vector<OwnedRow> first;
  add_rows(first, 40, 20, 2, [](size_t, Random& random) { return static_cast<float>(random.unit()); });
  for (OwnedRow& row : first) row.weight = static_cast<float>(row.id % 4 + 1) / 4;
  first[0] = {0, -1, 0.25F, {4294967294U}, {1}};
  first[1] = {1, 1, 0.5F, {1, 2, 70000}, {1e-45F, -3.4e38F, 0.1F}};
  add_rows(first, 450, 2, 1, [](size_t i, Random&) { return static_cast<float>(i % 7) + 0.5F; });
  for (size_t i = 40; i < first.size(); ++i) first[i].index = {3, 9};
  add_rows(first, 60, 20, 3, [](size_t, Random& random) { return static_cast<float>(random.below(5)); });
  std::vector<OwnedRow> second;
  add_rows(second, 120, 16, 5, [](size_t, Random&) { return 1.0F; });
  for (uint32_t index = 1; index <= 300; ++index) second[7].index.push_back(1000 + 7 * index);
  second[7].value.resize(second[7].index.size(), 1.0F);
  second.push_back({0, 5, 1, {}, {}});
  write_file(folder + "/first.svm", text_of(first));
  write_file(folder + "/second.svm", text_of(second));
  write_file(folder + "/weights", weights_of(first) + weights_of(second));
  const Folder scratch;
  PackOptions options = small_options(codec);
  options.shuffle = codec == "none" || codec == "zstd";
  options.weights = scratch / "weights";
  write_file(options.weights, weights_of(first));
  pack({folder + "/first.svm"}, folder + "/store", options);
  options.weights.clear();
  append({folder + "/second.svm"}, folder + "/store", options);
  std::filesystem::remove(folder + "/store/LOCK");
}

TEST(GoldenStores, DISABLED_WriteGoldenStores) {
  for (const char* codec : {"none", "lz4", "zstd", "zlib"}) write_golden_store(codec);
}

// Version 2: labels that are words.
class GoldenWords : public ::testing::Test {
 protected:
  const std::string golden_ = std::string(LINBLOCK_GOLDEN) + "/v2-words";
  std::string expected_text() const { return read_file(golden_ + "/first.svm") + read_file(golden_ + "/second.svm"); }
};

TEST_F(GoldenWords, StoreHoldsTheTextItWasMadeFrom) {
  const Store opened = Store::open(golden_ + "/store");
  EXPECT_EQ(verify(opened, 1).rows, opened.info().rows);
  EXPECT_TRUE(read_file(golden_ + "/store/MANIFEST").starts_with("linblock-store 2 "));
  EXPECT_EQ(opened.info().label_names.text(), "spam ham 1 na\xC3\xAFve C#");
  EXPECT_EQ(opened.info().segments.size(), 2U);
  EXPECT_TRUE(unpacked(opened) == expected_text());
}

TEST_F(GoldenWords, StoreCanBeAppendedToAndCompacted) {
  const Folder folder;
  copy_store(golden_ + "/store", folder / "copy");
  write_file(folder / "more.svm", "ham 3:0.5 99999:1\neggs\n");
  append({folder / "more.svm"}, folder / "copy", small_options());
  compact(folder / "copy", {});
  const Store opened = Store::open(folder / "copy");
  verify(opened, 1);
  EXPECT_EQ(opened.info().label_names.text(), "spam ham 1 na\xC3\xAFve C# eggs");
  EXPECT_TRUE(unpacked(opened) == expected_text() + "ham 3:0.5 99999:1\neggs\n");
}

TEST(GoldenStores, DISABLED_WriteGoldenWords) {
  const std::string folder = std::string(LINBLOCK_GOLDEN) + "/v2-words";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::vector<std::string> words = {"spam", "ham", "1", "na\xC3\xAFve", "C#"};
  std::vector<std::string> texts(2);
  for (const OwnedRow& row : sample_rows(200)) {
    const std::string line = line_of(row);
    const size_t segment = row.id < 150 ? 0 : 1;
    texts[segment] +=
        words[(row.id * row.id + row.id / 2) % (3 + 2 * segment)] + line.substr(line.find_first_of(" \n"));
  }
  write_file(folder + "/first.svm", texts[0]);
  write_file(folder + "/second.svm", texts[1]);
  pack({folder + "/first.svm"}, folder + "/store", small_options());
  append({folder + "/second.svm"}, folder + "/store", small_options());
  std::filesystem::remove(folder + "/store/LOCK");
}

INSTANTIATE_TEST_SUITE_P(Store, Golden, ::testing::Values("none", "lz4", "zstd", "zlib"),
                         [](const auto& codec) { return std::string(codec.param); });

}  // namespace
}  // namespace linblock::test
