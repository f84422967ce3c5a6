// The bound on |v - w| is never below the truth, whatever the values.
#include "objective/drift.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

#include "base/dot.h"
#include "base/random.h"

namespace linblock {
namespace {

struct Steps {
  double scale = 1;       // of the values
  double cost = 1;        // of the duals
  size_t features = 100;  // of all rows
  size_t nonzeros = 20;   // of a row
  size_t steps = 2000;    // as dual descent would make them
  bool one_sign = false;  // all rows push in the same direction, so that the weights grow
};

// |v - w| in long double, and what the bound says.
std::pair<double, double> drift_after(const Steps& how, uint64_t seed) {
  Random random(seed);
  std::vector<float> w(how.features, 0);
  std::vector<long double> v(how.features, 0);
  DriftBound drift;
  drift.begin(0);
  std::vector<uint32_t> index(how.nonzeros);
  std::vector<float> value(how.nonzeros);
  for (size_t step = 0; step < how.steps; ++step) {
    const size_t stride = how.features / how.nonzeros;
    for (size_t k = 0; k < how.nonzeros; ++k) {
      index[k] = static_cast<uint32_t>(k * stride + random.below(stride));
      value[k] = static_cast<float>(how.scale * (how.one_sign ? random.unit() : random.unit() - 0.5));
    }
    double norm2 = 0;
    for (const float x : value) norm2 += double{x} * double{x};
    const double sign = how.one_sign || random.unit() < 0.5 ? 1 : -1;
    const double margin = sign * double{dot(index, value, w.data())};
    const double before = how.cost * random.unit();
    const double next = how.cost * random.unit();
    const double change = next - before;
    drift.step(change, margin, norm2, how.nonzeros);
    const auto rounded = static_cast<float>(sign * change);
    for (size_t k = 0; k < how.nonzeros; ++k) {
      w[index[k]] += rounded * value[k];
      v[index[k]] += static_cast<long double>(sign) * (static_cast<long double>(next) - before) * value[k];
    }
    if (step % 500 == 499) drift.fold();
  }
  drift.fold();
  long double sum = 0;
  for (size_t j = 0; j < w.size(); ++j) sum += (v[j] - w[j]) * (v[j] - w[j]);
  return {static_cast<double>(std::sqrt(sum)), drift.value()};
}

RC_GTEST_PROP(DriftBound, IsNeverBelowTheTruth, (uint64_t seed)) {
  const Steps how{.scale = std::pow(10.0, *rc::gen::inRange(-18, 15)),
                  .cost = std::pow(10.0, *rc::gen::inRange(-15, 15)),
                  .features = *rc::gen::inRange<size_t>(40, 400),
                  .nonzeros = *rc::gen::inRange<size_t>(1, 40),
                  .steps = *rc::gen::inRange<size_t>(1, 3000),
                  .one_sign = *rc::gen::arbitrary<bool>()};
  const auto [truth, bound] = drift_after(how, seed);
  if (!std::isfinite(truth)) return;  // floats overflow: the weights are lost anyway, and the bound is infinite
  RC_ASSERT(bound >= truth);
}

TEST(DriftBound, IsOfUse) {
  const auto [truth, bound] = drift_after({}, 1);
  EXPECT_GT(truth, 0);
  EXPECT_LT(bound, 0.1) << "of weights whose length is some units";
}

TEST(DriftBound, KnowsNothingAfterAnOverflow) {
  DriftBound drift;
  drift.begin(std::numeric_limits<double>::infinity());
  drift.step(1, 1, 1, 1);
  drift.fold();
  EXPECT_FALSE(drift.value() <= 1e300);
}

TEST(DriftBound, OfWeightsThatAreRoundedOnce) {
  Random random(3);
  std::vector<double> v(1000);
  double v2 = 0;
  double drift2 = 0;
  for (double& x : v) {
    x = random.unit() - 0.5;
    v2 += x * x;
    drift2 += std::pow(x - double{static_cast<float>(x)}, 2);
  }
  EXPECT_GE(DriftBound::of_rounded(std::sqrt(v2), 0, v.size()), std::sqrt(drift2));
  EXPECT_LE(DriftBound::of_rounded(std::sqrt(v2), 0, v.size()), 4 * std::sqrt(drift2));
}

// A fold in another place gives another number, but never one below the truth; many steps fold by themselves.
TEST(DriftBound, FoldsByItself) {
  const auto [truth, bound] = drift_after({.features = 50, .nonzeros = 3, .steps = 200'000}, 5);
  EXPECT_GE(bound, truth);
  EXPECT_TRUE(std::isfinite(bound));
}

}  // namespace
}  // namespace linblock
