#include "base/exponential.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace linblock {
namespace {

double relative_error(double x) { return std::abs(fast_exponential(x) / std::exp(x) - 1); }

TEST(FastExponential, IsWithinItsBoundEverywhere) {
  double worst = 0;
  for (int i = -708000; i <= 708000; ++i) worst = std::max(worst, relative_error(i * 1e-3));
  // Where k changes, r is as long as it gets.
  for (int k = -1020; k <= 1020; ++k) {
    const double border = (k + 0.5) * std::log(2.0);
    for (const double x : {border, std::nextafter(border, -1e9), std::nextafter(border, 1e9)})
      worst = std::max(worst, relative_error(x));
  }
  for (double x = 1; x > 1e-300; x /= 3) worst = std::max({worst, relative_error(x), relative_error(-x)});
  EXPECT_LE(worst, kFastExponentialError);
  EXPECT_GT(worst, 1e-10);  // the bound is not far from the truth
}

TEST(FastExponential, IsOneAtZeroAndGrows) {
  EXPECT_EQ(fast_exponential(0), 1);
  EXPECT_EQ(fast_exponential(-0.0), 1);
  double before = 0;
  for (int i = -7080; i <= 7080; ++i) {
    const double next = fast_exponential(i * 0.1);
    EXPECT_GT(next, before) << i;
    before = next;
  }
}

TEST(FastExponential, StaysFiniteAndPositiveBeyondItsRange) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(fast_exponential(kInfinity), fast_exponential(708));
  EXPECT_EQ(fast_exponential(1e300), fast_exponential(708));
  EXPECT_EQ(fast_exponential(-kInfinity), fast_exponential(-708));
  EXPECT_GT(fast_exponential(-708), 0);
  EXPECT_LT(fast_exponential(708), kInfinity);
}

TEST(FastExponential, OfManyAtOnceHasTheSameBits) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> values(-800, 800);
  for (size_t count = 0; count < 40; ++count) {
    std::vector<double> x(count);
    for (double& one : x) one = values(random);
    std::vector<double> found = x;
    fast_exponentials(found.data(), count);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(found[i], fast_exponential(x[i])) << x[i];
  }
}

}  // namespace
}  // namespace linblock
