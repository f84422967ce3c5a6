// Bounds of rounding, against sums in 113 bits.
#include "objective/rounding.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "objective/losses/losses.h"

namespace linblock {
namespace {

__extension__ using Quad = __float128;

double distance(double found, Quad exact) {
  const Quad away = found - exact;
  return static_cast<double>(away < 0 ? -away : away);
}

// Of all sizes, and such that most of them cancel.
std::vector<double> wild_numbers(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> power(-20, 20);
  std::vector<double> numbers;
  while (numbers.size() + 1 < count) {
    const double size = std::pow(10.0, power(random)) * (random() % 2 == 0 ? 1 : -1);
    numbers.push_back(size);
    numbers.push_back(-size * (1 + 1e-12 * power(random)));
  }
  std::shuffle(numbers.begin(), numbers.end(), random);
  return numbers;
}

TEST(LongSum, IsWithinItsBoundAndCloserThanAPlainSum) {
  double worst_plain = 0;
  double worst = 0;
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    const std::vector<double> numbers = wild_numbers(500, seed);
    Quad exact = 0;
    double plain = 0;
    LongSum sum;
    LongSum halves[2];
    for (size_t i = 0; i < numbers.size(); ++i) {
      exact += numbers[i];
      plain += numbers[i];
      sum.add(numbers[i]);
      halves[i % 2].add(numbers[i]);
    }
    EXPECT_LE(distance(sum.value(), exact), sum.rounding()) << seed;
    halves[0].add(halves[1]);
    EXPECT_LE(distance(halves[0].value(), exact), halves[0].rounding()) << seed;
    worst = std::max(worst, distance(sum.value(), exact));
    worst_plain = std::max(worst_plain, distance(plain, exact));
  }
  EXPECT_LT(worst, 1e-6 * worst_plain);
}

TEST(SquaredNorm, IsWithinItsBound) {
  for (const size_t count : {0U, 1U, 5U, 1024U, 1025U, 50000U}) {
    std::mt19937 random(static_cast<uint32_t>(count));
    std::normal_distribution<double> normal;
    std::vector<double> numbers(count);
    Quad exact = 0;
    for (double& number : numbers) {
      number = normal(random);
      exact += Quad{number} * Quad{number};
    }
    const SquaredNorm found = squared_norm_of(std::span<const double>(numbers));
    EXPECT_LE(distance(found.value, exact), found.rounding) << count;
    EXPECT_LE(found.rounding, 1e-12 * found.value) << count;
  }
}

// Margins that are sums of huge numbers of both signs, as with a large cost.
template <class L>
void expect_losses_within_bound(const L& loss, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  LossSum sum;
  Quad exact = 0;
  for (int row = 0; row < 100; ++row) {
    const size_t terms = 1 + random() % 30;
    const double size = std::pow(10.0, static_cast<int>(random() % 14));
    double margin = 0;
    Quad exact_margin = 0;
    double w2 = 0;
    double x2 = 0;
    for (size_t k = 0; k < terms; ++k) {
      const auto w = static_cast<float>(normal(random) * size);
      const auto x = static_cast<float>(normal(random));
      margin += double{w} * double{x};
      exact_margin += Quad{w} * Quad{x};
      w2 += double{w} * double{w};
      x2 += double{x} * double{x};
    }
    const double cost = std::pow(10.0, static_cast<int>(random() % 26) - 10);
    sum.add(loss, cost, margin, std::sqrt(w2 * x2), terms);
    const Quad slack = exact_margin < 1 ? 1 - exact_margin : Quad{0};
    exact += Quad{cost} * (std::is_same_v<L, Hinge> ? slack : slack * slack);
  }
  EXPECT_LE(distance(sum.value(), exact), sum.rounding()) << L::kName << " " << seed;
  EXPECT_LE(sum.rounding(), 1e-10 * sum.value()) << L::kName << " " << seed;
}

TEST(LossSum, IsWithinItsBound) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    expect_losses_within_bound(Hinge(), seed);
    expect_losses_within_bound(SquaredHinge(), seed);
  }
}

TEST(DualSum, BoundsTheRoundingOfV) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::vector<double> v(5);
    std::vector<Quad> exact(5);
    DualSum sum;
    for (int row = 0; row < 300; ++row) {
      const double alpha = std::pow(10.0, static_cast<int>(random() % 16));
      double norm2 = 0;
      for (size_t j = 0; j < v.size(); ++j) {
        const auto x = static_cast<float>(normal(random));
        v[j] += alpha * double{x};
        exact[j] += Quad{alpha} * Quad{x};
        norm2 += double{x} * double{x};
      }
      sum.add(alpha, alpha, std::sqrt(norm2));
    }
    Quad exact2 = 0;
    for (const Quad one : exact) exact2 += one * one;
    const SquaredNorm v2 = squared_norm_of(std::span<const double>(v));
    EXPECT_LE(distance(v2.value, exact2), sum.v2_rounding(v2)) << seed;
  }
}

}  // namespace
}  // namespace linblock
