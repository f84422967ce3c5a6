// Where v does not fit the memory a certificate is made in ranges of features: it says the same.
#include <gtest/gtest.h>

#include "base/random.h"
#include "objective/certificate.h"
#include "support/chunks.h"
#include "support/memory_folder.h"
#include "support/small_problems.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

struct Certified {
  Certificate of_weights = {};
  Certificate of_others = {};
  double drift = 0;
  std::vector<double> v = {};
};

class Ranges : public testing::TestWithParam<std::tuple<const char*, double>> {
 protected:
  Ranges() {
    Random random(9);
    for (size_t i = 0; i < problem_.weights(); ++i) {
      weights_.push_back(static_cast<float>(random.unit() - 0.5));
      others_.push_back(static_cast<float>(random.unit() - 0.5));
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
      certifier.begin_pass(pass);
      for (uint32_t chunk = 0; chunk < chunks_.size(); ++chunk) {
        duals.fetch(std::vector<uint32_t>{chunk});
        if (pass == 0) certifier.add_losses(chunks_[chunk], duals.page(chunk), weights_, others_);
        certifier.add_duals(chunks_[chunk], duals.page(chunk));
      }
      certifier.end_pass(weights_);
      const Certifier::Range range = certifier.range();
      EXPECT_EQ(range.begin, found.v.size());
      EXPECT_LE(range.v.size(), features_at_once);
      found.v.insert(found.v.end(), range.v.begin(), range.v.end());
    }
    found.of_weights = certifier.finish(weights_);
    found.of_others = certifier.finish_others(others_);
    found.drift = certifier.drift();
    return found;
  }
  static void expect_same(const Certified& found, const Certified& expected) {
    constexpr double kRounding = 1e-14;
    EXPECT_EQ(found.of_weights.primal, expected.of_weights.primal);
    EXPECT_EQ(found.of_others.primal, expected.of_others.primal);
    EXPECT_NEAR(found.of_weights.dual, expected.of_weights.dual, kRounding * std::abs(expected.of_weights.dual));
    EXPECT_NEAR(found.of_others.dual, expected.of_others.dual, kRounding * std::abs(expected.of_others.dual));
    EXPECT_NEAR(found.drift, expected.drift, kRounding * expected.drift);
    EXPECT_EQ(found.v, expected.v);
  }

  const MemoryFolder folder_;
  const Data data_ = make_data(60, 13, 1);
  const Store store_ = write_store(folder_, data_, 11);
  const std::vector<Chunk> chunks_ = chunks_of(store_);
  const Problem problem_ = problem_for(store_, std::get<0>(GetParam()), 0.7, std::get<1>(GetParam()));
  std::vector<float> weights_;
  std::vector<float> others_;
};

TEST_P(Ranges, OfAnySizeGiveTheCertificateOfAllAtOnce) {
  Duals duals(store_);
  for (uint32_t chunk = 0; chunk < chunks_.size(); ++chunk) fill(duals, chunk);
  const Certified whole = certify(duals, problem_.weights());
  EXPECT_GT(whole.drift, 0);
  EXPECT_LT(whole.of_weights.dual, whole.of_weights.primal);
  EXPECT_NE(whole.of_weights.primal, whole.of_others.primal);
  // Each is lowered by the rounding of its own primal.
  EXPECT_NEAR(whole.of_weights.dual, whole.of_others.dual, 1e-11 * std::abs(whole.of_weights.dual));
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

INSTANTIATE_TEST_SUITE_P(All, Ranges,
                         testing::Combine(testing::Values("hinge", "squared-hinge", "logistic"),
                                          testing::Values(-1.0, 1.5)));

}  // namespace
}  // namespace linblock
