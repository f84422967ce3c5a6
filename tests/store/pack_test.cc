// What pack does with rows: where it puts them, how it reads them, what it reports on the way.
#include "store/core/pack.h"

#include <gtest/gtest.h>

#include <cmath>

#include "store/core/store_writer.h"
#include "support/file_hooks.h"
#include "support/memory_folder.h"
#include "support/packing.h"

namespace linblock::test {
namespace {

class Pack : public ::testing::Test {
 protected:
  const MemoryFolder folder_;
  const std::string store_ = folder_ / "store";
};

// --- where rows go ---------------------------------------------------------------------------------------------------

// By label, as collected data often is: every bucket is a random sample of the whole all the same.
TEST_F(Pack, MixesRowsThatAreSortedByLabel) {
  constexpr int kRows = 20000;
  constexpr double kShare = 0.25;
  std::string text;
  for (int i = 0; i < kRows; ++i) text += (i < kRows * kShare ? "1 3:1 " : "-1 3:1 ") + std::to_string(4 + i) + ":1\n";
  write_file(folder_ / "sorted.svm", text);
  pack({folder_ / "sorted.svm"}, store_, small_options());
  const Store store = Store::open(store_);
  std::map<uint32_t, std::pair<double, double>> buckets;  // rows, and those of label 1
  Chunk chunk;
  RowBuffer buffer;
  for (size_t number = 0; number < store.chunks().size(); ++number) {
    store.read(number, chunk);
    auto& [rows, positive] = buckets[store.chunks()[number].bucket];
    rows += static_cast<double>(chunk.rows());
    for (size_t row = 0; row < chunk.rows(); ++row) positive += chunk.row(row, buffer).label == 1 ? 1 : 0;
  }
  ASSERT_GT(buckets.size(), 20U);
  for (const auto& [bucket, counts] : buckets) {
    const auto& [rows, positive] = counts;
    const double deviation = std::sqrt(rows * kShare * (1 - kShare));
    EXPECT_NEAR(positive, rows * kShare, 5 * deviation) << "bucket " << bucket;
    const double mean = static_cast<double>(kRows) / static_cast<double>(buckets.size());
    EXPECT_NEAR(rows, mean, 5 * std::sqrt(mean)) << "bucket " << bucket;
  }
}

// The feature map, chunks and buckets come from the text alone.
TEST_F(Pack, GivesTheSameStoreInAnyMemory) {
  const Folder folder;
  write_file(folder / "text", text_of(sample_rows(30000)));  // more than the sample
  PackOptions options = small_options();
  options.chunk_bytes.reset();
  std::map<std::string, std::string> expected;
  for (const uint64_t megabytes : {16, 24, 100, 2000}) {
    options.memory_bytes = megabytes << 20;
    const std::string store = folder / ("store" + std::to_string(megabytes));
    pack({folder / "text"}, store, options);
    std::map<std::string, std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(store))
      found[entry.path().filename()] = read_file(entry.path());
    if (expected.empty()) expected = found;
    EXPECT_TRUE(found == expected) << megabytes << " MB";
  }
}

TEST_F(Pack, KeepsTheOrderOfTheInputWhereAskedTo) {
  PackOptions options = small_options("none", 3);
  options.shuffle = false;
  const auto rows = sample_rows(5000);
  pack_rows(rows, store_, options);
  const Store store = Store::open(store_);
  EXPECT_EQ(store.info().buckets, 1U);
  uint64_t next = 0;
  Chunk chunk;
  for (size_t number = 0; number < store.chunks().size(); ++number) {
    EXPECT_EQ(store.chunks()[number].number, number);
    store.read(number, chunk);
    for (size_t row = 0; row < chunk.rows(); ++row) ASSERT_EQ(chunk.id(row), next++);
  }
  EXPECT_EQ(next, rows.size());
}

TEST_F(Pack, CutsChunksWhereTheyAreFull) {
  for (const uint64_t bytes : {4096U, 20000U}) {
    PackOptions options = small_options();
    options.chunk_bytes = bytes;
    options.shuffle = false;
    pack_rows(sample_rows(4000), store_, options);
    const Store store = Store::open(store_);
    ASSERT_GT(store.chunks().size(), 5U);
    for (const ChunkInfo& chunk : store.chunks()) {
      EXPECT_LT(chunk.raw_bytes, bytes + 1024);  // headers and tables come on top
      if (chunk.number + 1 < store.chunks().size()) {
        EXPECT_GT(chunk.raw_bytes, bytes / 3);
      }
    }
    std::filesystem::remove_all(store_);
  }
}

TEST_F(Pack, TakesARowLargerThanAChunkAndThanAPieceOfText) {
  std::vector<OwnedRow> rows = sample_rows(30);
  OwnedRow& large = rows[17];
  large.index.clear();
  large.value.clear();
  for (uint32_t i = 1; i <= 15000; ++i) {
    large.index.push_back(i * 3);
    large.value.push_back(static_cast<float>(i) / 7);
  }
  ASSERT_GT(line_of(large).size(), 200000U);
  for (const size_t threads : {1U, 4U}) {
    pack_rows(rows, store_, small_options("lz4", threads));
    EXPECT_TRUE(verified_rows(store_) == rows);
    std::filesystem::remove_all(store_);
  }
}

// --- what it reads
// -----------------------------------------------------------------------------------------------------

TEST_F(Pack, ReadsCompressedTextAsItReadsPlainText) {
  const auto rows = sample_rows(3000);
  write_file(folder_ / "data.svm", text_of(rows));
  PackOptions options = small_options("none", 2);
  options.memory_bytes = uint64_t{256} << 20;  // xz wants a window of 8 MB
  pack({folder_ / "data.svm"}, folder_ / "plain", options);
  for (const std::string tool : {"gzip", "bzip2", "xz", "zstd -q"}) {
    if (std::system(("command -v " + tool.substr(0, tool.find(' ')) + " > /dev/null").c_str()) != 0) continue;
    ASSERT_EQ(std::system((tool + " -c " + (folder_ / "data.svm") + " > " + (folder_ / "packed")).c_str()), 0);
    pack({folder_ / "packed"}, store_, options);
    EXPECT_TRUE(files_of(store_) == files_of(folder_ / "plain")) << tool;
    std::filesystem::remove_all(store_);
  }
}

TEST_F(Pack, AcceptsBlankLinesCommentsAndWindowsLineEnds) {
  write_file(folder_ / "data.svm", "# a comment\n\n1 1:2 # behind a row\r\n  \t\n-1\n+1 2:1\r\n2 3:4");
  const PackReport report = pack({folder_ / "data.svm"}, store_, small_options());
  EXPECT_EQ(report.rows, 4U);
  EXPECT_EQ(report.nonzeros, 3U);
  EXPECT_EQ(unpacked(Store::open(store_)), "1 1:2\n-1\n1 2:1\n2 3:4\n");
}

// --- what it says on the way ---------------------------------------------------------------------------------------

TEST_F(Pack, ReportsWhatItHasDone) {
  const auto rows = sample_rows(2000);
  const PackReport report = pack_rows(rows, store_, small_options());
  size_t nonzeros = 0;
  for (const OwnedRow& row : rows) nonzeros += row.index.size();
  EXPECT_EQ(report.rows, rows.size());
  EXPECT_EQ(report.nonzeros, nonzeros);
  EXPECT_EQ(report.bad_rows, 0U);
  EXPECT_EQ(report.text_bytes, text_of(rows).size());
  const Store store = Store::open(store_);
  EXPECT_EQ(store.info().rows, rows.size());
  EXPECT_EQ(store.info().nonzeros, nonzeros);
}

TEST_F(Pack, TellsItsObserverHowFarItIs) {
  write_file(folder_ / "a.svm", text_of(sample_rows(20000, 1)));
  write_file(folder_ / "b.svm", text_of(sample_rows(20000, 2)));
  const uint64_t total = std::filesystem::file_size(folder_ / "a.svm") + std::filesystem::file_size(folder_ / "b.svm");
  for (const size_t threads : {1U, 4U}) {
    std::vector<PackProgress> seen;
    PackContext context;
    context.observer = [&](const PackProgress& progress) { seen.push_back(progress); };
    pack({folder_ / "a.svm", folder_ / "b.svm"}, store_, small_options("none", threads), context);
    ASSERT_GT(seen.size(), 10U);
    for (size_t i = 0; i < seen.size(); ++i) {
      EXPECT_EQ(seen[i].total_bytes, total);
      EXPECT_LE(seen[i].rows, 40000U);
      if (i == 0) continue;
      EXPECT_GE(seen[i].bytes_read, seen[i - 1].bytes_read);
      EXPECT_GE(seen[i].rows, seen[i - 1].rows);
    }
    EXPECT_LT(seen.front().bytes_read, total / 2);
    EXPECT_EQ(seen.back().bytes_read, total);
    EXPECT_GT(seen.back().rows, 20000U);
    std::filesystem::remove_all(store_);
  }
}

// --- who else is there
// -------------------------------------------------------------------------------------------------

TEST_F(Pack, RemovesWhatAKilledPackHasLeft) {
  std::filesystem::create_directory(store_ + ".partial");
  const std::string segment = std::string(format::kSegmentMagic) + "left behind";
  write_file(store_ + ".partial/LOCK", "process 1 (packing)");
  write_file(store_ + ".partial/MANIFEST", "linblock-sto");  // cut short
  write_file(store_ + ".partial/segment-000001.rows", segment);
  write_file(store_ + ".partial/segment-000007.rows", segment);
  write_file(store_ + ".partial/codec-probe", "left behind");
  pack_rows(sample_rows(100), store_, small_options());
  EXPECT_EQ(names_in(store_), (std::vector<std::string>{"FEATURES", "LOCK", "MANIFEST", "segment-000001.directory",
                                                        "segment-000001.rows"}));
  EXPECT_FALSE(std::filesystem::exists(store_ + ".partial"));
}

TEST_F(Pack, IsRefusedWhileAnotherPacksTheSameStore) {
  {
    const StoreWriter writer(store_);
    expect_error(ErrorKind::io, {"in use", "process " + std::to_string(::getpid()), "packing"},
                 [&] { pack_rows(sample_rows(10), store_, small_options()); });
  }
  pack_rows(sample_rows(10), store_, small_options());
}

// Both find no folder; one makes it, the other is the first to lock it.
TEST_F(Pack, ThatComesTooLateForTheLockLeavesTheFolderToItsOwner) {
  std::unique_ptr<StoreWriter> owner;
  bool begun = false;
  {
    const ScopedHook hook([&](const FileCall& call) {
      if (call.kind == FileCall::Kind::lock && !std::exchange(begun, true))
        owner = std::make_unique<StoreWriter>(store_);
      return FileVerdict{};
    });
    expect_error(ErrorKind::io, {"in use"}, [&] { StoreWriter late(store_); });
  }
  const auto rows = sample_rows(10);
  owner->begin({});
  for (const OwnedRow& row : rows) owner->add(row.view());
  owner->commit();
  EXPECT_EQ(verified_rows(store_), rows);
}

TEST_F(Pack, IgnoresASlashBehindTheName) {
  write_file(folder_ / "data.svm", "1 1:1\n");
  pack({folder_ / "data.svm"}, store_ + "//", small_options());
  EXPECT_EQ(verified_rows(store_).size(), 1U);
  EXPECT_EQ(names_in(folder_.path()), (std::vector<std::string>{"data.svm", "store"}));
}

}  // namespace
}  // namespace linblock::test
