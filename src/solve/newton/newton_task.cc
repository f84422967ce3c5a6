#include "solve/newton/newton_task.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "objective/double_weights.h"

namespace linblock {

namespace {

constexpr double kWarmPenalty = 2;      // the zone of free rows is half a margin to either side
constexpr double kPenaltyGrowth = 2;    // when centres move
constexpr double kPenaltyDrop = 0.5;    // at least, when steps go too far: few rows are free, and many meet corners
constexpr int kMostShortenedSteps = 1;  // in a row, before it drops ...
constexpr double kShortShare = 0.1;     // ... as it does where less is left of a single step
constexpr double kCentresFollow = 0.3;  // the gradient's part of the gap, of that of the centres
constexpr double kNegligible = 1e-9;    // of the tolerance times the dual
// A step that was too long met rows that its model left out: the next model has more of them. Too many more would make
// the sample thin.
constexpr double kZoneGrowth = 2;
constexpr double kMostZone = 4;
constexpr double kRoundsFrom = 1e-4;  // a tolerance: weights as floats are good enough for it
constexpr double kRounding = 1e-12;   // of the value: a difference that says nothing
constexpr double kLeastShare = 0.05;  // of a step that went too far
constexpr double kMostShare = 0.7;
constexpr int kMostShortened = 12;
constexpr int kMostIdle = 40;
constexpr double kBetter = 1e-10;          // relative
constexpr uint64_t kEnoughPerWeight = 64;  // rows in the sample
constexpr uint64_t kEnoughShare = 8;       // one nonzero in so many

uint64_t enough_nonzeros(const Problem& problem) {
  const StoreInfo& info = problem.store->info();
  const uint64_t per_row = info.nonzeros / std::max<uint64_t>(1, info.rows) + 1;
  return std::max(info.nonzeros / kEnoughShare, kEnoughPerWeight * problem.weights() * per_row);
}

}  // namespace

NewtonTask::NewtonTask(const Setup& setup, size_t number, double first_penalty)
    : setup_(setup),
      number_(number),
      solution_(setup.solutions[number]),
      evaluation_(setup.problem, setup.problem.tasks[number], setup.plan.accumulators, setup.options.seed),
      sample_(*setup.problem.store, setup.plan.cache_bytes / setup.problem.tasks.size(), enough_nonzeros(setup.problem),
              setup.resident),
      model_(setup.problem, sample_, setup.context.team),
      v_(setup.problem.weights(), 0),
      diagonal_(setup.problem.weights(), 0),
      rounds_(setup.options.tolerance >= kRoundsFrom),
      best_primal_(std::numeric_limits<double>::infinity()),
      bound_(setup.solutions[number].known_dual) {
  solution_.weights.resize(setup.problem.weights(), 0.0F);
  weights_.assign(solution_.weights.begin(), solution_.weights.end());
  trial_ = weights_;
  warm_ = std::any_of(weights_.begin(), weights_.end(), [](double weight) { return weight != 0; });
  evaluation_.set_penalty((warm_ ? kWarmPenalty : first_penalty) * setup.problem.tasks[number].cost);
}

bool NewtonTask::begin_last() {
  if (saved_as_evaluated_) return false;
  wants_ = Wants::losses;
  trial_.assign(solution_.weights.begin(), solution_.weights.end());
  return true;
}

void NewtonTask::begin_pass() {
  sample_.clear();
  ++readings_;
  evaluation_.begin(
      trial_, rarely_,
      {.number = readings_, .guesses_centres = wants_ == Wants::first && warm_, .samples = wants_ != Wants::losses});
}

void NewtonTask::collect(const Block& block) {
  if (wants_ != Wants::losses) evaluation_.collect(block, sample_);
}

void NewtonTask::take_best(const Certificate& certificate, double rounding) {
  ++idle_;
  if (certificate.dual > bound_) {
    if (certificate.dual > bound_ + kBetter * std::abs(bound_)) idle_ = 0;
    bound_ = certificate.dual;
  }
  if (!(certificate.primal < best_primal_)) return;
  if (certificate.primal < best_primal_ * (1 - kBetter)) idle_ = 0;
  best_primal_ = certificate.primal;
  best_rounding_ = rounding;
  saved_as_evaluated_ = rounds_ || wants_ == Wants::first;
  std::transform(trial_.begin(), trial_.end(), solution_.weights.begin(),
                 [](double weight) { return static_cast<float>(weight); });
}

std::span<const double> NewtonTask::penalized_of(std::span<const double> weights) const {
  return penalized(setup_.problem, weights);
}

// v_ is as good as any vector to make it in.
SquaredNorm NewtonTask::balanced_v2() {
  const BalancedDual dual = evaluation_.balanced();
  require_both_sides(dual, setup_.problem, setup_.problem.tasks[number_]);
  const BalancingShares shares = dual.shares();
  for (size_t j = 0; j < v_.size(); ++j) v_[j] = evaluation_.balanced_v(j, shares);
  return squared_norm_of(penalized_of(v_));
}

void NewtonTask::end_pass(FactorPool& factors) {
  const NewtonEvaluation::Sums sums = evaluation_.sums();
  const SquaredNorm v2 = setup_.problem.free_bias ? balanced_v2() : SquaredNorm();
  for (size_t j = 0; j < v_.size(); ++j) v_[j] = evaluation_.v(j);
  const SquaredNorm w2 = squared_norm_of(penalized_of(trial_));
  const Certificate certificate =
      evaluation_.certificate(sums, w2, setup_.problem.free_bias ? v2 : squared_norm_of(std::span<const double>(v_)));
  if (wants_ == Wants::losses) {  // of the weights as they are saved, better or not
    best_primal_ = certificate.primal;
    best_rounding_ = certificate_of(w2, sums.losses, {}, {}).dual;
    bound_ = std::max(bound_, certificate.dual);
    saved_as_evaluated_ = true;
    return;
  }
  take_best(certificate, certificate_of(w2, sums.losses, {}, {}).dual);
  const double value = 0.5 * w2.value + sums.smoothed;
  const size_t free = free_weight(setup_.problem);
  double squares = 0;
  double slope = 0;
  for (size_t j = 0; j < v_.size(); ++j) {
    const double gradient = (j == free ? 0 : trial_[j]) - v_[j];
    squares += gradient * gradient;
    slope += gradient * (trial_[j] - weights_[j]);
  }
  gradient_norm_ = std::sqrt(squares);
  if (this->certificate().gap() <= setup_.options.tolerance) {
    state_ = State::converged;
    return;
  }
  if (idle_ > kMostIdle) {
    if (!rounds_) {
      state_ = State::stalled;
      return;
    }
    rounds_ = false;
    idle_ = 0;
  }
  // It is convex: where it still falls at the end of the step, it has fallen all the way.
  const bool rose = slope > 0 && !(value <= value_ + kRounding * std::abs(value_));
  if (wants_ != Wants::first && rose) return shorten(value, slope);
  shortened_steps_ = exact_ && shortened_ > 0 ? shortened_steps_ + 1 : 0;
  if (shortened_ == 0) evaluation_.set_zone(NewtonEvaluation::kUsualZone);
  shortened_ = 0;
  weights_ = trial_;
  value_ = value;
  // A free bias is not measured in the units of the gap, but all that is not the centres' is the gradient's.
  const double of_gradient = setup_.problem.free_bias
                                 ? std::max(0.0, certificate.primal - certificate.dual - sums.complementarity)
                                 : 0.5 * squares;
  step(sums, of_gradient, factors);
}

// A parabola through the value at both ends and the slope at the far one.
void NewtonTask::shorten(double value, double slope) {
  if (++shortened_ > kMostShortened) {
    state_ = State::stalled;
    return;
  }
  const double rise = value - value_;
  const double bend = slope - rise;
  const double share = bend > 0 ? -(rise - bend) / (2 * bend) : 0;
  const double clamped = std::clamp(share, kLeastShare, kMostShare);
  evaluation_.set_zone(std::min(kMostZone, kZoneGrowth * evaluation_.zone()));
  share_ *= clamped;
  wants_ = Wants::shortened;
  if (exact_ && share_ < kShortShare) {
    // So little of a step is not worth its readings. Back to where it began, where more rows are free then. The
    // centres stay, so nothing is lost.
    evaluation_.set_penalty(std::min(kPenaltyDrop, clamped) * evaluation_.penalty());
    shortened_ = shortened_steps_ = 0;
    share_ = 1;
    trial_ = weights_;
    return;
  }
  set_trial(trial_, clamped);
}

void NewtonTask::set_trial(std::span<const double> weights, double share) {
  for (size_t j = 0; j < trial_.size(); ++j) {
    const double weight = weights_[j] + share * (weights[j] - weights_[j]);
    trial_[j] = rounds_ ? static_cast<double>(static_cast<float>(weight)) : weight;
  }
}

void NewtonTask::step(const NewtonEvaluation::Sums& sums, double of_gradient, FactorPool& factors) {
  rarely_.resize(diagonal_.size());
  for (size_t j = 0; j < diagonal_.size(); ++j) {
    diagonal_[j] = static_cast<float>(evaluation_.diagonal(j));
    rarely_[j] = 1 / (1 + diagonal_[j]);
  }
  const double w2 = squared(penalized_of(weights_));
  // The gap has a part of the gradient and one of the centres: where the first is small, they follow. No row is read.
  const bool follow =
      evaluation_.has_centres() && (of_gradient <= kCentresFollow * sums.complementarity ||
                                    of_gradient <= kNegligible * setup_.options.tolerance * std::abs(bound_));
  const bool too_high = shortened_steps_ > kMostShortenedSteps;
  const double penalty = evaluation_.penalty();
  if (follow) evaluation_.move_centres();
  if (too_high || follow) evaluation_.set_penalty((too_high ? kPenaltyDrop : kPenaltyGrowth) * penalty);
  if (too_high) shortened_steps_ = 0;
  share_ = 1;
  // What a sample does not know lets steps go too far at any penalty.
  exact_ = evaluation_.has_centres() && sample_.complete();
  model_.minimize({.weights = weights_,
                   .v = v_,
                   .diagonal = diagonal_,
                   .penalty = evaluation_.penalty(),
                   .centres_moved = follow,
                   .penalty_changed = too_high},
                  factors, number_, products_, [&] { return setup_.context.stopped(); });
  cut_short_ = setup_.context.stopped();
  if (follow || too_high) {
    // Of centres that stay, how far the alphas are from them counts anew.
    const double moved = follow ? 0 : (sums.linear - sums.smoothed) * penalty / evaluation_.penalty();
    // Of a sample it is not known well enough to judge the next step by it.
    value_ =
        sample_.complete() ? 0.5 * w2 + sums.linear - moved + model_.rise() : std::numeric_limits<double>::infinity();
  }
  set_trial(model_.weights(), 1);
  wants_ = Wants::trial;
}

void NewtonTask::save(FieldWriter& to) const {
  to("has_diagonal", !rarely_.empty());
  visit_fields(*this, to);
  FieldWriter evaluation = to.inside("evaluation");
  evaluation_.save(evaluation);
  to("sample", sample_);
}

void NewtonTask::restore(FieldReader& from) {
  rarely_.resize(from.take<bool>("has_diagonal") ? diagonal_.size() : 0);
  visit_fields(*this, from);
  FieldReader evaluation = from.inside("evaluation");
  evaluation_.restore(evaluation, trial_, rarely_);
  from("sample", sample_);
}

}  // namespace linblock
