// Where v does not fit in memory a certificate is made in ranges of features: it says the same.
#include <gtest/gtest.h>

#include "base/random.h"
#include "support/certify.h"
#include "support/chunks.h"
#include "support/memory_folder.h"
#include "support/small_problems.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

struct Certified {
  Certificate of_weights = {};
  Certificate of_mean = {};
  double drift = 0;
  std::vector<double> v = {};
};

class Ranges : public testing::TestWithParam<std::tuple<const char*, double>> {
 protected:
  Ranges() {
    Random random(9);
    for (size_t i = 0; i < problem_.weights(); ++i) {
      weights_.push_back(static_cast<float>(random.unit() - 0.5));
      mean_.push_back(static_cast<float>(random.unit() - 0.5));
    }
  }
  // Some at 0, some at the bound, most between.
  static void fill(Duals& duals, uint32_t chunk) {
    for (size_t row = 0; row < duals.page(chunk).size(); ++row)
      duals.page(chunk)[row] = static_cast<double>((11 * chunk + row) % 8) / 10;
  }
  Certified certify(Duals& duals, size_t features_at_once) const {
    Certifier certifier(problem_, problem_.tasks[0], features_at_once);
    EXPECT_EQ(certifier.passes(), (problem_.weights() + features_at_once - 1) / features_at_once);
    Certified found;
    for (size_t pass = 0; pass < certifier.passes(); ++pass) {
      certifier.begin_pass(pass, weights_, mean_);
      RowBuffer buffer;
      for (uint32_t chunk = 0; chunk < chunks_.size(); ++chunk) {
        duals.fetch(std::vector<uint32_t>{chunk});
        const size_t rows = chunks_[chunk].rows();
        for (size_t row = 0; pass == 0 && row < rows; row += 3)
          certifier.add(
              sums_of(certifier, problem_, weights_, chunks_[chunk], row, std::min(rows, row + 3), duals.page(chunk)));
        // In two parts, as two threads would.
        const size_t features = certifier.range().v.size();
        certifier.add_to_v(chunks_[chunk], duals.page(chunk), 0, features / 2, buffer);
        certifier.add_to_v(chunks_[chunk], duals.page(chunk), features / 2, features, buffer);
      }
      certifier.end_pass();
      const Certifier::FeatureRange range = certifier.range();
      EXPECT_EQ(range.begin, found.v.size());
      EXPECT_LE(range.v.size(), features_at_once);
      found.v.insert(found.v.end(), range.v.begin(), range.v.end());
    }
    found.of_weights = certifier.finish();
    found.of_mean = certifier.finish_mean();
    found.drift = certifier.drift();
    return found;
  }
  static void expect_same(const Certified& found, const Certified& expected) {
    constexpr double kRounding = 1e-14;
    EXPECT_EQ(found.of_weights.primal, expected.of_weights.primal);
    EXPECT_EQ(found.of_mean.primal, expected.of_mean.primal);
    EXPECT_NEAR(found.of_weights.dual, expected.of_weights.dual, kRounding * std::abs(expected.of_weights.dual));
    EXPECT_NEAR(found.of_mean.dual, expected.of_mean.dual, kRounding * std::abs(expected.of_mean.dual));
    EXPECT_NEAR(found.drift, expected.drift, kRounding * expected.drift);
    EXPECT_EQ(found.v, expected.v);
  }

  const MemoryFolder folder_;
  const Data data_ = make_data(60, 13, 1);
  const Store store_ = write_store(folder_, data_, 11);
  const std::vector<Chunk> chunks_ = chunks_of(store_);
  const Problem problem_ = problem_for(store_, std::get<0>(GetParam()), 0.7, std::get<1>(GetParam()));
  std::vector<float> weights_;
  std::vector<float> mean_;
};

TEST_P(Ranges, OfAnySizeGiveTheCertificateOfAllAtOnce) {
  Duals duals(store_);
  for (uint32_t chunk = 0; chunk < chunks_.size(); ++chunk) fill(duals, chunk);
  const Certified whole = certify(duals, problem_.weights());
  EXPECT_GT(whole.drift, 0);
  EXPECT_LT(whole.of_weights.dual, whole.of_weights.primal);
  EXPECT_NE(whole.of_weights.primal, whole.of_mean.primal);
  // Each is lowered by the rounding of its own primal.
  EXPECT_NEAR(whole.of_weights.dual, whole.of_mean.dual, 1e-11 * std::abs(whole.of_weights.dual));
  for (const size_t at_once : {size_t{1}, size_t{2}, size_t{7}, problem_.weights() - 1}) {
    SCOPED_TRACE(testing::Message() << at_once << " features at once");
    expect_same(certify(duals, at_once), whole);
  }
}

TEST_P(Ranges, OfDualsInAFileGiveTheSame) {
  Duals in_memory(store_);
  Duals in_file(store_, folder_ / "duals");
  for (uint32_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    fill(in_memory, chunk);
    in_file.fetch(std::vector<uint32_t>{chunk});
    fill(in_file, chunk);
    in_file.put_back(std::vector<uint32_t>{chunk}, 1);
  }
  const Certified whole = certify(in_memory, problem_.weights());
  for (const size_t at_once : {size_t{1}, size_t{7}, problem_.weights()}) {
    SCOPED_TRACE(testing::Message() << at_once << " features at once");
    expect_same(certify(in_file, at_once), whole);
  }
}

TEST_P(Ranges, AddUpToTheSumOfTheRows) {
  Duals duals(store_);
  for (uint32_t chunk = 0; chunk < chunks_.size(); ++chunk) fill(duals, chunk);
  std::vector<double> v(problem_.weights(), 0);
  for (size_t i = 0; i < data_.rows.size(); ++i) {
    const OwnedRow& row = data_.rows[i];
    const double scale = row.label * duals.all()[i];
    for (size_t k = 0; k < row.index.size(); ++k) v[store_.features().number(row.index[k])] += scale * row.value[k];
    if (problem_.has_bias()) v.back() += scale * problem_.bias;
  }
  const Certified found = certify(duals, 2);
  for (size_t i = 0; i < v.size(); ++i) EXPECT_NEAR(found.v[i], v[i], 1e-12) << "feature " << i;
}

// The same bound from margins alone: with the true |v - w| nothing is lost, and a looser bound costs half its square.
TEST_P(Ranges, MarginsAndABoundOnTheDriftGiveTheSameDual) {
  Duals duals(store_);
  for (uint32_t chunk = 0; chunk < chunks_.size(); ++chunk) fill(duals, chunk);
  const Certified whole = certify(duals, problem_.weights());
  double drift2 = 0;
  for (size_t i = 0; i < whole.v.size(); ++i) drift2 += std::pow(whole.v[i] - double{weights_[i]}, 2);
  EXPECT_GE(whole.drift, std::sqrt(drift2));
  EXPECT_NEAR(whole.drift, std::sqrt(drift2), 1e-5 * whole.drift);
  for (const double looser : {1.0, 1.5, 10.0}) {
    const double bound = looser * std::sqrt(drift2);
    Certifier certifier(problem_, problem_.tasks[0], 1, bound);
    EXPECT_EQ(certifier.passes(), 1U);
    EXPECT_FALSE(certifier.makes_v());
    certifier.begin_pass(0, weights_, mean_);
    for (uint32_t chunk = 0; chunk < chunks_.size(); ++chunk)
      certifier.add(
          sums_of(certifier, problem_, weights_, chunks_[chunk], 0, chunks_[chunk].rows(), duals.page(chunk)));
    certifier.end_pass();
    const Certificate found = certifier.finish();
    EXPECT_NEAR(found.primal, whole.of_weights.primal, 1e-12 * whole.of_weights.primal);
    EXPECT_EQ(certifier.finish_mean().primal > found.primal, whole.of_mean.primal > whole.of_weights.primal);
    const double expected = whole.of_weights.dual - 0.5 * (looser * looser - 1) * drift2;
    EXPECT_LE(found.dual, whole.of_weights.dual + 1e-9 * std::abs(expected));
    // The drift here is as long as w itself, so that the hundredth that is added for the bound's own rounding shows.
    EXPECT_NEAR(found.dual, expected, 0.006 * looser * looser * drift2);
  }
  Certifier unknown(problem_, problem_.tasks[0], 1, std::numeric_limits<double>::infinity());
  unknown.begin_pass(0, weights_);
  unknown.end_pass();
  EXPECT_EQ(unknown.finish().gap(), std::numeric_limits<double>::infinity());
}

INSTANTIATE_TEST_SUITE_P(All, Ranges,
                         testing::Combine(testing::Values("hinge", "squared-hinge", "logistic"),
                                          testing::Values(-1.0, 1.5)));

}  // namespace
}  // namespace linblock
