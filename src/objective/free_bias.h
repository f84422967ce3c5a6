// What changes if the bias is not penalized.
//
// Problem:  min over w, b  1/2 |w|^2 + sum of cost * loss(y (w.x + b B)),   B: the value of the constant feature
// Dual:     max over alpha  sum of dual_value(alpha, cost) - 1/2 |v|^2,   v = sum of alpha y x without the bias,
//           where sum of alpha y = 0: both sides, y = 1 and y = -1, have the same sum of alphas
//
// The alphas of a reading nearly balance, and no more. The side with the larger sum is multiplied by a share below 1,
// so that they do. Alphas that shrink stay within their bounds, and the dual of the balanced ones follows from sums of
// each side: v is made of the two sides apart, and a quadratic dual has its parts. The dual of the logistic loss is
// summed at some shares as well: it is concave in the share, so between two of them a chord is below it.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "objective/problem.h"
#include "objective/rounding.h"
#include "objective/scaled_dual.h"

namespace linblock {

// The weights whose squares are in the objective: all of them, or all but the bias, which is the last.
template <typename Number>
std::span<const Number> penalized(const Problem& problem, std::span<const Number> weights) {
  return problem.free_bias ? weights.first(weights.size() - 1) : weights;
}

// The weight that has no penalty; none: beyond all weights.
inline size_t free_weight(const Problem& problem) {
  return problem.free_bias ? problem.weights() - 1 : std::numeric_limits<size_t>::max();
}

// By what both sides are multiplied. One of the two is 1, or both are 0: one side has no alphas, and the bound is 0.
struct BalancingShares {
  double positive = 0;
  double negative = 0;
  // How far from balanced the sides may be after all, relative to their sums: rounding. Shrinking one side by so much
  // makes them balance exactly.
  double wrong = 0;

  // Of v, whose part of y = -1 is `of_negative`.
  double v(double of_all, double of_negative) const { return positive * of_all + (negative - positive) * of_negative; }
};

class BalancedDual {
 public:
  // A row whose cost is above 0. `norm`: |x|.
  template <Loss L>
  void add(const L& loss, double sign, double alpha, double cost, double norm) {
    Side& side = sides_[sign > 0 ? 0 : 1];
    side.costs += cost;
    if (alpha == 0) return;
    side.alphas.add(alpha);
    if constexpr (QuadraticDual<L>) {
      side.values.add(loss.dual_linear(alpha, cost));
      side.squares.add(loss.dual_square(alpha, cost));
    } else {
      side.values.add(loss.dual_value(alpha, cost));
    }
    if constexpr (GeneralDual<L>) {
      for (size_t i = 0; i < kShares.size(); ++i) side.at_shares[i].add(loss.dual_value(kShares[i] * alpha, cost));
    }
    side.largest = std::max(side.largest, alpha / loss.largest_alpha(cost));
    lengths_ += alpha * norm;
    ++rows_;
  }
  void add(const BalancedDual& other);

  bool has_positive() const { return sides_[0].costs > 0; }
  bool has_negative() const { return sides_[1].costs > 0; }
  // Of all rows.
  double costs() const { return sides_[0].costs + sides_[1].costs; }

  BalancingShares shares() const;
  // A lower bound of the optimum, with its rounding taken off. `v2`: of the balanced v, which was added up from
  // `parts`.
  template <Loss L>
  double bound(const L& loss, const BalancingShares& shares, const SquaredNorm& v2, double parts) const;

  static void visit_fields(auto& self, auto&& field) {
    field("positive", self.sides_[0]);
    field("negative", self.sides_[1]);
    field("lengths", self.lengths_);
    field("rows", self.rows_);
  }

 private:
  // An imbalance of two thirds of the way to the next share costs about what the square of that way costs: so few serve
  // every gap from 10% to 1e-7.
  static constexpr std::array<double, 3> kShares = {1 - 0x1p-3, 1 - 0x1p-8, 1 - 0x1p-13};
  // Of computing shares, and of multiplying alphas, sums and v by them.
  static constexpr double kRoundings = 16;

  struct Side {
    double costs = 0;
    LongSum alphas = {};
    LongSum values = {};   // of the dual, or of its linear part ...
    LongSum squares = {};  // ... and of its quadratic part
    std::array<LongSum, kShares.size()> at_shares = {};
    double largest = 0;  // of alpha / the largest alpha allowed

    void add(const Side& other);
    // A lower bound of the sum of dual values with all alphas multiplied by the share.
    double value_at(double share) const;
    // Of its sums, relative to them.
    double rounding() const;

    static void visit_fields(auto& self, auto&& field) {
      field("costs", self.costs);
      field("alphas", self.alphas);
      field("values", self.values);
      field("squares", self.squares);
      field("at_share_0", self.at_shares[0]);
      field("at_share_1", self.at_shares[1]);
      field("at_share_2", self.at_shares[2]);
      field("largest", self.largest);
    }
  };

  std::array<Side, 2> sides_ = {};
  double lengths_ = 0;  // sum of alpha |x|, and of how many rows: a bound of v's rounding
  double rows_ = 0;
};

template <Loss L>
double BalancedDual::bound(const L&, const BalancingShares& shares, const SquaredNorm& v2, double parts) const {
  if (!(shares.positive > 0)) return 0;  // alphas of 0 are balanced
  // v and its negative part each have this error; so has what exact balance takes off.
  const double v_wrong = (2 * sum_rounding(rows_ + parts, kRoundings) + shares.wrong) * lengths_;
  const ScaledDual dual{.v2 = v2.value,
                        .v2_rounding = v2.rounding + (2 * std::sqrt(v2.value) + v_wrong) * v_wrong,
                        .wrong = shares.wrong + std::max(sides_[0].rounding(), sides_[1].rounding())};
  const std::array<double, 2> factors = {shares.positive, shares.negative};
  LongSum values;
  LongSum squares;
  double largest = 0;
  for (size_t i = 0; i < factors.size(); ++i) {
    const Side& side = sides_[i];
    largest = std::max(largest, factors[i] * side.largest);
    if constexpr (GeneralDual<L>) {
      values.add(side.value_at(factors[i]));
    } else {
      values.add(factors[i] * side.values.value());
      squares.add(factors[i] * factors[i] * side.squares.value());
    }
  }
  if constexpr (GeneralDual<L>)
    return dual.of_values(values, 1);
  else
    return dual.of_parabola(values, squares, largest_scale(largest));
}

// Refuses a task of which one side has no rows that count: its objective would fall for ever as the bias grows.
void require_both_sides(const BalancedDual& dual, const Problem& problem, const Task& task);

}  // namespace linblock
