// --memory 16M is what the system sees: the real program in a memory cgroup, on data that is hard to hold.
#include <gtest/gtest.h>

#include "store/columns/columns.h"
#include "store/core/store_writer.h"
#include "support/memory_budget.h"
#include "support/packing.h"

namespace linblock::test {
namespace {

class Memory : public SixteenMegabytes {
 protected:
  void expect_packed(const std::vector<std::string>& words, uint64_t rows) {
    std::vector<std::string> all = {"pack", "-o", store_};
    all.insert(all.end(), words.begin(), words.end());
    const Ended ended = in_sixteen_megabytes(all);
    expect_held(ended);
    if (ended.exit_code != 0) return;
    EXPECT_EQ(verify(Store::open(store_), 2).rows, rows);
    std::filesystem::remove_all(store_);
  }
  // Written piece by piece: the test itself stays small.
  template <typename Line>
  std::string text(const std::string& name, uint64_t lines, Line&& line) {
    std::ofstream out(folder_ / name, std::ios::binary);
    for (uint64_t i = 0; i < lines; ++i) out << line(i);
    return folder_ / name;
  }
};

TEST_F(Memory, HoldsForTextOfTwentyTimesTheBudget) {
  const std::string path = documents("large.svm", 240000);
  ASSERT_GE(std::filesystem::file_size(path), 20 * kBudget);
  expect_packed({path}, 240000);
}

// Options that must not change what is held.
class MemoryWith : public Memory, public ::testing::WithParamInterface<const char*> {};

TEST_P(MemoryWith, IsHeld) {
  const std::string words = GetParam();
  const size_t blank = words.find(' ');
  expect_packed({documents("data.svm", 30000), words.substr(0, blank), words.substr(blank + 1)}, 30000);
}

INSTANTIATE_TEST_SUITE_P(Store, MemoryWith,
                         ::testing::Values("--threads 1", "--threads 2", "--threads 4", "--threads 16", "--codec none",
                                           "--codec lz4", "--codec zstd", "--codec zlib", "--chunk-bytes 4K",
                                           "--chunk-bytes 64K", "--chunk-bytes 1M"),
                         [](const auto& words) {
                           std::string name;
                           for (const char c : std::string(words.param))
                             if (std::isalnum(c) != 0) name += c;
                           return name;
                         });

TEST_F(Memory, HoldsForCompressedText) {
  const std::string path = documents("data.svm", 20000);
  for (const std::string tool : {"gzip", "bzip2", "xz -0", "zstd -q", "lz4 -q -B4"}) {
    if (std::system((tool + " -c " + path + " > " + path + ".packed").c_str()) != 0) continue;
    SCOPED_TRACE(tool);
    expect_packed({path + ".packed"}, 20000);
  }
}

// A compressor may ask its reader for a window of any size: held all the same, or refused as too large.
TEST_F(Memory, HoldsOrRefusesTextCompressedWithALargeWindow) {
  const std::string path = documents("data.svm", 20000);
  for (const std::string tool : {"xz -T1 --lzma2=preset=0,dict=64MiB", "zstd -q -1 --long=26", "lz4 -q -B7"}) {
    if (std::system((tool + " -c " + path + " > " + path + ".packed").c_str()) != 0) continue;
    SCOPED_TRACE(tool);
    const Ended ended = in_sixteen_megabytes({"pack", "-o", store_, path + ".packed"});
    EXPECT_TRUE(ended.exit_code == 0 || ended.exit_code == 6) << "signal " << ended.signal << ": " << ended.errors;
    EXPECT_LE(ended.held.at("VmHWM"), kBudget);
    std::filesystem::remove_all(store_);
  }
}

TEST_F(Memory, HoldsForTheLargestIndex) {
  const std::string path = text("wide.svm", 200000, [](uint64_t i) {
    return "1 " + std::to_string(i % 100 + 1) + ":1 " + std::to_string(4294967294U - i % 1000) + ":0.5\n";
  });
  expect_packed({path}, 200000);
}

TEST_F(Memory, HoldsWhereFrequentFeaturesAreFarApart) {
  const std::string path = text("sparse.svm", 300000, [](uint64_t i) {
    std::string line = "1";
    for (uint64_t k = 0; k < 8; ++k)
      line += " " + std::to_string(k * 500000000 + mix64(k, i % 20000) % 400000000) + ":1";
    return line + "\n";
  });
  expect_packed({path}, 300000);
}

TEST_F(Memory, HoldsForVeryManyTinyRows) {
  expect_packed({text("tiny.svm", 8000000, [](uint64_t i) { return i % 3 == 0 ? "1\n" : "-1 7:1\n"; })}, 8000000);
}

TEST_F(Memory, HoldsForRowsOfManyFeatures) {
  std::string line = "1";
  for (int i = 1; line.size() < 250000; ++i) line += " " + std::to_string(i * 2) + ":0." + std::to_string(i % 1000 + 1);
  expect_packed({text("long.svm", 300, [&](uint64_t) { return line + "\n"; })}, 300);
}

TEST_F(Memory, HoldsForManyLabels) {
  expect_packed({text("labels.svm", 500000, [](uint64_t i) { return std::to_string(i % 60000) + " 1:1 2:1\n"; })},
                500000);
}

TEST_F(Memory, HoldsWithWeightsRejectsAndNormalization) {
  const std::string path = text("rows.svm", 400000, [](uint64_t i) {
    return i % 100 == 0 ? std::string("not a row\n") : "1 1:2 " + std::to_string(i % 5000 + 2) + ":1\n";
  });
  const std::string weights = text("weights", 400000, [](uint64_t i) { return std::to_string(i % 7) + ".5\n"; });
  expect_packed({path, "--weights", weights, "--max-bad-rows", "4000", "--rejects", folder_ / "rejects", "--normalize"},
                396000);
}

TEST_F(Memory, HoldsForAnAppend) {
  const std::string path = documents("data.svm", 30000);
  expect_held(in_sixteen_megabytes({"pack", "-o", store_, path}));
  expect_held(in_sixteen_megabytes({"append", store_, path}));
  EXPECT_EQ(verify(Store::open(store_), 2).rows, 60000U);
}

// Packed in any memory: a store with more buckets than 16 MB can hold is compacted one bucket after another.
TEST_F(Memory, HoldsForCompacting) {
  const std::string path = documents("data.svm", 60000);
  const std::string ids = text("ids", 40000, [](uint64_t i) { return std::to_string(i) + "\n"; });
  for (const char* codec : {"none", "zlib"})
    for (const char* threads : {"1", "4"}) {
      SCOPED_TRACE(std::string(codec) + ", threads " + threads);
      ASSERT_EQ(linblock({"pack", "-o", store_, path, "--memory", "1G", "-q", "--codec", codec}).exit_code, 0);
      ASSERT_EQ(linblock({"remove", store_, "--rows", ids, "-q"}).exit_code, 0);
      expect_held(in_sixteen_megabytes({"compact", store_, "--threads", threads}));
      EXPECT_EQ(verify(Store::open(store_), 2).rows, 20000U);
      std::filesystem::remove_all(store_);
    }
}

TEST_F(Memory, HoldsForCompactingLongRows) {
  std::string line = "1";
  for (int i = 1; line.size() < 250000; ++i) line += " " + std::to_string(i * 2) + ":0." + std::to_string(i % 1000 + 1);
  const std::string path = text("long.svm", 300, [&](uint64_t) { return line + "\n"; });
  ASSERT_EQ(linblock({"pack", "-o", store_, path, "--memory", "16M", "-q"}).exit_code, 0);
  ASSERT_EQ(linblock({"remove", store_, "--rows", text("ids", 1, [](uint64_t) { return "7\n"; }), "-q"}).exit_code, 0);
  expect_held(in_sixteen_megabytes({"compact", store_}));
  EXPECT_EQ(verify(Store::open(store_), 2).rows, 299U);
}

TEST_F(Memory, HoldsForTransposingTwentyTimesTheBudget) {
  {
    StoreWriter writer(store_);
    writer.begin({.chunk_bytes = 48 << 10});
    Random random(1);
    OwnedRow row;
    row.index.resize(500);
    row.value.resize(500);
    for (uint64_t i = 0; writer.info().next_row_id * row.index.size() < 20 * kBudget / 5; ++i) {
      for (size_t k = 0; k < row.index.size(); ++k) {
        row.index[k] = static_cast<uint32_t>(100 * k + random.below(100));
        row.value[k] = static_cast<float>(random.unit());
      }
      row.label = i % 2 == 0 ? 1 : -1;
      writer.add(row.view());
    }
    writer.commit();
  }
  const Store rows = Store::open(store_);
  ASSERT_GE(rows.bytes(), 20 * kBudget);
  expect_held(in_sixteen_megabytes({"transpose", store_, "--threads", "2"}));
  EXPECT_EQ(Columns::open(rows).store().info().nonzeros, rows.info().nonzeros);
}

TEST_F(Memory, HoldsForTransposingOnAnyThreadsWithAnyCodec) {
  const std::string path = documents("data.svm", 30000);
  for (const char* codec : {"none", "lz4", "zstd", "zlib"})
    for (const char* threads : {"1", "4"}) {
      SCOPED_TRACE(std::string(codec) + ", threads " + threads);
      ASSERT_EQ(linblock({"pack", "-o", store_, path, "--memory", "16M", "-q", "--codec", codec}).exit_code, 0);
      expect_held(in_sixteen_megabytes({"transpose", store_, "--threads", threads}));
      verify(Store::open(columns_path(store_)), 2);
      std::filesystem::remove_all(store_);
    }
}

// Columns of every length, features of every distance, long rows: the same in 16 MB.
TEST_F(Memory, HoldsForTransposingWhatIsHardToHold) {
  std::string line = "1";
  for (int i = 1; line.size() < 100000; ++i) line += " " + std::to_string(i * 2) + ":0." + std::to_string(i % 1000 + 1);
  const std::vector<std::string> paths = {
      text("wide.svm", 300000,
           [](uint64_t i) {
             return "1 " + std::to_string(i % 100 + 1) + ":1 " + std::to_string(mix64(0, i) % 4294967295U + 200) +
                    ":0.5\n";
           }),
      text("few.svm", 1500000, [](uint64_t i) { return "1 1:0." + std::to_string(i % 9999 + 1) + " 2:1\n"; }),
      text("long.svm", 300, [&](uint64_t) { return line + "\n"; }),
  };
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    ASSERT_EQ(linblock({"pack", "-o", store_, path, "--memory", "16M", "-q"}).exit_code, 0);
    expect_held(in_sixteen_megabytes({"transpose", store_}));
    verify(Store::open(columns_path(store_)), 2);
    std::filesystem::remove_all(store_);
  }
}

TEST_F(Memory, HoldsForIndexingOnAnyThreadsWithAnyCodec) {
  const std::string path = documents("data.svm", 30000);
  for (const char* codec : {"none", "zstd"})
    for (const char* threads : {"1", "4"}) {
      SCOPED_TRACE(std::string(codec) + ", threads " + threads);
      ASSERT_EQ(linblock({"pack", "-o", store_, path, "--memory", "16M", "-q", "--codec", codec}).exit_code, 0);
      expect_held(in_sixteen_megabytes({"index", store_, "--threads", threads}));
      verify(Store::open(index_path(store_)), 2);
      std::filesystem::remove_all(store_);
    }
}

// What cannot be done in so little memory is refused, with the exit code for it.
TEST_F(Memory, TooSmallForALineEndsWithSix) {
  const std::string path = text("line.svm", 1, [](uint64_t) {
    std::string line = "1";
    for (int i = 1; line.size() < 40 * kMegabyte; ++i) line += " " + std::to_string(i) + ":1";
    return line + "\n";
  });
  const Ended ended = in_sixteen_megabytes({"pack", "-o", store_, path});
  EXPECT_EQ(ended.exit_code, 6) << "signal " << ended.signal << ": " << ended.errors;
  EXPECT_TRUE(contains(ended.errors, "line.svm:1:1:")) << ended.errors;
  EXPECT_LE(ended.held.at("VmHWM"), kBudget);
  EXPECT_EQ(names_in(folder_.path()), std::vector<std::string>{"line.svm"});
}

TEST_F(Memory, TooSmallForAStoresBucketsEndsWithSix) {
  const std::string path = documents("data.svm", 30000);
  ASSERT_EQ(linblock({"pack", "-o", store_, path, "--memory", "1G", "--chunk-bytes", "256K", "-q"}).exit_code, 0);
  const Ended ended = in_sixteen_megabytes({"append", store_, path});
  EXPECT_EQ(ended.exit_code, 6) << "signal " << ended.signal << ": " << ended.errors;
}

}  // namespace
}  // namespace linblock::test
