// Newton's method on a block of active rows.
#include "solve/indexed/block_newton.h"

#include <gtest/gtest.h>

#include <numeric>

#include "support/chunks.h"
#include "support/memory_folder.h"
#include "support/small_problems.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

class NewtonOnBlocks : public testing::TestWithParam<double> {
 protected:
  NewtonOnBlocks() {
    RowBuffer buffer;
    for (const Chunk& chunk : chunks_)
      for (uint32_t i = 0; i < chunk.rows(); ++i) active_.add({0, i}, chunk.encoded(i, buffer));
    w_.resize(problem_.weights());
  }
  std::vector<double> sum_of_duals() {
    std::vector<double> sum(problem_.weights());
    RowBuffer buffer;
    for (size_t i = 0; i < active_.size(); ++i) {
      const Row row = active_.row(i, buffer);
      for (size_t k = 0; k < row.index.size(); ++k)
        sum[row.index[k]] += active_.alpha(i) * costs_.sign(row) * double{row.value[k]};
      if (problem_.has_bias()) sum.back() += active_.alpha(i) * costs_.sign(row) * problem_.bias;
    }
    return sum;
  }
  double dual() {
    double value = 0;
    for (size_t i = 0; i < active_.size(); ++i)
      value += active_.alpha(i) - active_.alpha(i) * active_.alpha(i) / (4 * kCost);
    for (const double w : sum_of_duals()) value -= 0.5 * w * w;
    return value;
  }

  static constexpr double kCost = 2;
  const MemoryFolder folder_;
  const Data data_ = make_data(150, 12, 3);
  const Store store_ = write_rows(folder_ / "store", data_.rows);
  const Problem problem_ = problem_for(store_, "squared-hinge", kCost, GetParam());
  const RowCost costs_ = RowCost(problem_, problem_.tasks[0]);
  const std::vector<Chunk> chunks_ = chunks_of(store_);
  ActiveRows active_ = ActiveRows(store_, uint64_t{1} << 20, "");
  BlockNewton newton_ = BlockNewton(problem_, costs_, active_);
  std::vector<double> w_;
};

TEST_P(NewtonOnBlocks, SolvesABlockOfAllRows) {
  std::vector<uint32_t> all(150);
  std::iota(all.begin(), all.end(), 0U);
  newton_.solve(all, w_, 1e-12);
  const double best = reference_optimum("squared-hinge", dense(data_, kCost, GetParam()), 1e-11, 100000).primal;
  EXPECT_NEAR(dual(), best, 1e-8 * best);
}

TEST_P(NewtonOnBlocks, OneAfterAnotherReachTheOptimumAndNeverLoseAnyDual) {
  const double best = reference_optimum("squared-hinge", dense(data_, kCost, GetParam()), 1e-11, 100000).primal;
  double last = 0;
  for (uint32_t round = 0; round < 400; ++round) {
    std::vector<uint32_t> block;
    for (uint32_t i = 0; i < 150; ++i)
      if ((i + round) % 3 != 0) block.push_back(i);
    newton_.solve(block, w_, 1e-10);
    const double now = dual();
    EXPECT_GE(now, last - 1e-9 * best) << "round " << round;
    last = now;
    const std::vector<double> sum = sum_of_duals();
    for (size_t j = 0; j < sum.size(); ++j) ASSERT_NEAR(w_[j], sum[j], 1e-9);
  }
  EXPECT_NEAR(last, best, 1e-6 * best);
}

INSTANTIATE_TEST_SUITE_P(Bias, NewtonOnBlocks, testing::Values(-1.0, 1.0),
                         [](const auto& one) { return one.param < 0 ? "none" : "one"; });

}  // namespace
}  // namespace linblock
