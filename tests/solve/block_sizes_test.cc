// Every method, loss and schedule, with blocks of one row, of about seven and of all: the reference optimum, for
// several tasks at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/tight_memory.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

constexpr size_t kRows = 42;
constexpr double kCost = 0.5;

class BlockSizes : public testing::TestWithParam<std::tuple<const char*, size_t>> {
 protected:
  static std::string loss() { return std::get<0>(GetParam()); }
  static size_t rows_per_block() { return std::get<1>(GetParam()); }

  // Fixed blocks are whole buckets: so many of them that every row has one of its own.
  static Store write_buckets(const std::string& path, const Data& data) {
    for (uint64_t seed = 1;; ++seed) {
      std::filesystem::remove_all(path);
      StoreWriter writer(path);
      writer.begin({.seed = seed, .buckets = 4096, .chunk_bytes = 4096});
      for (const OwnedRow& row : data.rows) writer.add(row.view());
      writer.commit();
      Store store = Store::open(path);
      if (store.chunks().size() == data.rows.size()) return store;
    }
  }
  // How many rows a block really had.
  Summary solved(const Store& store, const SolveOptions& options, std::vector<size_t>& blocks) const {
    Context context;
    context.observer.block = [&](const BlockReport& block) { blocks.push_back(block.rows); };
    std::vector<Solution> solutions;
    return solve(problem(store), options, solutions, context);
  }
  Problem problem(const Store& store) const { return tasks_for(store, loss(), {kCost, kCost / 10, kCost}, 1); }
  void expect_optimum(const Summary& summary, double tolerance) const {
    for (int32_t task = 0; task < 3; ++task) {
      const ReferenceOptimum reference =
          reference_optimum(loss(), dense(data_, task == 1 ? kCost / 10 : kCost, 1, {}, task + 1));
      const Certificate& found = summary.certificates[static_cast<size_t>(task)];
      EXPECT_LE(found.dual, reference.primal * (1 + 1e-8)) << "task " << task;
      EXPECT_GE(found.primal, reference.dual * (1 - 1e-8)) << "task " << task;
      EXPECT_LE(found.primal, reference.primal * (1 + tolerance)) << "task " << task;
    }
  }

  const Data data_ = make_classes(kRows, 6, 3, 1);
  const MemoryFolder folder_;
};

TEST_P(BlockSizes, OfRecomposedBlocksReachTheOptimum) {
  const Store store = write_store(folder_, data_, rows_per_block());
  for (const int inner : {0, 1, 4}) {
    std::vector<size_t> blocks;
    const Summary summary = solved(
        store, {.method = Dual{.inner = inner}, .tolerance = 1e-6, .max_passes = 50000, .chunks_per_block = 1}, blocks);
    EXPECT_EQ(*std::max_element(blocks.begin(), blocks.end()), rows_per_block());
    EXPECT_EQ(summary.termination, Termination::converged);
    expect_optimum(summary, 1e-6);
  }
}

TEST_P(BlockSizes, OfFixedBlocksReachTheOptimum) {
  const Store store = write_buckets(folder_ / "store", data_);
  const size_t wanted = rows_per_block() == 1 ? 4096 : kRows / rows_per_block();
  for (const auto& [inner, converge, cache] : {std::tuple(1, false, 0.0), {4, false, 0.5}, {0, true, 0.0}}) {
    std::vector<size_t> blocks;
    const Summary summary = solved(store,
                                   {.method = Dual{.schedule = Schedule::fixed,
                                                   .blocks = wanted,
                                                   .inner = converge ? InnerIterations::until_solved() : inner,
                                                   .cache_fraction = cache},
                                    .tolerance = 1e-6,
                                    .max_passes = 50000},
                                   blocks);
    if (rows_per_block() != 7) {
      EXPECT_EQ(*std::max_element(blocks.begin(), blocks.end()), rows_per_block());
    }
    EXPECT_EQ(blocks.size() / static_cast<size_t>(summary.passes), kRows / rows_per_block());
    EXPECT_EQ(summary.termination, Termination::converged);
    expect_optimum(summary, 1e-6);
  }
}

// Rows in the order of the input are one bucket.
TEST_P(BlockSizes, OfFixedBlocksOfOneBucketAreRunsOfItsChunks) {
  const Store store = write_store(folder_, data_, rows_per_block());
  ASSERT_EQ(store.info().buckets, 1U);
  std::vector<size_t> blocks;
  const Summary summary = solved(store,
                                 {.method = Dual{.schedule = Schedule::fixed, .blocks = kRows, .inner = 1},
                                  .tolerance = 1e-6,
                                  .max_passes = 50000},
                                 blocks);
  EXPECT_THAT(blocks, testing::Each(rows_per_block()));
  EXPECT_EQ(blocks.size() / static_cast<size_t>(summary.passes), kRows / rows_per_block());
  EXPECT_EQ(summary.termination, Termination::converged);
  expect_optimum(summary, 1e-6);
}

TEST_P(BlockSizes, OfASubsampleOfEverythingReachTheOptimum) {
  const Store store = write_store(folder_, data_, rows_per_block());
  std::vector<size_t> blocks;
  const Summary summary =
      solved(store, {.method = Subsample{.share = 1}, .tolerance = 1e-6, .max_passes = 50000}, blocks);
  EXPECT_EQ(summary.termination, Termination::converged);
  expect_optimum(summary, 1e-6);
}

// The mean of the blocks' models is not the optimum, but one block's is; what is certified is true of any.
TEST_P(BlockSizes, OfAveragesAreCertifiedTruly) {
  const Store store = write_buckets(folder_ / "store", data_);
  std::vector<size_t> blocks;
  const size_t chunks = rows_per_block();  // of a row each
  const Summary summary = solved(store, {.method = Average{}, .tolerance = 1e-6, .chunks_per_block = chunks}, blocks);
  EXPECT_LE(blocks.size(), kRows / rows_per_block());
  EXPECT_GE(blocks.size(), kRows / rows_per_block() / 2);  // some of the so many parts of the buckets are empty
  expect_optimum(summary, rows_per_block() == kRows ? 0.01 : 100);
}

TEST_P(BlockSizes, OfPegasosComeClose) {
  if (loss() == "logistic") return;
  const Store store = write_buckets(folder_ / "store", data_);
  for (const size_t step : {0, 1}) {
    std::vector<size_t> blocks;
    const Summary summary = solved(
        store, {.method = Pegasos{.step = step}, .max_passes = 3000, .chunks_per_block = rows_per_block()}, blocks);
    EXPECT_LE(blocks.size() / 3000, kRows / rows_per_block());
    EXPECT_GE(blocks.size() / 3000, kRows / rows_per_block() / 2);
    EXPECT_FALSE(summary.certified());
    for (int32_t task = 0; task < 3; ++task) {
      const ReferenceOptimum reference =
          reference_optimum(loss(), dense(data_, task == 1 ? kCost / 10 : kCost, 1, {}, task + 1));
      const double primal = summary.certificates[static_cast<size_t>(task)].primal;
      EXPECT_GE(primal, reference.dual * (1 - 1e-9));
      EXPECT_LE(primal, reference.primal * 1.1) << "step " << step << ", task " << task;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, BlockSizes,
                         testing::Combine(testing::Values("hinge", "squared-hinge", "logistic"),
                                          testing::Values(1, 7, kRows)));

}  // namespace
}  // namespace linblock
