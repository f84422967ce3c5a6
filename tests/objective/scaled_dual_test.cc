#include "objective/scaled_dual.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace linblock {
namespace {

struct RowOfShares {
  double share = 0;
  double cost = 1;
};

template <class L>
double dual_at(const L& loss, const std::vector<RowOfShares>& rows, double v2, double scale) {
  double sum = -0.5 * scale * scale * v2;
  for (const RowOfShares& row : rows)
    if (row.share > 0) sum += loss.dual_value(scale * row.share * row.cost, row.cost);
  return sum;
}

// D is concave: the third that cannot hold its maximum goes.
template <class L>
double best_by_search(const L& loss, const std::vector<RowOfShares>& rows, double v2, double most) {
  double low = 0;
  double high = most;
  for (int i = 0; i < 200; ++i) {
    const double left = low + (high - low) / 3;
    const double right = high - (high - low) / 3;
    (dual_at(loss, rows, v2, left) < dual_at(loss, rows, v2, right) ? low : high) =
        dual_at(loss, rows, v2, left) < dual_at(loss, rows, v2, right) ? left : right;
  }
  return dual_at(loss, rows, v2, low);
}

// Shares of margins around `middle`, and a v of some length.
template <class L>
void expect_best(const L& loss, double middle, double v2, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> margins(middle, 2);
  std::uniform_real_distribution<double> costs(0.1, 3);
  std::vector<RowOfShares> rows(50);
  double largest = 0;
  for (RowOfShares& row : rows) {
    row = {-loss.derivative(margins(random)), costs(random)};
    largest = std::max(largest, row.share);
  }
  const double found = best_scaled_dual(loss, {.v2 = v2}, [&](const auto& add) {
    for (const RowOfShares& row : rows) add(row.share, row.cost);
  });
  const double most = std::is_same_v<L, Logistic> ? (1 - 1e-9) / largest : 100;
  const double best = best_by_search(loss, rows, v2, most);
  // A bound that is allowed, never below what the duals give as they are, and nearly the best.
  EXPECT_LE(found, best + 1e-9 * std::abs(best)) << L::kName << " " << middle << " " << v2;
  EXPECT_GE(found, dual_at(loss, rows, v2, std::min(1.0, most)) - 1e-12);
  EXPECT_GE(found, best - 1e-3 * std::abs(best)) << L::kName << " " << middle << " " << v2;
}

TEST(ScaledDual, IsTheBestOfAllScales) {
  for (uint32_t seed = 1; seed < 20; ++seed)
    for (const double middle : {-1.0, 1.0, 3.0})
      for (const double v2 : {1.0, 30.0, 300.0}) {
        expect_best(SquaredHinge{}, middle, v2, seed);
        if (v2 < 100) expect_best(Logistic{}, middle, v2, seed);
      }
}

TEST(ScaledDual, IsZeroWhereNoRowHasAShare) {
  const auto none = [](const auto&) {};
  const auto zeros = [](const auto& add) { add(0.0, 1.0); };
  EXPECT_EQ(best_scaled_dual(SquaredHinge{}, {}, none), 0);
  EXPECT_EQ(best_scaled_dual(SquaredHinge{}, {}, zeros), 0);
  EXPECT_EQ(best_scaled_dual(Logistic{}, {}, none), 0);
  EXPECT_EQ(best_scaled_dual(Logistic{}, {}, zeros), 0);
}

TEST(ScaledDual, IsAllowedWhereAShareIsWhole) {
  const std::vector<RowOfShares> rows = {{1.0, 2.0}, {0.5, 1.0}};
  const double found = best_scaled_dual(Logistic{}, {.v2 = 0.1}, [&](const auto& add) {
    for (const RowOfShares& row : rows) add(row.share, row.cost);
  });
  EXPECT_LE(found, best_by_search(Logistic{}, rows, 0.1, 1) + 1e-12);
  EXPECT_GE(found, dual_at(Logistic{}, rows, 0.1, 1) - 1e-12);
}

}  // namespace
}  // namespace linblock
