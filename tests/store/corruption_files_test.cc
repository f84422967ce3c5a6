// Files of a store cut short, grown, missing, or in another's place.
#include <gtest/gtest.h>

#include "base/checksum.h"
#include "support/damage.h"
#include "support/memory_folder.h"

namespace linblock::test {
namespace {

class DamagedFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    rows_ = make_small_store(path_, "lz4");
    files_ = files_of(path_);
  }
  // Every file back to what it was; then the store must be well again, or the test damaged more than it meant to.
  void TearDown() override {
    for (const auto& [name, bytes] : files_) write_file(path_ + "/" + name, bytes);
    EXPECT_EQ(verified_rows(path_), rows_);
  }

  void put(const std::string& name, const std::string& bytes) { write_file(path_ + "/" + name, bytes); }
  void put_back(const std::string& name) { put(name, files_.at(name)); }

  // The rows of a chunk as they lie on disk.
  std::string chunk_bytes(const ChunkInfo& chunk) const {
    return files_.at(small_store_files()[chunk.segment == 0 ? 3 : 5]).substr(chunk.offset, chunk.extent());
  }

  const MemoryFolder folder_;
  const std::string path_ = folder_ / "store";
  std::vector<OwnedRow> rows_;
  std::map<std::string, std::string> files_;
};

// Every length of the small files, and of segments those around pages and others in between.
TEST_F(DamagedFiles, CutShortAreRefusedAtAnyLength) {
  for (const std::string& name : small_store_files()) {
    const size_t size = files_.at(name).size();
    for (size_t length = 0; length < size; ++length) {
      const size_t in_page = length % format::kPageBytes;
      if (name.ends_with(".rows") && in_page > 1 && in_page < format::kPageBytes - 1 && in_page % 97 != 0) continue;
      std::filesystem::resize_file(path_ + "/" + name, length);
      const std::string wrong = damage_overlooked({name}, [&] { Store::open(path_); });
      put_back(name);
      ASSERT_EQ(wrong, "") << name << " of " << length << " bytes instead of " << size;
    }
  }
}

TEST_F(DamagedFiles, WithBytesBehindTheirEndAreRefused) {
  for (const std::string& name : small_store_files())
    for (const std::string& more : {std::string("\n"), std::string(1, '\0'), std::string("x"), std::string(4096, '\0'),
                                    std::string(10000, 'y'), files_.at(name)}) {
      put(name, files_.at(name) + more);
      EXPECT_EQ(damage_overlooked({name}, [&] { Store::open(path_); }), "") << name << " and " << more.size();
      put_back(name);
    }
}

TEST_F(DamagedFiles, ThatAreMissingAreNamed) {
  for (const std::string& name : small_store_files()) {
    if (name == "MANIFEST") continue;
    std::filesystem::remove(path_ + "/" + name);
    EXPECT_EQ(damage_overlooked({name}, [&] { Store::open(path_); }), "") << name;
    put_back(name);
  }
}

// Without its manifest it could be any folder: not damage, but not accepted either.
TEST_F(DamagedFiles, AFolderWithoutAManifestIsNoStore) {
  std::filesystem::remove(path_ + "/MANIFEST");
  expect_error(ErrorKind::input, {path_, "MANIFEST"}, [&] { Store::open(path_); });
}

TEST_F(DamagedFiles, OfZerosAreRefused) {
  for (const std::string& name : small_store_files()) {
    put(name, std::string(files_.at(name).size(), '\0'));
    EXPECT_EQ(damage_overlooked({name}, [&] { open_and_verify(path_); }), "") << name;
    put_back(name);
  }
}

TEST_F(DamagedFiles, ThatAreFoldersAreRefused) {
  for (const std::string& name : small_store_files()) {
    std::filesystem::remove(path_ + "/" + name);
    std::filesystem::create_directory(path_ + "/" + name);
    const std::optional<Error> error = error_of([&] { Store::open(path_); });
    ASSERT_TRUE(error.has_value()) << name;
    EXPECT_TRUE(contains(error->what(), name)) << error->what();
    std::filesystem::remove(path_ + "/" + name);
    put_back(name);
  }
}

TEST_F(DamagedFiles, WithTwoChunksExchangedAreRefused) {
  const Store store = Store::open(path_);
  int exchanged = 0;
  for (size_t a = 0; a < store.chunks().size(); ++a)
    for (size_t b = 0; b < store.chunks().size(); ++b) {
      const ChunkInfo& one = store.chunks()[a];
      const ChunkInfo& two = store.chunks()[b];
      if (a == b || one.segment != two.segment || one.extent() != two.extent()) continue;
      const std::string name = small_store_files()[one.segment == 0 ? 3 : 5];
      std::string bytes = files_.at(name);
      bytes.replace(one.offset, one.extent(), chunk_bytes(two));
      bytes.replace(two.offset, two.extent(), chunk_bytes(one));
      put(name, bytes);
      EXPECT_EQ(damage_overlooked({name, "chunk "}, [&] { open_and_verify(path_); }), "");
      put_back(name);
      ++exchanged;
    }
  EXPECT_GE(exchanged, 2);
}

// A chunk's checksum holds for its place only, even where the directory is made to agree with the exchange.
TEST_F(DamagedFiles, WithTwoChunksAndTheirDirectoryEntriesExchangedAreRefused) {
  const Store store = Store::open(path_);
  std::string rows = files_.at("segment-000001.rows");
  std::string directory = files_.at("segment-000001.directory");
  ASSERT_GE(directory.size(), 2 * format::kDirectoryEntryBytes);
  std::string first;
  std::string second;
  for (const ChunkInfo& chunk : store.chunks()) {
    if (chunk.segment == 0 && chunk.number == 0) first = chunk_bytes(chunk);
    if (chunk.segment == 0 && chunk.number == 1) second = chunk_bytes(chunk);
  }
  rows.replace(format::kPageBytes, first.size() + second.size(), second + first);
  constexpr size_t kEntry = format::kDirectoryEntryBytes;
  directory.replace(0, 2 * kEntry, directory.substr(kEntry, kEntry) + directory.substr(0, kEntry));
  put("segment-000001.rows", rows);
  put("segment-000001.directory", directory);
  StoreInfo info = read_manifest(path_);
  info.segments[0].directory_checksum =
      checksum({reinterpret_cast<const unsigned char*>(directory.data()), directory.size()});
  write_manifest(path_, info);
  EXPECT_EQ(damage_overlooked({"segment-000001.rows", "chunk "}, [&] { open_and_verify(path_); }), "");
}

// Same options, other rows: each file of it, each chunk of it, and pairs that belong together.
TEST_F(DamagedFiles, OfAnotherStoreAreRefused) {
  make_small_store(folder_ / "other", "lz4", 77);
  auto other = files_of(folder_ / "other");
  for (const std::string& name : small_store_files()) {
    put(name, other.at(name));
    EXPECT_EQ(damage_overlooked({}, [&] { open_and_verify(path_); }), "") << name;
    put_back(name);
  }
  for (const char* segment : {"segment-000001", "segment-000002"}) {
    for (const char* end : {".rows", ".directory"})
      put(std::string(segment) + end, other.at(std::string(segment) + end));
    EXPECT_EQ(damage_overlooked({segment}, [&] { open_and_verify(path_); }), "") << segment;
    for (const char* end : {".rows", ".directory"}) put_back(std::string(segment) + end);
  }
}

TEST_F(DamagedFiles, WithAChunkOfAnotherStoreAreRefused) {
  make_small_store(folder_ / "other", "lz4", 77);
  const std::string foreign = files_of(folder_ / "other").at("segment-000001.rows");
  const Store store = Store::open(path_);
  for (const ChunkInfo& chunk : store.chunks()) {
    if (chunk.segment != 0 || chunk.offset + chunk.extent() > foreign.size()) continue;
    std::string bytes = files_.at("segment-000001.rows");
    bytes.replace(chunk.offset, chunk.extent(), foreign.substr(chunk.offset, chunk.extent()));
    put("segment-000001.rows", bytes);
    EXPECT_EQ(damage_overlooked({"segment-000001.rows", "chunk "}, [&] { open_and_verify(path_); }), "");
  }
}

TEST_F(DamagedFiles, WithSegmentsExchangedAreRefused) {
  for (const char* end : {".rows", ".directory"}) {
    put(std::string("segment-000001") + end, files_.at(std::string("segment-000002") + end));
    put(std::string("segment-000002") + end, files_.at(std::string("segment-000001") + end));
  }
  EXPECT_EQ(damage_overlooked({"segment-"}, [&] { open_and_verify(path_); }), "");
}

// An older manifest beside newer files is a store, as long as its own files are there: the append never happened.
TEST_F(DamagedFiles, AnOlderManifestGivesTheOlderState) {
  const Folder other;
  pack_rows({rows_.begin(), rows_.begin() + 320}, other / "store", small_options("lz4"));
  put("MANIFEST", files_of(other / "store").at("MANIFEST"));
  EXPECT_EQ(verified_rows(path_), std::vector<OwnedRow>(rows_.begin(), rows_.begin() + 320));
}

TEST_F(DamagedFiles, AManifestOfAFutureVersionIsCalledNewer) {
  const std::string manifest = files_.at("MANIFEST");
  const std::string magic = "linblock-store ";
  ASSERT_TRUE(manifest.starts_with(magic + "1 "));
  for (const char* version : {"3", "10", "4000000000"}) {
    put("MANIFEST", magic + version + manifest.substr(magic.size() + 1));
    EXPECT_EQ(damage_overlooked({"MANIFEST", "newer"}, [&] { Store::open(path_); }), "") << version;
  }
}

// A manifest whose checksum holds and whose contents do not: the work of another program, or of a bug.
class ContradictoryManifest : public DamagedFiles {
 protected:
  template <typename Change>
  std::string overlooked(Change&& change) {
    StoreInfo info = read_manifest(path_);
    change(info);
    write_manifest(path_, info);
    const std::string wrong = damage_overlooked({}, [&] { open_and_verify(path_); });
    put_back("MANIFEST");
    return wrong;
  }
};

TEST_F(ContradictoryManifest, WithWrongSumsIsRefused) {
  EXPECT_EQ(overlooked([](StoreInfo& info) { ++info.rows; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { --info.nonzeros; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.next_row_id = 5; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.segments[0].chunks = uint64_t{1} << 60; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.segments[1].bytes += 4096; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { ++info.segments[0].rows, --info.segments[1].rows; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { ++info.segments[0].nonzeros, --info.segments[1].nonzeros; }), "");
}

// Sums and products of such numbers wrap around, or ask for memory without bound.
TEST_F(ContradictoryManifest, WithNumbersThatNoStoreHasIsRefused) {
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.segments[0].chunks += uint64_t{1} << 61; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.segments[0].chunks += uint64_t{1} << 32; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.segments[1].bytes += uint64_t{1} << 63; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.segments[0].rows += uint64_t{1} << 61; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.index_base = 1048577; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.index_base = 2; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.frequent_features += uint64_t{1} << 62; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.chunk_bytes = uint64_t{1} << 60; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.chunk_bytes = 0; }), "");
}

TEST_F(ContradictoryManifest, WithWrongLabelCountsIsRefused) {
  EXPECT_EQ(overlooked([](StoreInfo& info) { ++info.labels.begin()->second; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.labels[77] = 0; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.labels.erase(info.labels.begin()); }), "");
}

TEST_F(ContradictoryManifest, WithWrongKeysIsRefused) {
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.seal ^= 1; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.seed ^= 1; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.buckets = 0; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.buckets = 5000; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.codec = Codec::zstd; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.width_set = 77; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.width_set ^= 1; }), "");
}

TEST_F(ContradictoryManifest, WithWrongFeaturesIsRefused) {
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.largest_index = 3; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.has_features = false; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.frequent_features = 0; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.frequent_features = uint64_t{1} << 62; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.features_checksum ^= 1; }), "");
}

TEST_F(ContradictoryManifest, WithWrongSegmentsIsRefused) {
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.segments[1].number = 1; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.segments[1].number = 3; }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.segments.pop_back(); }), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.segments.push_back(info.segments[1]); }), "");
}

// Appending to such a store would write over its last segment.
TEST_F(ContradictoryManifest, WithSegmentsOutOfOrderIsRefused) {
  EXPECT_EQ(overlooked([](StoreInfo& info) { std::swap(info.segments[0], info.segments[1]); }), "");
}

}  // namespace
}  // namespace linblock::test
