// The best duals of one row, against the conditions that make a point the best.
#include "objective/class_step.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace linblock {
namespace {

// The slope of the dual along each candidate at the answer, s_m - s_y + 1 with scores as they are then.
void expect_best(const std::vector<ClassCandidate>& found, double own, double norm2, double cost) {
  double sum = 0;
  for (const ClassCandidate& one : found) sum += one.dual;
  ASSERT_LE(sum, cost * (1 + 1e-12));
  double largest = 0;
  double scale = std::abs(own);
  for (const ClassCandidate& one : found) {
    ASSERT_GE(one.dual, 0);
    largest = std::max(largest, one.b - norm2 * one.dual - (own + norm2 * sum));
    scale = std::max({scale, std::abs(one.b), norm2 * sum});
  }
  for (const ClassCandidate& one : found) {
    const double slope = one.b - norm2 * one.dual - (own + norm2 * sum);
    if (one.dual > 0) {
      EXPECT_NEAR(slope, largest, 1e-12 * scale) << "who has something asks for as much as any";
    }
  }
  if (sum < cost * (1 - 1e-12)) {
    EXPECT_NEAR(largest, 0, 1e-12 * scale) << "and for nothing more, where there is more to have";
  }
}

TEST(ClassStep, IsTheBestForAnyNumbers) {
  Random random(1);
  for (int i = 0; i < 20000; ++i) {
    std::vector<ClassCandidate> candidates(random.below(9));
    const double spread = std::pow(10, 6 * random.unit() - 3);
    for (uint32_t m = 0; m < candidates.size(); ++m)
      candidates[m] = {.number = m, .b = random.below(4) == 0 ? 1 : 1 + spread * (random.unit() - 0.5), .dual = 77};
    const double own = 4 * random.unit() - 2;
    const double norm2 = std::pow(10, 8 * random.unit() - 4);
    const double cost = std::pow(10, 8 * random.unit() - 4);
    const double beta = best_class_duals(candidates, own, norm2, cost);
    expect_best(candidates, own, norm2, cost);
    for (const ClassCandidate& one : candidates) EXPECT_EQ(one.dual > 0, one.b > beta + 1e-12 * std::abs(one.b)) << i;
  }
}

TEST(ClassStep, GivesTheWholeCostExactlyWhereOneClassTakesIt) {
  std::vector<ClassCandidate> candidates = {{.number = 0, .b = 1}, {.number = 1, .b = 5}};
  best_class_duals(candidates, 0, 0.1, 0.3);
  EXPECT_EQ(candidates[0].number, 1U);
  EXPECT_EQ(candidates[0].dual, 0.3);
  EXPECT_EQ(candidates[1].dual, 0);
}

// Beside the scores |x|^2 * cost may be anything.
TEST(ClassStep, LosesNothingWhereTheRowIsTinyOrHuge) {
  struct Case {
    double norm2;
    double dual;  // of each of the two that tie
  };
  for (const auto& [norm2, dual] : {Case{0, 2}, Case{1e-60, 1}, Case{1e60, 1e-60 / 3}}) {
    std::vector<ClassCandidate> candidates = {{.number = 0, .b = 1}, {.number = 1, .b = 1}, {.number = 2, .b = 0.5}};
    best_class_duals(candidates, 0, norm2, 2);
    EXPECT_NEAR(candidates[0].dual, dual, 1e-14 * dual);
    EXPECT_EQ(candidates[1].dual, norm2 == 0 ? 0 : candidates[0].dual);
    EXPECT_EQ(candidates[2].dual, 0);
  }
}

}  // namespace
}  // namespace linblock
