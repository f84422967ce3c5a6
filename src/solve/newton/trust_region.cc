#include "solve/newton/trust_region.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "base/team.h"
#include "solve/core/sweep.h"

namespace linblock {

namespace {

// Equation 26.
constexpr double kLeastRatio = 1e-4;  // eta 0: below it a step is not taken as it is
constexpr double kPoorRatio = 0.25;   // eta 1
constexpr double kGoodRatio = 0.75;   // eta 2
constexpr double kShrinkMost = 0.25;  // sigma 1
constexpr double kShrinkLeast = 0.5;  // sigma 2
constexpr double kGrowMost = 4;       // sigma 3

constexpr double kInnerTolerance = 0.3;  // of the residual, relative to the gradient
constexpr uint64_t kMostProducts = 200;  // for a step
constexpr double kDiagonalShare = 0.1;   // of the preconditioner; the rest is 1
constexpr int kHalvings = 20;            // of the interval in which a shortened step is looked for
constexpr double kRounding = 1e-12;      // of the objective: a step that promises less cannot be judged by it
constexpr double kMostScale = 1e30;      // a float has room for it
constexpr double kWorthwhile = 0.9;      // of the gradient, that is left by a step of this kind

using Sums = SweepSums;

}  // namespace

TrustRegion::TrustRegion(const Problem& problem, const Task& task, Solution& solution, size_t accumulators,
                         double tolerance)
    : problem_(problem),
      solution_(solution),
      tolerance_(tolerance),
      task_(task),
      free_(free_weight(problem)),
      sums_(problem, task, accumulators),
      gradient_(problem.weights(), 0),
      step_(problem.weights(), 0),
      residual_(problem.weights(), 0),
      scale_(problem.weights(), 1),
      bound_(solution.known_dual) {
  solution_.weights.resize(problem.weights(), 0.0F);
  weights_.assign(solution_.weights.begin(), solution_.weights.end());
  trial_ = weights_;
}

bool TrustRegion::begin_last() {
  wants_ = Wants::losses;
  std::transform(weights_.begin(), weights_.end(), solution_.weights.begin(),
                 [](double weight) { return static_cast<float>(weight); });
  return true;
}

void TrustRegion::begin_pass() {
  moved_ = false;
  switch (wants_) {
    case Wants::first_evaluation:
    case Wants::shortened: return sums_.begin_evaluation(trial_, false);
    case Wants::trial: return sums_.begin_evaluation(trial_, true);
    case Wants::losses: return sums_.begin_losses(solution_.weights);
    case Wants::product: break;
  }
  sums_.begin_product();
}

void TrustRegion::end_pass(const Team& team) {
  if (wants_ == Wants::product) return finish_product(team);
  if (wants_ != Wants::losses) return finish_evaluation(team);
  const Certificate last = certificate_of(
      squared_norm_of(penalized(problem_, std::span<const float>(solution_.weights))), sums_.saved_losses(), {}, {});
  value_ = last.primal;
  bound_ += last.dual;  // which is what rounding may have done to the value, below 0
}

// The objective at the weights on trial, its gradient, and a bound from the duals that belong to them.
void TrustRegion::finish_evaluation(const Team& team) {
  BalancingShares shares;
  if (problem_.free_bias) {
    const BalancedDual dual = sums_.balanced();
    require_both_sides(dual, problem_, task_);
    shares = dual.shares();
  }
  const Sums squares = sweep(team, trial_.size(), [&](size_t i, Sums& sums) {
    const double v = sums_.v(i);
    if (i == free_) {
      sums[2] += v * v;
      return;
    }
    sums[0] += trial_[i] * trial_[i];
    const double balanced = problem_.free_bias ? sums_.balanced_v(i, shares) : v;
    sums[1] += balanced * balanced;
    sums[2] += (trial_[i] - v) * (trial_[i] - v);
  });
  const double terms = sweep_terms(trial_.size());
  bound_ = std::max(bound_, sums_.dual({.value = squares[1], .rounding = sum_rounding(terms) * squares[1]}));
  const double value = 0.5 * squares[0] + sums_.losses();
  const bool first = wants_ == Wants::first_evaluation;
  if (!first) decide(value, std::sqrt(squares[2]));
  if (state_ != State::working || wants_ == Wants::shortened) return;
  take(value);
  // The diagonal of a free bias may be 0 here, and its gradient large: nothing but the loss keeps it from going too
  // far.
  const double scale_of_free =
      problem_.free_bias ? std::min(kDiagonalShare * sums_.most_diagonal_of_bias(), kMostScale) : 0;
  const Sums sums = sweep(team, trial_.size(), [&](size_t i, Sums& all) {
    gradient_[i] = (i == free_ ? 0 : trial_[i]) - sums_.v(i);
    scale_[i] = static_cast<float>(i == free_ ? scale_of_free
                                              : (1 - kDiagonalShare) + kDiagonalShare * (1 + sums_.diagonal(i)));
    all[0] += gradient_[i] * gradient_[i];
    all[1] += gradient_[i] * gradient_[i] / double{scale_[i]};
  });
  gradient_norm_ = std::sqrt(sums[0]);
  if (first) radius_ = std::sqrt(sums[1]);
  if (relative_gap(value_, bound_) <= tolerance_) {
    state_ = State::converged;
    return;
  }
  begin_directions(team);
}

// Equation 26: whether the step is taken, and how far the next may go.
void TrustRegion::decide(double value, double gradient_norm) {
  if (wants_ == Wants::shortened) {
    // Between two points of which the near one is known and the far one is too far: convex, so it cannot be worse but
    // for rounding.
    if (value >= value_) give_up();
    wants_ = Wants::trial;
    return;
  }
  if (expected_ <= kRounding * value_) {
    // The objective can no longer tell, but its gradient can, and the bound is made of it.
    if (!(gradient_norm < kWorthwhile * gradient_norm_)) return give_up();
    return sums_.accept();
  }
  const double ratio = resize_region(value, value_ - value);
  if (ratio > kLeastRatio && value <= value_) {
    sums_.accept();
    return;
  }
  shorten();
}

// The new radius lies in the interval that equation 26 gives for the ratio of real and expected decrease; where in it,
// by the parabola through what is known along the step. Returns the ratio.
double TrustRegion::resize_region(double value, double decrease) {
  const double length = std::sqrt(step_length2_);
  const double bend = value - value_ - slope_;
  const double lowest = bend <= 0 ? kGrowMost : std::max(kShrinkMost, -0.5 * slope_ / bend);
  const double wanted = lowest * length;
  const double ratio = decrease / expected_;
  if (ratio <= kPoorRatio)
    radius_ = std::clamp(wanted, kShrinkMost * std::min(length, radius_), kShrinkLeast * radius_);
  else if (ratio < kGoodRatio)
    radius_ = std::clamp(wanted, kShrinkMost * radius_, kGrowMost * radius_);
  else
    radius_ = std::clamp(wanted, radius_, kGrowMost * radius_);
  return ratio;
}

// The step went too far. Its products are paid for, and the margins of both its ends are known: the best point between
// them costs no reading to find, and the gradient there is needed anyway.
void TrustRegion::shorten() {
  double step2 = 0;
  double along = 0;
  for (size_t i = 0; i < step_.size(); ++i) {
    if (i == free_) continue;
    step2 += double{step_[i]} * double{step_[i]};
    along += weights_[i] * double{step_[i]};
  }
  double low = 0;
  double high = 1;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = 0.5 * (low + high);
    (along + middle * step2 + sums_.line_derivative(middle) > 0 ? high : low) = middle;
  }
  if (low == 0) return give_up();
  for (size_t i = 0; i < trial_.size(); ++i) trial_[i] = weights_[i] + low * double{step_[i]};
  wants_ = Wants::shortened;
}

void TrustRegion::take(double value) {
  assert(!(value > value_ * (1 + kRounding)) || wants_ == Wants::first_evaluation);
  value_ = value;
  weights_ = trial_;
  moved_ = true;
  std::transform(weights_.begin(), weights_.end(), solution_.weights.begin(),
                 [](double weight) { return static_cast<float>(weight); });
}

// Conjugate gradients begin again, from the gradient where we are.
void TrustRegion::begin_directions(const Team& team) {
  const Sums sums = sweep(team, weights_.size(), [&](size_t i, Sums& all) {
    step_[i] = 0;
    residual_[i] = static_cast<float>(-gradient_[i]);
    const float direction = residual_[i] / scale_[i];
    sums_.set_direction(i, direction);
    all[0] += double{residual_[i]} * double{direction};
  });
  step_length2_ = 0;
  residual2_ = first_residual2_ = sums[0];
  expected_ = 0;
  products_ = 0;
  wants_ = Wants::product;
  if (!(residual2_ > 0)) give_up();
}

// One step of preconditioned conjugate gradients, which ends at the region's border (equation 25).
void TrustRegion::finish_product(const Team& team) {
  ++products_;
  const Sums sums = sweep(team, weights_.size(), [&](size_t i, Sums& all) {
    const double d = sums_.direction(i);
    const double scale = scale_[i];
    all[0] += d * sums_.product(i);
    all[1] += d * d * scale;
    all[2] += d * double{step_[i]} * scale;
  });
  const double along = residual2_ / sums[0];
  double length2 = step_length2_ + along * (2 * sums[2] + along * sums[1]);
  const bool beyond = !(length2 <= radius_ * radius_) || !std::isfinite(along);
  double share = along;
  if (beyond) {
    // step + share * direction on the border.
    const double room = radius_ * radius_ - step_length2_;
    const double root = std::sqrt(sums[2] * sums[2] + sums[1] * room);
    share = sums[2] > 0 ? room / (sums[2] + root) : (root - sums[2]) / sums[1];
    length2 = radius_ * radius_;
  }
  const Sums after = sweep(team, weights_.size(), [&](size_t i, Sums& all) {
    step_[i] += static_cast<float>(share * sums_.direction(i));
    residual_[i] -= static_cast<float>(share * sums_.product(i));
    all[0] += double{residual_[i]} * double{residual_[i]} / double{scale_[i]};
  });
  step_length2_ = length2;
  const double grown = after[0] / residual2_;
  residual2_ = after[0];
  if (beyond || products_ >= kMostProducts || residual2_ <= kInnerTolerance * kInnerTolerance * first_residual2_)
    return try_step(team);
  sweep(team, weights_.size(), [&](size_t i, Sums&) {
    sums_.set_direction(i, residual_[i] / scale_[i] + static_cast<float>(grown * sums_.direction(i)));
  });
}

void TrustRegion::try_step(const Team& team) {
  const Sums sums = sweep(team, weights_.size(), [&](size_t i, Sums& all) {
    const double step = step_[i];
    trial_[i] = weights_[i] + step;
    all[0] += gradient_[i] * step;
    all[1] += double{residual_[i]} * step;
  });
  // residual = -gradient - H step, so the model g.s + s.H s / 2 is (g.s - r.s) / 2.
  slope_ = sums[0];
  expected_ = -0.5 * (sums[0] - sums[1]);
  wants_ = Wants::trial;
  if (!(expected_ > 0)) give_up();
}

// No step is better than none, as far as numbers of double precision can tell.
void TrustRegion::give_up() { state_ = State::stalled; }

void TrustRegion::save(FieldWriter& to) const {
  visit_fields(*this, to);
  FieldWriter sums = to.inside("sums");
  sums_.save(sums);
}

void TrustRegion::restore(FieldReader& from) {
  visit_fields(*this, from);
  FieldReader sums = from.inside("sums");
  sums_.restore(sums, trial_, solution_.weights);
}

}  // namespace linblock
