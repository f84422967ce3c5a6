// The largest weights, and differences of models, against sorting all of them.
#include "learn/model_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "support/errors.h"
#include "support/folder.h"
#include "support/models.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

std::vector<float> random_weights(uint64_t seed, size_t count) {
  std::vector<float> weights(count);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t draw = mix64(seed, i);
    weights[i] = draw % 5 == 0 ? 0.0F : static_cast<float>(static_cast<double>(draw % 2001) - 1000) / 64;  // with ties
  }
  return weights;
}

class ModelWeights : public testing::Test {
 protected:
  std::string saved(const char* name, const Model& model) {
    save_model(folder_ / name, model, kPlainMetadata, 1);
    return folder_ / name;
  }

  const Folder folder_;
};

TEST_F(ModelWeights, LargestAreThoseThatSortingAllOfThemGives) {
  const std::vector<float> weights = random_weights(1, 500);
  ModelRows rows(saved("model", two_class_model(weights)));
  const std::vector<ColumnWeights> columns = largest_weights(rows, 40);
  ASSERT_EQ(columns.size(), 1U);
  std::vector<FeatureWeight> all;
  double squares = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    all.push_back({.feature = i + 1, .weight = double{weights[i]}});
    squares += double{weights[i]} * double{weights[i]};
  }
  std::stable_sort(all.begin(), all.end(), [](const FeatureWeight& a, const FeatureWeight& b) {
    return std::abs(a.weight) > std::abs(b.weight);
  });
  ASSERT_EQ(columns[0].largest.size(), 40U);
  for (size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(columns[0].largest[i].feature, all[i].feature) << i;
    EXPECT_EQ(columns[0].largest[i].weight, all[i].weight) << i;
  }
  EXPECT_DOUBLE_EQ(columns[0].norm, std::sqrt(squares));
  EXPECT_EQ(columns[0].nonzeros,
            static_cast<uint64_t>(std::count_if(weights.begin(), weights.end(), [](float w) { return w != 0; })));
}

TEST_F(ModelWeights, ZerosAreNeverAmongTheLargest) {
  ModelRows rows(saved("model", two_class_model({0, 3, 0, -1})));
  EXPECT_EQ(largest_weights(rows, 10)[0].largest.size(), 2U);
}

TEST_F(ModelWeights, DifferenceIsThatOfTheWeightsAsVectors) {
  const std::vector<float> before = random_weights(2, 300);
  std::vector<float> after = random_weights(3, 280);  // which knows fewer features
  const std::vector<ColumnDifference> columns =
      difference_of(saved("before", two_class_model(before)), saved("after", two_class_model(after)), 1000);
  after.resize(before.size(), 0.0F);
  double product = 0;
  double squares_before = 0;
  double squares_after = 0;
  size_t changed = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    product += double{before[i]} * double{after[i]};
    squares_before += double{before[i]} * double{before[i]};
    squares_after += double{after[i]} * double{after[i]};
    changed += before[i] != after[i] ? 1 : 0;
  }
  EXPECT_NEAR(columns[0].cosine, product / std::sqrt(squares_before * squares_after), 1e-12);
  EXPECT_EQ(columns[0].largest.size(), changed);
  EXPECT_TRUE(std::is_sorted(columns[0].largest.begin(), columns[0].largest.end(),
                             [](const WeightChange& a, const WeightChange& b) { return a.size() > b.size(); }));
}

TEST_F(ModelWeights, AModelOfZerosIsAtNoAngleToAnother) {
  const std::string zero = saved("zero", two_class_model({0, 0}));
  const std::string other = saved("other", two_class_model({1, 0}));
  EXPECT_EQ(difference_of(zero, zero, 1)[0].cosine, 1);
  EXPECT_EQ(difference_of(zero, other, 1)[0].cosine, 0);
}

TEST_F(ModelWeights, LabelsOfModelsThatReadRowsInDifferentWaysAreNotCompared) {
  Model scaled = two_class_model({1, 1});
  scaled.normalized = true;
  const std::string plain = saved("plain", two_class_model({1, 1}));
  const std::string normalized = saved("normalized", scaled);
  write_file(folder_ / "rows.svm", "1 1:1\n");
  EXPECT_THAT([&] { label_changes(plain, normalized, {folder_ / "rows.svm"}, uint64_t{64} << 20); },
              fails_with(ErrorKind::usage, "read rows in different ways"));
}

}  // namespace
}  // namespace linblock
