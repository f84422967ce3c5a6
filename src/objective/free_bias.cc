#include "objective/free_bias.h"

#include "base/error.h"

namespace linblock {

namespace {

constexpr double kLeastShare = 1e-100;  // far from where numbers end

}  // namespace

void BalancedDual::Side::add(const Side& other) {
  costs += other.costs;
  alphas.add(other.alphas);
  values.add(other.values);
  squares.add(other.squares);
  for (size_t i = 0; i < at_shares.size(); ++i) at_shares[i].add(other.at_shares[i]);
  largest = std::max(largest, other.largest);
}

// Between 0, the shares, and 1, where it is known.
double BalancedDual::Side::value_at(double share) const {
  double below = 0;
  double value_below = 0;
  for (size_t i = 0; i <= kShares.size(); ++i) {
    const double above = i < kShares.size() ? kShares[i] : 1;
    const double value_above = i < kShares.size() ? at_shares[i].value() : values.value();
    if (share <= above) {
      const double part = (share - below) / (above - below);
      return (1 - part) * value_below + part * value_above;
    }
    below = above;
    value_below = value_above;
  }
  return value_below;
}

double BalancedDual::Side::rounding() const {
  const auto relative = [](const LongSum& sum) {
    return sum.value() != 0 ? sum.rounding() / std::abs(sum.value()) : 0;
  };
  double most = std::max(relative(values), relative(squares));
  for (const LongSum& sum : at_shares) most = std::max(most, relative(sum));
  return most + kRoundings * kUnit;
}

void BalancedDual::add(const BalancedDual& other) {
  for (size_t i = 0; i < sides_.size(); ++i) sides_[i].add(other.sides_[i]);
  lengths_ += other.lengths_;
  rows_ += other.rows_;
}

BalancingShares BalancedDual::shares() const {
  const LongSum& positive = sides_[0].alphas;
  const LongSum& negative = sides_[1].alphas;
  const double smaller = std::min(positive.value(), negative.value());
  const double larger = std::max(positive.value(), negative.value());
  if (!(smaller > 0) || !(smaller > kLeastShare * larger)) return {};
  return {
      .positive = smaller / positive.value(),
      .negative = smaller / negative.value(),
      .wrong = positive.rounding() / positive.value() + negative.rounding() / negative.value() + kRoundings * kUnit};
}

void require_both_sides(const BalancedDual& dual, const Problem& problem, const Task& task) {
  if (dual.has_positive() && dual.has_negative()) return;
  fail(ErrorKind::input, {leave_out("free_bias")},
       "`free_bias`: no row {} the label {} is left to learn from{}, so nothing limits the bias of this classifier",
       dual.has_positive() ? "without" : "with", problem.store->info().label_names.show(task.positive),
       task.held_out.parts > 0             ? " in one of the folds"
       : task.held_out.outliers != nullptr ? " besides outliers"
                                           : "");
}

}  // namespace linblock
