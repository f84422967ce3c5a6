// What goes into a store comes out again, whatever the options.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "store/core/store_writer.h"
#include "support/arbitrary_rows.h"
#include "support/memory_folder.h"
#include "support/packing.h"

namespace linblock::test {
namespace {

rc::Gen<PackOptions> any_options() {
  return rc::gen::map(
      rc::gen::tuple(rc::gen::element<std::string>("none", "lz4", "zstd", "zlib"), rc::gen::element<size_t>(1, 2, 3, 7),
                     rc::gen::element<uint64_t>(4096, 4097, 10000, 65536, 1 << 20), rc::gen::arbitrary<bool>(),
                     rc::gen::arbitrary<uint64_t>()),
      [](const auto& parts) {
        PackOptions options = small_options(std::get<0>(parts), std::get<1>(parts));
        options.chunk_bytes = std::get<2>(parts);
        options.shuffle = std::get<3>(parts);
        options.seed = std::get<4>(parts);
        return options;
      });
}

// Unit length, computed here: in double, each value rounded once.
std::vector<OwnedRow> normalized(std::vector<OwnedRow> rows) {
  for (OwnedRow& row : rows) {
    double sum = 0;
    for (const float value : row.value) sum += static_cast<double>(value) * static_cast<double>(value);
    if (sum == 0) continue;
    for (float& value : row.value) value = static_cast<float>(static_cast<double>(value) * (1 / std::sqrt(sum)));
  }
  return rows;
}

RC_GTEST_PROP(RoundTrip, TextComesBackAsTheSameRows, ()) {
  const bool weighted = *rc::gen::arbitrary<bool>();
  const auto rows = *arbitrary_rows(*rc::gen::element<uint32_t>(0, 1), weighted);
  PackOptions options = *any_options();
  options.normalize = *rc::gen::arbitrary<bool>();
  const MemoryFolder folder;
  if (weighted) options.weights = folder / "weights";
  const PackReport report = pack_rows(rows, folder / "store", options);
  RC_ASSERT(report.rows == rows.size());
  const Store store = Store::open(folder / "store");
  RC_ASSERT(verify(store, 2).rows == rows.size());
  RC_ASSERT(store.info().weighted == weighted);
  RC_ASSERT(store.info().normalized == options.normalize);
  const std::vector<OwnedRow> expected = options.normalize ? normalized(rows) : rows;
  RC_ASSERT(same_rows(rows_by_chunk(store), expected));
  RC_ASSERT(same_rows(rows_by_chunk(store, true), expected));
  RC_ASSERT(same_rows(rows_in_order(store), expected));
}

RC_GTEST_PROP(RoundTrip, RowsOfAWriterComeBack, ()) {
  const auto rows = *arbitrary_rows(*rc::gen::element<uint32_t>(0, 1), *rc::gen::arbitrary<bool>());
  StoreOptions options{.seed = *rc::gen::arbitrary<uint64_t>(),
                       .shuffle = *rc::gen::arbitrary<bool>(),
                       .buckets = *rc::gen::inRange<uint32_t>(1, 20),
                       .chunk_bytes = *rc::gen::inRange<uint64_t>(4096, 20000),
                       .codec = *rc::gen::element(Codec::none, Codec::lz4, Codec::zstd, Codec::zlib)};
  const MemoryFolder folder;
  {
    StoreWriter writer(folder / "store");
    writer.begin(options);
    for (const OwnedRow& row : rows) writer.add(row.view());
    writer.commit();
  }
  const Store store = Store::open(folder / "store");
  verify(store, 1);
  RC_ASSERT(same_rows(rows_by_chunk(store), rows));
  RC_ASSERT(same_rows(rows_in_order(store), rows));
}

RC_GTEST_PROP(RoundTrip, UnpackWritesTheInputAndPacksToTheSameSegment, ()) {
  const auto rows = *arbitrary_rows();
  const PackOptions options = *any_options();
  const MemoryFolder folder;
  pack_rows(rows, folder / "store", options);
  const std::string text = unpacked(Store::open(folder / "store"));
  RC_ASSERT(text == text_of(rows));
  write_file(folder / "again.svm", text);
  pack({folder / "again.svm"}, folder / "again", options);
  RC_ASSERT(files_of(folder / "again") == files_of(folder / "store"));
}

// Several pieces of text, many chunks, a feature map.
std::string large_text() { return text_of(sample_rows(15000, 9, 0, 3000)); }

TEST(RoundTrip, EveryFileIsTheSameForAnyNumberOfThreads) {
  const Folder folder;
  write_file(folder / "data.svm", large_text());
  ASSERT_GT(std::filesystem::file_size(folder / "data.svm"), 10 * 128 * 1024U);
  for (const char* codec : {"none", "lz4", "zstd", "zlib"}) {
    pack({folder / "data.svm"}, folder / codec, small_options(codec, 1));
    const auto expected = files_of(folder / codec);
    ASSERT_GT(Store::open(folder / codec).chunks().size(), 100U);
    ASSERT_GE(Store::open(folder / codec).features().frequent().size(), 128U);
    for (const size_t threads : {2U, 3U, 7U}) {
      const std::string path = folder / (codec + std::to_string(threads));
      pack({folder / "data.svm"}, path, small_options(codec, threads));
      EXPECT_TRUE(files_of(path) == expected) << codec << ", " << threads << " threads";
    }
  }
}

TEST(RoundTrip, TheCodecChangesNeitherChunksNorRows) {
  const Folder folder;
  write_file(folder / "data.svm", large_text());
  pack({folder / "data.svm"}, folder / "none", small_options("none", 2));
  const Store plain = Store::open(folder / "none");
  for (const char* codec : {"lz4", "zstd", "zlib"}) {
    pack({folder / "data.svm"}, folder / codec, small_options(codec, 2));
    const Store store = Store::open(folder / codec);
    ASSERT_EQ(store.chunks().size(), plain.chunks().size());
    for (size_t i = 0; i < store.chunks().size(); ++i) {
      EXPECT_EQ(store.chunks()[i].first_row, plain.chunks()[i].first_row);
      EXPECT_EQ(store.chunks()[i].rows, plain.chunks()[i].rows);
      EXPECT_EQ(store.chunks()[i].raw_bytes, plain.chunks()[i].raw_bytes);
    }
    EXPECT_EQ(unpacked(store), large_text()) << codec;
  }
}

TEST(RoundTrip, AnotherSeedPutsRowsElsewhereAndKeepsThem) {
  const Folder folder;
  const auto rows = sample_rows(3000);
  PackOptions options = small_options();
  pack_rows(rows, folder / "one", options);
  options.seed = 2;
  pack_rows(rows, folder / "two", options);
  EXPECT_EQ(rows_by_chunk(Store::open(folder / "two")), rows);
  EXPECT_NE(files_of(folder / "one")["segment-000001.rows"], files_of(folder / "two")["segment-000001.rows"]);
}

TEST(RoundTrip, TheLargestFloatsComeBack) {
  const Folder folder;
  constexpr float kLargest = std::numeric_limits<float>::max();
  const std::vector<OwnedRow> rows = {{0, 1, kLargest, {1, 2}, {kLargest, 0.5F}}, {1, -1, 1, {1, 2}, {-kLargest, 1}}};
  pack_rows(rows, folder / "store", small_options());
  EXPECT_EQ(verified_rows(folder / "store"), rows);
}

TEST(RoundTrip, RowsFromTwoFilesAreNumberedOn) {
  const Folder folder;
  const auto first = sample_rows(100, 1);
  const auto second = sample_rows(50, 2, 100);
  write_file(folder / "a", text_of(first));
  write_file(folder / "b", text_of(second));
  pack({folder / "a", folder / "b"}, folder / "store", small_options());
  EXPECT_EQ(verified_rows(folder / "store"), joined(first, second));
}

TEST(RoundTrip, RowIdsHaveSixtyFourBits) {
  const Folder folder;
  const auto old = sample_rows(10);
  pack_rows(old, folder / "store", small_options());
  constexpr uint64_t kFar = (uint64_t{1} << 40) + 12345;
  StoreInfo info = read_manifest(folder / "store");
  info.next_row_id = kFar;
  write_manifest(folder / "store", info);
  const auto added = sample_rows(2000, 5, kFar);
  append_rows(added, folder / "store", small_options());
  EXPECT_EQ(verified_rows(folder / "store"), joined(old, added));
  const Store store = Store::open(folder / "store");
  EXPECT_EQ(rows_by_chunk(store), joined(old, added));
  RowBlock block;
  store.gather(std::vector<uint64_t>{3, kFar, kFar + 1999}, block);
  RowBuffer buffer;
  ASSERT_EQ(block.size(), 3U);
  EXPECT_EQ(original(block.row(2, buffer), store.features()), added.back());
}

// --- the index base ------------------------------------------------------------------------------------------------

int base_of(const std::string& text, int given, uint64_t* features = nullptr) {
  const Folder folder;
  write_file(folder / "data", text);
  PackOptions options = small_options();
  options.index_base = given;
  pack({folder / "data"}, folder / "store", options);
  const Store store = Store::open(folder / "store");
  if (features != nullptr) *features = store.info().features();
  return store.info().index_base;
}

TEST(RoundTrip, TheIndexBaseIsZeroWhereIndexZeroOccurs) {
  uint64_t features = 0;
  EXPECT_EQ(base_of("1 0:1 4:1\n-1 2:1\n", -1, &features), 0);
  EXPECT_EQ(features, 5U);
}

TEST(RoundTrip, TheIndexBaseIsOneWhereIndexZeroDoesNotOccur) {
  uint64_t features = 0;
  EXPECT_EQ(base_of("1 1:1 4:1\n-1 2:1\n", -1, &features), 1);
  EXPECT_EQ(features, 4U);
}

TEST(RoundTrip, AnIndexZeroFarIntoTheDataStillMakesTheBaseZero) {
  std::string text;
  for (int i = 0; i < 300000; ++i) text += "1 3:1 7:1\n";
  EXPECT_EQ(base_of(text + "1 0:1\n", -1), 0);
}

TEST(RoundTrip, AGivenIndexBaseHolds) {
  uint64_t features = 0;
  EXPECT_EQ(base_of("1 1:1 4:1\n", 0, &features), 0);
  EXPECT_EQ(features, 5U);
  EXPECT_EQ(base_of("1 1:1 4:1\n", 1, &features), 1);
  EXPECT_EQ(features, 4U);
}

TEST(RoundTrip, IndexZeroIsRefusedWhereTheBaseIsGivenAsOne) {
  expect_error(ErrorKind::input, {":2:3:", "index 0"}, [] { base_of("1 1:1\n1 0:1\n", 1); });
}

}  // namespace
}  // namespace linblock::test
