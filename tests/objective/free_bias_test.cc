// The bound of duals that are made to balance: never above the dual of exactly balanced ones at their best, and close
// to it.
#include "objective/free_bias.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace linblock {
namespace {

struct Drawn {
  double sign = 1;
  double cost = 1;
  double alpha = 0;
  double x = 0;
};

// Shares of the cost, from next to 0 to next to 1 if the spread is large; `excess`: by what the positive side is
// larger.
std::vector<Drawn> draw(uint32_t seed, double excess, double cost, double spread) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> unit;
  std::normal_distribution<double> normal;
  std::vector<Drawn> rows;
  for (int i = 0; i < 100; ++i) {
    // Costs, shares and features in pairs: without the excess both sides balance.
    const double one = cost * (0.1 + unit(random));
    const double share = 1 / (1 + std::exp(spread * normal(random)));
    const double x = normal(random) / std::sqrt(cost);
    rows.push_back({1, one, one * share, x});
    rows.push_back({-1, one, one * share / (1 + excess), 0.9 * x});
  }
  return rows;
}

template <Loss L>
long double balanced_dual(const L&, const std::vector<Drawn>& rows) {
  long double p = 0;
  long double q = 0;
  for (const Drawn& row : rows) (row.sign > 0 ? p : q) += row.alpha;
  const long double t = std::min(p, q);
  long double value = 0;
  long double v = 0;
  for (const Drawn& row : rows) {
    const long double alpha = row.alpha * t / (row.sign > 0 ? p : q);
    const long double cost = row.cost;
    v += alpha * row.sign * row.x;
    if constexpr (GeneralDual<L>) {
      const long double share = alpha / cost;
      if (share > 0) value -= cost * share * std::log(share);
      if (share < 1) value -= cost * (1 - share) * std::log1p(-share);
    } else {
      if constexpr (std::is_same_v<L, Hinge>) value += alpha;
      if constexpr (std::is_same_v<L, SquaredHinge>) value += alpha - alpha * alpha / (4 * cost);
      if constexpr (std::is_same_v<L, HuberHinge>) value += alpha * 1.5L - 0.5L * alpha * alpha / cost;
    }
  }
  return value - 0.5L * v * v;
}

template <Loss L>
double bound_of(const L& loss, const std::vector<Drawn>& rows) {
  BalancedDual dual;
  double v = 0;
  double negative = 0;
  for (const Drawn& row : rows) {
    dual.add(loss, row.sign, row.alpha, row.cost, std::abs(row.x));
    v += row.alpha * row.sign * row.x;
    if (row.sign < 0) negative -= row.alpha * row.x;
  }
  const BalancingShares shares = dual.shares();
  const std::vector<double> balanced = {shares.v(v, negative)};
  return dual.bound(loss, shares, squared_norm_of(std::span<const double>(balanced)), 1);
}

template <class L>
class BalancedDualOf : public testing::Test {};
using AllLosses = testing::Types<Hinge, SquaredHinge, Logistic, HuberHinge>;
TYPED_TEST_SUITE(BalancedDualOf, AllLosses);

TYPED_TEST(BalancedDualOf, IsALowerBoundAndCloseToTheBalancedDual) {
  const TypeParam loss{};
  for (const double cost : {1e-9, 1.0, 1e12}) {
    for (const double excess : {0.0, 1e-14, 1e-9, 1e-5, 1e-3, 0.03, 0.2, 10.0, 1e8}) {
      for (uint32_t seed = 1; seed <= 20; ++seed) {
        const double spread = seed % 2 == 0 ? 2 : 12;
        const std::vector<Drawn> rows = draw(seed, excess, cost, spread);
        const long double exact = balanced_dual(loss, rows);
        const auto bound = static_cast<long double>(bound_of(loss, rows));
        const long double size = std::max(std::abs(exact), static_cast<long double>(cost) * 1e-12L);
        if constexpr (GeneralDual<TypeParam>) {
          EXPECT_LE(bound, exact) << "cost " << cost << ", excess " << excess;
          // A chord from 1 to the next share loses no more than a few times the imbalance times its length.
          const double length = excess > 0x1p-13 ? 0x1p-8 : 0x1p-13;
          if (spread == 2 && excess <= 1e-3) {
            EXPECT_GE(bound, exact - size * (1e-11L + 40 * excess * (excess + length)))
                << "cost " << cost << ", excess " << excess;
          }
        } else {
          // A parabola in the common multiple, which can only make it better.
          std::vector<Drawn> halves = rows;
          for (Drawn& row : halves) row.alpha /= 2;
          const long double linear = 4 * balanced_dual(loss, halves) - exact;
          const long double square = 2 * (linear - exact);
          EXPECT_LE(bound, linear * linear / (2 * square)) << "cost " << cost << ", excess " << excess;
          EXPECT_GE(bound, exact - 1e-10L * size) << "cost " << cost << ", excess " << excess;
        }
      }
    }
  }
}

TYPED_TEST(BalancedDualOf, IsZeroWhereOneSideHasNoAlphas) {
  const TypeParam loss{};
  BalancedDual dual;
  dual.add(loss, 1, 0.5, 1, 1);
  dual.add(loss, -1, 0, 1, 1);
  EXPECT_TRUE(dual.has_negative());
  EXPECT_EQ(dual.shares().positive, 0);
  EXPECT_EQ(dual.bound(loss, dual.shares(), {}, 1), 0);
}

TYPED_TEST(BalancedDualOf, DoesNotDependOnHowRowsAreGrouped) {
  const TypeParam loss{};
  const std::vector<Drawn> rows = draw(3, 0.1, 1, 2);
  BalancedDual all;
  BalancedDual half;
  BalancedDual rest;
  for (size_t i = 0; i < rows.size(); ++i) {
    all.add(loss, rows[i].sign, rows[i].alpha, rows[i].cost, 1);
    (i < 77 ? half : rest).add(loss, rows[i].sign, rows[i].alpha, rows[i].cost, 1);
  }
  half.add(rest);
  EXPECT_DOUBLE_EQ(half.shares().positive, all.shares().positive);
  EXPECT_DOUBLE_EQ(half.bound(loss, half.shares(), {}, 1), all.bound(loss, all.shares(), {}, 1));
}

}  // namespace
}  // namespace linblock
