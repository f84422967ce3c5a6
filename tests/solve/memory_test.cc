// --memory 16M holds for training too: packed rows of several times that, in a memory cgroup.
#include <gtest/gtest.h>

#include "store/core/store.h"
#include "support/memory_budget.h"

namespace linblock::test {
namespace {

class TrainMemory : public SixteenMegabytes {
 protected:
  // With chunks four times as large as is usual.
  void make_store(uint64_t rows, const std::vector<std::string>& more) {
    const std::string text = documents("data.svm", rows, more);
    ASSERT_EQ(linblock({"pack", text, "-o", store_, "--codec", "none", "--chunk-bytes", "256K", "-q"}).exit_code, 0);
    std::filesystem::remove(text);
  }
  uint64_t stored_bytes() const {
    uint64_t bytes = 0;
    const Store store = Store::open(store_);
    for (const ChunkInfo& chunk : store.chunks()) bytes += chunk.extent();
    return bytes;
  }
  Ended train(std::vector<std::string> more) {
    std::vector<std::string> words = {"train", store_, "-o", folder_ / "model"};
    words.insert(words.end(), more.begin(), more.end());
    return in_sixteen_megabytes(words);
  }
  void expect_trained(const std::vector<std::string>& more) {
    SCOPED_TRACE(::testing::PrintToString(more));
    expect_held(train(more));
    EXPECT_TRUE(std::filesystem::exists(folder_ / "model"));
    std::filesystem::remove(folder_ / "model");
  }
};

TEST_F(TrainMemory, HoldsForPackedRowsOfFiveTimesTheBudget) {
  make_store(200000, {"--features", "20000", "--nonzeros", "100"});
  ASSERT_GE(stored_bytes(), 5 * kBudget);
  expect_trained({"--loss", "hinge", "--threads", "1"});
  expect_trained({"--loss", "hinge", "--threads", "2", "--checkpoint-seconds", "0.1"});
  expect_trained({"--loss", "squared-hinge", "--bias", "1", "--threads", "4"});
}

// A block is a whole bucket, and there are 32.
TEST_F(TrainMemory, HoldsForFixedBlocks) {
  make_store(100000, {"--features", "20000", "--nonzeros", "100"});
  ASSERT_GE(stored_bytes(), 2 * kBudget);
  expect_trained({"--loss", "logistic", "--schedule", "fixed", "--inner", "converge"});
}

TEST_F(TrainMemory, HoldsForEveryMethod) {
  make_store(100000, {"--features", "20000", "--nonzeros", "100"});
  ASSERT_GE(stored_bytes(), 2 * kBudget);
  for (const char* solver : {"pegasos", "average", "subsample"})
    expect_trained({"--solver", solver, "--max-passes", "3"});
  expect_trained({"--solver", "pegasos", "--step", "block", "--max-passes", "3"});
}

TEST_F(TrainMemory, HoldsForMethodsOverTheWeights) {
  make_store(100000, {"--features", "20000", "--nonzeros", "100"});
  ASSERT_GE(stored_bytes(), 2 * kBudget);
  expect_trained({"--solver", "newton", "--threads", "1", "--max-passes", "20"});
  expect_trained({"--solver", "newton", "--loss", "logistic", "--threads", "4", "--checkpoint-seconds", "0.1"});
  ASSERT_EQ(linblock({"transpose", store_, "--memory", "64M", "-q"}).exit_code, 0);
  for (const char* order : {"permuted", "cyclic"})
    expect_trained({"--solver", "primal", "--order", order, "--max-passes", "5", "--checkpoint-seconds", "0.1"});
  expect_trained({"--solver", "primal", "--loss", "logistic", "--threads", "4", "--max-passes", "5"});
  expect_trained({"--solver", "cmls", "--max-passes", "5"});
}

TEST_F(TrainMemory, HoldsForAnIndexAndWhatItLeadsTo) {
  const std::string text = folder_ / "clusters.svm";
  ASSERT_EQ(linblock({"generate", "clusters", "-o", text, "--rows", "200000", "--features", "54", "-q"}).exit_code, 0);
  ASSERT_EQ(linblock({"pack", text, "-o", store_, "--codec", "none", "--chunk-bytes", "256K", "-q"}).exit_code, 0);
  std::filesystem::remove(text);
  ASSERT_GE(stored_bytes(), 2 * kBudget);
  expect_held(in_sixteen_megabytes({"index", store_}));
  expect_trained({"--solver", "indexed", "--loss", "hinge", "--threads", "1", "--max-passes", "60"});
  expect_trained({"--solver", "indexed", "--loss", "squared-hinge", "--cost", "10", "--threads", "4", "--max-passes",
                  "60", "--checkpoint-seconds", "0.1"});
  expect_trained({"--solver", "indexed", "--loss", "squared-hinge", "--block-solver", "newton", "--max-passes", "30"});
  expect_trained({"--solver", "dual", "--loss", "hinge", "--truncate", "1"});
}

TEST_F(TrainMemory, HoldsForManyFeatures) {
  make_store(40000, {"--features", "300000", "--nonzeros", "60"});
  expect_trained({"--loss", "hinge"});
  expect_trained({"--loss", "hinge", "--solver", "pegasos", "--max-passes", "3"});
}

TEST_F(TrainMemory, HoldsForVeryManyTinyRows) {
  std::ofstream text(folder_ / "tiny.svm");
  for (int i = 0; i < 500000; ++i) text << (i % 3 == 0 ? "1 1:1 2:1\n" : "-1 2:1 3:1\n");
  text.close();
  ASSERT_EQ(linblock({"pack", folder_ / "tiny.svm", "-o", store_, "--codec", "none", "-q"}).exit_code, 0);
  expect_trained({"--loss", "hinge"});
  expect_trained({"--loss", "logistic"});
}

TEST_F(TrainMemory, HoldsForTwentyTasks) {
  make_store(60000, {"--features", "20000", "--nonzeros", "100", "--classes", "20"});
  ASSERT_GE(stored_bytes(), kBudget);
  expect_trained({"--loss", "hinge", "--threads", "1", "--max-passes", "3"});
  expect_trained({"--loss", "squared-hinge", "--threads", "4", "--max-passes", "3", "--checkpoint-seconds", "0.1"});
  expect_trained({"--solver", "pegasos", "--max-passes", "2"});
  expect_trained({"--solver", "average"});
  expect_trained({"--solver", "subsample", "--max-passes", "3"});
}

// What a task holds of a row beside its dual counts most where rows are small.
TEST_F(TrainMemory, HoldsForTwentyTasksOfTinyRows) {
  std::ofstream text(folder_ / "tiny.svm");
  for (int i = 0; i < 60000; ++i) text << i % 20 + 1 << " " << i % 20 + 1 << ":1 " << 30 + i % 7 << ":1\n";
  text.close();
  ASSERT_EQ(linblock({"pack", folder_ / "tiny.svm", "-o", store_, "--codec", "none", "-q"}).exit_code, 0);
  for (const char* threads : {"1", "4"}) {
    expect_trained({"--loss", "hinge", "--threads", threads, "--max-passes", "5"});
    expect_trained({"--loss", "hinge", "--threads", threads, "--max-passes", "5", "--schedule", "fixed"});
    expect_trained({"--solver", "pegasos", "--step", "block", "--threads", threads, "--max-passes", "3"});
    expect_trained({"--solver", "average", "--threads", threads});
  }
}

TEST_F(TrainMemory, HoldsFromTextToTestedModel) {
  const std::string text = documents("data.svm", 100000, {"--features", "20000"});
  expect_held(in_sixteen_megabytes({"train", text, "-o", folder_ / "model", "--test", text}));
  // What decompresses test rows is gone before training begins.
  const std::string few = documents("few.svm", 10000, {"--features", "20000"});
  for (const char* tool : {"gzip -k", "bzip2 -k", "zstd -q -k"})
    ASSERT_EQ(std::system((std::string(tool) + " " + few).c_str()), 0);
  for (const char* ending : {".gz", ".bz2", ".zst"})
    expect_held(in_sixteen_megabytes({"train", text, "-o", folder_ / "model", "--test", few + ending}));
  for (const char* threads : {"1", "2", "16"})
    expect_held(in_sixteen_megabytes(
        {"predict", folder_ / "model", text, "-o", folder_ / "predicted", "--scores", "--threads", threads}));
}

// What cannot be held is refused before training, with the exit code for it and the numbers.
TEST_F(TrainMemory, TooSmallForTheWeightsEndsWithSix) {
  make_store(2000, {"--features", "3000000", "--nonzeros", "2000"});
  const Ended ended = train({});
  EXPECT_EQ(ended.exit_code, 6) << "signal " << ended.signal << ": " << ended.errors;
  EXPECT_NE(ended.errors.find("weights"), std::string::npos) << ended.errors;
  EXPECT_LE(ended.held.at("VmHWM"), kBudget);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "model"));
}

}  // namespace
}  // namespace linblock::test
