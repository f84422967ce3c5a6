// Rows that are stepped along in batches: the optimum of single steps, and the same bits for any number of threads and
// of owners of features.
#include "solve/dual/batches.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "base/memory.h"
#include "solve/dual/batch_choice.h"
#include "solve/solve.h"
#include "support/certify.h"
#include "support/small_problems.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

// Sparse rows over many features, some of them in most rows.
Data sparse_data(size_t rows, uint32_t features, size_t nonzeros, uint32_t seed, double scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<double> unit;
  Data data;
  data.features = features;
  for (size_t i = 0; i < rows; ++i) {
    OwnedRow row;
    std::set<uint32_t> index;
    while (index.size() < nonzeros)
      index.insert(static_cast<uint32_t>(std::pow(static_cast<double>(features), unit(random))));
    double score = normal(random);
    for (const uint32_t j : index) {
      row.index.push_back(j);
      row.value.push_back(static_cast<float>(scale * (0.2 + unit(random))));
      score += row.value.back() / scale * ((j * 2654435761U >> 16) % 2 == 0 ? 1 : -1);
    }
    row.label = score > 0 ? 1 : -1;
    data.rows.push_back(row);
  }
  data.rows[0].label = 1;
  data.rows[1].label = -1;
  return data;
}

struct Trained {
  std::vector<float> weights;
  std::vector<double> duals;
  Summary summary;
};

Trained train_with(const Problem& problem, const SolveOptions& options, const Team& team,
                   uint64_t memory_bytes = uint64_t{1} << 30) {
  std::vector<Solution> solutions;
  Trained trained;
  trained.summary = solve(problem, options, solutions, {.memory_bytes = memory_bytes, .team = team});
  trained.weights = solutions.front().weights;
  const std::span<const double> duals = std::as_const(solutions.front().duals).all();
  trained.duals.assign(duals.begin(), duals.end());
  return trained;
}

class BatchesOf : public testing::TestWithParam<std::tuple<std::string, uint64_t, double>> {};

TEST_P(BatchesOf, ReachTheReferenceOptimum) {
  const auto& [loss, batch, bias] = GetParam();
  const Folder folder;
  const Data data = make_data(150, 12, 5);
  const Store store = write_store(folder, data, 40);
  const Problem problem = problem_for(store, loss, 0.5, bias);
  const ReferenceOptimum reference = reference_optimum(loss, dense(data, 0.5, bias));
  const Trained found =
      train_with(problem, {.method = Dual{.batch = batch}, .tolerance = 1e-5, .max_passes = 20000}, Team(2, 3));
  EXPECT_EQ(found.summary.termination, Termination::converged);
  const Certificate& certificate = found.summary.certificates.front();
  EXPECT_LE(certificate.dual, reference.primal * (1 + 1e-7));
  EXPECT_NEAR(certificate.primal, reference.primal, 2e-5 * reference.primal);
}

INSTANTIATE_TEST_SUITE_P(All, BatchesOf,
                         testing::Combine(testing::Values("hinge", "squared-hinge", "logistic", "huber-hinge"),
                                          testing::Values(uint64_t{2}, uint64_t{16}, uint64_t{512}),
                                          testing::Values(-1.0, 1.5)));

// The most that holds rows in this way, about.
uint64_t memory_for(const Problem& problem, const SolveOptions& options, RowsHeld how) {
  for (uint64_t memory = uint64_t{1} << 25; memory > kProgramBytes; memory -= uint64_t{1} << 16)
    if (std::get<Dual>(options.method).plan(problem, options, {.memory_bytes = memory}).rows == how) return memory;
  ADD_FAILURE() << "no memory makes such a plan";
  return 0;
}

// Held in memory decoded and encoded, and streamed; for each, all threads and owners.
TEST(Batches, HaveTheSameBitsForAnyThreadsAndOwners) {
  const Folder folder;
  const Data data = sparse_data(6000, 5000, 40, 1);
  const Store store = write_store(folder, data, 150);
  std::set<RowsHeld> held;
  for (const char* loss : {"hinge", "squared-hinge", "logistic"})
    for (const RowsHeld how : {RowsHeld::decoded, RowsHeld::encoded, RowsHeld::streamed}) {
      const Problem problem = problem_for(store, loss, 1, 1);
      const SolveOptions options{.method = Dual{.batch = 64}, .tolerance = 1e-2, .max_passes = 20};
      const uint64_t memory = memory_for(problem, options, how);
      const Trained expected = train_with(problem, options, Team(1, 1), memory);
      EXPECT_TRUE(expected.summary.plan.batches);
      held.insert(expected.summary.plan.rows);
      for (const auto& [threads, owners] :
           std::vector<std::pair<size_t, size_t>>{{1, 2}, {1, 7}, {1, 16}, {2, 2}, {3, 3}, {7, 7}, {16, 16}, {2, 16}}) {
        const Trained found = train_with(problem, options, Team(threads, owners), memory);
        EXPECT_EQ(found.weights, expected.weights) << loss << ", " << threads << " threads, " << owners << " owners";
        EXPECT_EQ(found.duals, expected.duals);
        EXPECT_EQ(found.summary.passes, expected.summary.passes);
      }
    }
  EXPECT_EQ(held.size(), 3U) << "decoded, encoded and streamed";
}

// What batches are bad at: rows that are all alike, a feature that every row has, values of any size. The size gives
// way, steps are shortened, and the optimum is reached.
TEST(Batches, RecoverFromRowsThatAreAllInEachOthersWay) {
  const auto expect_solved = [](const Data& data, const std::string& what) {
    const Folder folder;
    const Store store = write_store(folder, data, 400);
    for (const char* loss : {"hinge", "squared-hinge", "logistic"}) {
      // As if it had been chosen for other data.
      const Trained found =
          train_with(problem_for(store, loss, 1), {.method = Dual{.batch = 512}, .tolerance = 1e-2, .max_passes = 3000},
                     Team(2, 4));
      EXPECT_EQ(found.summary.termination, Termination::converged) << what << ", " << loss;
      EXPECT_LE(found.summary.certificates.front().gap(), 1e-2) << what << ", " << loss;
    }
  };
  Data equal = make_data(2, 5, 1, 1.0);
  for (size_t i = 0; i < 600; ++i) equal.rows.push_back(equal.rows[i % 2]);
  expect_solved(equal, "equal rows");
  Data dense_feature = sparse_data(800, 3000, 10, 2);
  for (OwnedRow& row : dense_feature.rows) {
    if (row.index.front() != 1) {
      row.index.insert(row.index.begin(), 1);
      row.value.insert(row.value.begin(), 0);
    }
    row.value.front() = 3;
  }
  expect_solved(dense_feature, "a feature in every row");
  expect_solved(sparse_data(800, 3000, 10, 3, 1e-3), "tiny values");
}

// Of each pass, by the weights as they are: no batch lets the dual fall, so no pass does.
TEST(Batches, NeverLetTheDualFall) {
  const Folder folder;
  const Data data = sparse_data(2000, 300, 12, 4);
  const Store store = write_store(folder, data, 250);
  for (const char* loss : {"hinge", "squared-hinge", "logistic"}) {
    double before = 0;
    std::vector<Solution> solutions;
    Context context{.team = Team(2, 3)};
    context.observer.pass = [&](const PassReport& pass) {
      EXPECT_GE(pass.dual, before - 1e-6 * std::abs(before)) << loss << ", pass " << pass.pass;
      before = pass.dual;
    };
    solve(problem_for(store, loss, 10), {.method = Dual{.batch = 512}, .tolerance = 1e-3, .max_passes = 60}, solutions,
          context);
    EXPECT_GT(before, 0);
  }
}

// The bound on |v - w| of a run in batches is not below the truth: certificates from margins agree with v.
RC_GTEST_PROP(Batches, CertifyWhatVWouldCertify, ()) {
  const Folder folder;
  const auto scale = std::pow(10.0, *rc::gen::inRange(-4, 5));
  const Data data = sparse_data(400, 200, 8, *rc::gen::arbitrary<uint32_t>(), scale);
  const Store store = write_store(folder, data, 100);
  const Problem problem = problem_for(store, *rc::gen::element<std::string>("hinge", "squared-hinge"), 1 / scale);
  std::vector<Solution> solutions;
  const Summary summary =
      solve(problem, {.method = Dual{.batch = *rc::gen::inRange<uint64_t>(2, 513)}, .tolerance = 0.05, .max_passes = 8},
            solutions, {.team = Team(1, 3)});
  Certifier certifier(problem, problem.tasks.front());
  certifier.begin_pass(0, solutions.front().weights, {});
  RowBuffer buffer;
  for (uint32_t number = 0; number < store.chunks().size(); ++number) {
    Chunk chunk;
    store.read(number, chunk);
    const auto duals = std::as_const(solutions.front().duals).page(number);
    certifier.add(sums_of(certifier, problem, solutions.front().weights, chunk, 0, chunk.rows(), duals));
    certifier.add_to_v(chunk, duals, 0, problem.weights(), buffer);
  }
  certifier.end_pass();
  const Certificate exact = certifier.finish();
  const Certificate& found = summary.certificates.front();
  RC_ASSERT(found.dual <= exact.dual + 1e-9 * std::abs(exact.dual) + 1e-300);
  RC_ASSERT(std::abs(found.primal - exact.primal) <= 1e-9 * exact.primal);
}

TEST(BatchSize, GrowsWhereStepsDoNotInterfereAndShrinksWhereTheyDo) {
  BatchSize size(64);
  for (int i = 0; i < 100; ++i) size.add(1 + 0.005 * (i % 3 - 1));
  EXPECT_EQ(size.rows(), BatchSize::kMost);
  EXPECT_NEAR(size.damping(), 1, 0.02);
  for (int i = 0; i < 40; ++i) size.add(1.5 + 0.01 * (i % 2));
  EXPECT_LT(size.rows(), BatchSize::kMost);
  EXPECT_GT(size.damping(), 1);
  for (int i = 0; i < 200; ++i) size.add(3 + 0.01 * (i % 2));
  EXPECT_EQ(size.rows(), 1U);
}

TEST(BatchSize, StaysWhereItIsFixedAndIgnoresNoise) {
  BatchSize fixed(100, true);
  for (int i = 0; i < 100; ++i) fixed.add(5);
  EXPECT_EQ(fixed.rows(), 100U);
  BatchSize noisy(64);
  for (int i = 0; i < 8; ++i) noisy.add(i % 2 == 0 ? 0.6 : 1.6);
  EXPECT_EQ(noisy.rows(), 64U);
  BatchSize odd(64);
  odd.add(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(std::isfinite(odd.damping()));
}

BatchChoice choice_of(const Data& data) {
  BatchSample sample;
  for (const OwnedRow& row : data.rows)
    if (!sample.add(row.view())) break;
  return sample.choose();
}

TEST(BatchSample, ChoosesBatchesForRowsWithLittleInCommon) {
  const BatchChoice apart = choice_of(sparse_data(300, 1000000, 60, 1));
  EXPECT_GE(apart.rows, 64U);
  EXPECT_EQ(choice_of(sparse_data(300, 60, 20, 1)).rows, 1U) << "few features";
  Data equal = make_data(2, 50, 1, 1.0);
  for (size_t i = 0; i < 300; ++i) equal.rows.push_back(equal.rows[i % 2]);
  EXPECT_EQ(choice_of(equal).rows, 1U) << "equal rows";
  EXPECT_EQ(choice_of(sparse_data(20, 1000, 10, 1)).rows, 1U) << "too few rows to tell";
  EXPECT_EQ(choice_of({}).rows, 1U);
}

// A few features in most rows: without them rows have little in common.
TEST(BatchSample, TakesFrequentFeaturesIntoAHead) {
  Data data = sparse_data(300, 1000000, 60, 1);
  for (OwnedRow& row : data.rows) {
    OwnedRow with;
    with.label = row.label;
    for (uint32_t j = 0; j < 10; ++j) {
      with.index.push_back(j);
      with.value.push_back(1);
    }
    for (size_t k = 0; k < row.index.size(); ++k) {
      if (row.index[k] < 100) continue;
      with.index.push_back(row.index[k]);
      with.value.push_back(row.value[k]);
    }
    row = with;
  }
  const BatchChoice choice = choice_of(data);
  EXPECT_GT(choice.head, 0U);
  EXPECT_GE(choice.rows, 64U);
}

}  // namespace
}  // namespace linblock
