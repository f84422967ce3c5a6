#include "solve/multiclass/softmax_task.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "solve/core/sweep.h"

namespace linblock {

namespace {

constexpr double kEnoughDecrease = 1e-4;  // of what the slope promises
constexpr double kLeastShare = 0.1;       // of a step that went too far
constexpr double kMostShare = 0.6;
constexpr uint64_t kMostShortened = 40;  // in a row
constexpr double kRoughest = 0.5;        // accuracy of a step
constexpr double kFinest = 0.05;
constexpr uint64_t kMostProducts = 200;  // for a step
constexpr double kGapShare = 0.3;        // of the gap that is asked for: the residual need not be below it
constexpr double kDiagonalShare = 0.5;   // of the preconditioner, next to 1
constexpr double kRounding = 1e-12;      // of the objective: a step that promises less cannot be judged by it
constexpr double kWorthwhile = 0.9;      // of the gradient, that is left by a step of this kind
// The score of a class that has no cost, where the bias is free: its probability is 0 in double precision.
constexpr double kFarBelow = -2000;
constexpr uint64_t kFreshSteps = 3;       // whose blocks are made anew
constexpr uint64_t kTooManyProducts = 8;  // for a step with blocks of an earlier one
constexpr double kFreeRidge = 1e-9;       // where nothing is penalized, relative and at least
// Rows of the sample of a class: so many for each of its weights, or as take the time of a pass.
constexpr double kRowsPerWeight = 3;

double sample_rows(const Problem& problem) {
  const StoreInfo& info = problem.store->info();
  const double per_row = static_cast<double>(info.nonzeros) / static_cast<double>(std::max<uint64_t>(1, info.rows)) + 1;
  return std::max(kRowsPerWeight * static_cast<double>(problem.weights()),
                  4 * static_cast<double>(info.rows) / per_row);
}

}  // namespace

SoftmaxTask::SoftmaxTask(const Problem& problem, const Task& task, Solution& solution, size_t accumulators,
                         bool keeps_rows, bool factorizes, double tolerance)
    : problem_(problem),
      solution_(solution),
      tolerance_(tolerance),
      sums_(problem, task, accumulators, keeps_rows),
      penalized_((problem.weights() - (problem.free_bias ? 1 : 0)) * problem.classes()),
      wants_(problem.free_bias ? Wants::class_sums : Wants::first),
      bound_(-std::numeric_limits<double>::infinity()) {
  const size_t count = problem.weights() * problem.classes();
  solution_.weights.resize(count, 0.0F);
  weights_.assign(solution_.weights.begin(), solution_.weights.end());
  warm_ = std::any_of(weights_.begin(), weights_.end(), [](double weight) { return weight != 0; });
  // No probability changes, and the penalty falls, if the weights of a feature add up to 0.
  const size_t classes = problem.classes();
  for (size_t j = 0; warm_ && j < problem.weights(); ++j) {
    double sum = 0;
    for (size_t c = 0; c < classes; ++c) sum += weights_[j * classes + c];
    for (size_t c = 0; c < classes; ++c) weights_[j * classes + c] -= sum / static_cast<double>(classes);
  }
  trial_ = weights_;
  for (std::vector<float>* const vector : {&gradient_, &step_, &residual_, &direction_, &preconditioned_})
    vector->assign(count, 0.0F);
  scale_.assign(count, 1.0F);
  if (factorizes) {
    for (size_t c = 0; c < problem.classes(); ++c) factors_.emplace_back(problem.weights());
    // Before anything is known of the probabilities, all are the same.
    const double share = 1 / static_cast<double>(classes);
    const double rows = static_cast<double>(std::max<uint64_t>(1, problem.store->info().rows));
    rates_.assign(problem.classes(), sample_rows(problem) / (rows * task.cost * share * (1 - share)));
  }
  if (!problem.free_bias) return;
  class_sums_.resize(count);
  class_costs_.resize(problem.classes());
}

void SoftmaxTask::begin_last(const Team& team) {
  wants_ = Wants::last;
  const size_t classes = problem_.classes();
  sweep(team, problem_.weights(), [&](size_t j, SweepSums&) {
    const std::span<float> saved = std::span(solution_.weights).subspan(j * classes, classes);
    const double* const at = weights_.data() + j * classes;
    // The model of two classes has one column, the difference: as a number and its opposite it is the same, exactly.
    const bool is_pair = classes == 2 && !left_out(0) && !left_out(1);
    for (size_t c = 0; c < classes; ++c) {
      saved[c] = static_cast<float>(is_pair ? 0.5 * (at[c] - at[1 - c]) : at[c]);
      trial_[j * classes + c] = double{saved[c]};
    }
  });
}

void SoftmaxTask::begin_pass() {
  moved_ = false;
  switch (wants_) {
    case Wants::class_sums: return sums_.begin_class_sums();
    case Wants::product: return sums_.begin_product(weights_, direction_);
    case Wants::first:
    case Wants::trial:
    case Wants::last: break;
  }
  trial_norm_ = std::sqrt(squared_norm_of(std::span<const double>(trial_)).value);
  begin_samples();
  sums_.begin_evaluation(trial_, trial_norm_, samples_ ? std::span<const double>(rates_) : std::span<const double>());
}

// The blocks change with the probabilities: they are made anew while steps are large, or take many products.
void SoftmaxTask::begin_samples() {
  samples_ = !factors_.empty() && wants_ != Wants::last &&
             (wants_ == Wants::first || accepted_ <= kFreshSteps || products_ >= kTooManyProducts);
  if (!samples_) return;
  factorized_ = false;
  for (Factor& factor : factors_) std::fill(factor.matrix().begin(), factor.matrix().end(), 0.0);
}

void SoftmaxTask::collect(const Block& block, const Team& team) {
  if (!samples_ || wants_ == Wants::product) return;
  team.for_each(factors_.size(), [&](size_t c) { sums_.add_samples(block, c, factors_[c].matrix()); });
  sums_.clear_samples();
}

// The diagonal is known of all rows, so no weight is scaled as if rows had no curvature along it.
void SoftmaxTask::factorize(const Team& team) {
  const size_t size = problem_.weights();
  const size_t classes = factors_.size();
  std::vector<uint8_t> good(classes, 0);
  team.for_each(classes, [&](size_t c) {
    const std::span<double> matrix = factors_[c].matrix();
    for (size_t j = 0; j < size; ++j) {
      double& diagonal = matrix[j * size + j];
      const double known = std::max(diagonal, sums_.diagonal(j * classes + c));
      diagonal = known + std::max(penalty(j * classes + c), kFreeRidge * known + kFreeRidge);
    }
    good[c] = factors_[c].factorize() ? 1 : 0;
  });
  factorized_ = std::all_of(good.begin(), good.end(), [](uint8_t one) { return one != 0; });
  const std::vector<double> curvatures = sums_.curvatures();
  for (size_t c = 0; c < classes; ++c) rates_[c] = curvatures[c] > 0 ? sample_rows(problem_) / curvatures[c] : 0;
}

// Solves for a direction, from the residual; the product of both. All classes' weights of a feature may rise together
// without a change of any probability: the best sum is 0, and no direction leaves it.
double SoftmaxTask::precondition(const Team& team) {
  const size_t classes = problem_.classes();
  const size_t size = problem_.weights();
  if (factorized_)
    team.for_each(classes, [&](size_t c) {
      std::vector<double> column(size);
      for (size_t j = 0; j < size; ++j) column[j] = double{residual_[j * classes + c]};
      factors_[c].solve(column);
      for (size_t j = 0; j < size; ++j) preconditioned_[j * classes + c] = static_cast<float>(column[j]);
    });
  const SweepSums sums = sweep(team, size, [&](size_t j, SweepSums& all) {
    float* const at = preconditioned_.data() + j * classes;
    double sum = 0;
    double count = 0;
    for (size_t c = 0; c < classes; ++c) {
      const size_t i = j * classes + c;
      if (!factorized_) at[c] = residual_[i] / scale_[i];
      if (left_out(c)) at[c] = 0;
      sum += double{at[c]};
      count += left_out(c) ? 0 : 1;
    }
    for (size_t c = 0; c < classes; ++c) {
      if (!left_out(c)) at[c] -= static_cast<float>(sum / count);
      all[0] += double{residual_[j * classes + c]} * double{at[c]};
    }
  });
  return sums[0];
}

void SoftmaxTask::end_pass(const Team& team) {
  if (wants_ == Wants::product) return finish_product(team);
  if (wants_ == Wants::class_sums) return take_class_sums(team);
  finish_evaluation(team);
}

// A start without weights has the biases that make every row as probable as its class. Those of a class without cost
// would fall for ever: its weights are left out.
void SoftmaxTask::take_class_sums(const Team& team) {
  class_costs_ = sums_.class_costs();
  class_sums_wrong_ = sums_.v_rounding();
  double all = 0;
  for (const double cost : class_costs_) all += cost;
  const size_t classes = class_costs_.size();
  sweep(team, class_sums_.size(), [&](size_t i, SweepSums&) {
    class_sums_[i] = sums_.sum(i);
    const double cost = class_costs_[i % classes];
    if (cost == 0)
      trial_[i] = i < penalized_ ? 0 : kFarBelow / problem_.bias;
    else if (!warm_ && i >= penalized_)
      trial_[i] = std::log(cost / all) / problem_.bias;
  });
  wants_ = Wants::first;
}

// The objective and a bound at the weights on trial.
Certificate SoftmaxTask::evaluated(const Team& team, double w2, double v2) const {
  const double rounding = sum_rounding(sweep_terms(trial_.size()));
  const SquaredNorm norm_w{.value = w2, .rounding = rounding * w2};
  if (problem_.free_bias) {
    Certificate certificate = certificate_of(norm_w, sums_.losses(), {}, {});  // its dual is the primal's rounding
    certificate.dual += mixed_dual(team);
    return certificate;
  }
  const double wrong = sums_.v_rounding();
  return certificate_of(norm_w, sums_.losses(), sums_.dual_values(),
                        {.value = v2, .rounding = rounding * v2 + (2 * std::sqrt(v2) + wrong) * wrong});
}

// v of mixed p is (1 - theta) v + theta (U - g X'): U the sums of the classes, X that of all rows.
double SoftmaxTask::mixed_dual(const Team& team) const {
  const SoftmaxObjective::Mixture mixture = sums_.mixture(class_costs_, team);
  const size_t classes = class_costs_.size();
  const double theta = mixture.theta;
  const SweepSums sums = sweep(team, penalized_ / classes, [&](size_t feature, SweepSums& all) {
    double total = 0;
    for (size_t c = 0; c < classes; ++c) total += class_sums_[feature * classes + c];
    all[1] += total * total;
    for (size_t c = 0; c < classes; ++c) {
      const size_t i = feature * classes + c;
      const double v = (1 - theta) * sums_.sum(i) + theta * (class_sums_[i] - mixture.constant[c] * total);
      all[0] += v * v;
      all[2] += class_sums_[i] * class_sums_[i];
    }
  });
  // What rounding has done to v, to the sums of the classes and to their own sum, and by a g that is not exact.
  const double wrong = sums_.v_rounding() + 2 * theta * class_sums_wrong_ +
                       theta * sum_rounding(sweep_terms(trial_.size())) * (std::sqrt(sums[1]) + std::sqrt(sums[2])) +
                       static_cast<double>(classes) * mixture.g_rounding * std::sqrt(sums[1]);
  const double rounding = sum_rounding(sweep_terms(trial_.size()) + static_cast<double>(classes)) * sums[0];
  const Certificate certificate = certificate_of(
      {}, {}, mixture.values, {.value = sums[0], .rounding = rounding + (2 * std::sqrt(sums[0]) + wrong) * wrong});
  return certificate.dual - mixture.rounding;
}

void SoftmaxTask::finish_evaluation(const Team& team) {
  const SweepSums squares = sweep(team, trial_.size(), [&](size_t i, SweepSums& all) {
    const double v = sums_.sum(i);
    const double penalized = penalty(i);
    const double gradient = penalized * trial_[i] - v;
    all[0] += penalized * trial_[i] * trial_[i];
    all[1] += v * v;
    all[2] += gradient * gradient;
    all[3] += gradient * double{step_[i]};
  });
  const Certificate certificate = evaluated(team, squares[0], squares[1]);
  if (wants_ == Wants::last) {
    value_ = certificate.primal;
    const SquaredNorm norm{.value = squares[0], .rounding = sum_rounding(sweep_terms(trial_.size())) * squares[0]};
    const double rounding = certificate_of(norm, sums_.losses(), {}, {}).dual;
    bound_ = std::max(bound_ + rounding, certificate.dual);
    return;
  }
  bound_ = std::max(bound_, certificate.dual);
  const double gradient_norm = std::sqrt(squares[2]);
  if (wants_ == Wants::trial && !decide(certificate.primal, squares[3], gradient_norm)) {
    if (state_ == State::working) set_trial(team);
    return;
  }
  value_ = certificate.primal;
  // The nearer the optimum, the more exact a step is worth its products.
  accuracy_ = wants_ == Wants::first ? kRoughest : std::clamp(gradient_norm / gradient_norm_, kFinest, kRoughest);
  gradient_norm_ = gradient_norm;
  moved_ = true;
  sweep(team, trial_.size(), [&](size_t i, SweepSums&) {
    weights_[i] = trial_[i];
    solution_.weights[i] = static_cast<float>(trial_[i]);
    gradient_[i] = static_cast<float>(penalty(i) * trial_[i] - sums_.sum(i));
    scale_[i] = static_cast<float>((1 - kDiagonalShare) + kDiagonalShare * (penalty(i) + sums_.diagonal(i)));
  });
  // With a very small cost weights of 0 are near enough; but they tell no class from another.
  const bool began_with_zeros = wants_ == Wants::first && !warm_;
  if (relative_gap(value_, bound_) <= tolerance_ && !began_with_zeros) {
    state_ = State::converged;
    return;
  }
  if (samples_) factorize(team);
  ++accepted_;
  begin_directions(team);
}

// Whether the step is taken. If not, the share of it that is tried next is the minimum of the cubic with the values and
// the slopes of both ends.
bool SoftmaxTask::decide(double value, double slope, double gradient_norm) {
  if (-slope_ <= kRounding * value_) {
    // The objective can no longer tell, but its gradient can, and the bound is made of it.
    if (!(gradient_norm < kWorthwhile * gradient_norm_)) state_ = State::stalled;
    return state_ == State::working;
  }
  if (value <= value_ + kEnoughDecrease * share_ * slope_) return true;
  if (++shortened_ > kMostShortened) {
    state_ = State::stalled;
    return false;
  }
  const double first = share_ * slope_;
  const double last = share_ * slope;
  const double sum = first + last - 3 * (value - value_);
  const double root = std::sqrt(std::max(0.0, sum * sum - first * last));
  const double lowest = 1 - (last + root - sum) / (last - first + 2 * root);
  share_ *= std::isfinite(lowest) ? std::clamp(lowest, kLeastShare, kMostShare) : kLeastShare;
  return false;
}

// Conjugate gradients begin again, from the gradient where we are.
void SoftmaxTask::begin_directions(const Team& team) {
  sweep(team, weights_.size(), [&](size_t i, SweepSums&) {
    step_[i] = 0;
    residual_[i] = -gradient_[i];
  });
  residual2_ = precondition(team);
  direction_ = preconditioned_;
  enough_residual2_ = accuracy_ * accuracy_ * residual2_;
  products_ = 0;
  shortened_ = 0;
  share_ = 1;
  wants_ = Wants::product;
  if (!(residual2_ > 0) || !std::isfinite(residual2_))
    state_ = relative_gap(value_, bound_) <= tolerance_ ? State::converged : State::stalled;
}

// One step of preconditioned conjugate gradients.
void SoftmaxTask::finish_product(const Team& team) {
  ++products_;
  const SweepSums sums = sweep(team, weights_.size(), [&](size_t i, SweepSums& all) {
    const double d = direction_[i];
    all[0] += d * (penalty(i) * d + sums_.sum(i));
  });
  const double along = residual2_ / sums[0];
  if (!(sums[0] > 0) || !std::isfinite(along)) return try_step(team);
  const SweepSums after = sweep(team, weights_.size(), [&](size_t i, SweepSums& all) {
    const double d = direction_[i];
    step_[i] += static_cast<float>(along * d);
    residual_[i] -= static_cast<float>(along * (penalty(i) * d + sums_.sum(i)));
    const double residual = residual_[i];
    all[0] += residual * residual;
  });
  const double next = precondition(team);
  const double grown = next / residual2_;
  residual2_ = next;
  const bool enough = residual2_ <= enough_residual2_ || 0.5 * after[0] <= kGapShare * tolerance_ * std::abs(value_);
  if (enough || products_ >= kMostProducts) return try_step(team);
  sweep(team, weights_.size(), [&](size_t i, SweepSums&) {
    direction_[i] = preconditioned_[i] + static_cast<float>(grown * double{direction_[i]});
  });
}

void SoftmaxTask::set_trial(const Team& team) {
  sweep(team, trial_.size(), [&](size_t i, SweepSums&) { trial_[i] = weights_[i] + share_ * double{step_[i]}; });
}

void SoftmaxTask::try_step(const Team& team) {
  const SweepSums sums = sweep(team, weights_.size(),
                               [&](size_t i, SweepSums& all) { all[0] += double{gradient_[i]} * double{step_[i]}; });
  slope_ = sums[0];
  set_trial(team);
  wants_ = Wants::trial;
  if (!(slope_ < 0)) state_ = State::stalled;
}

void SoftmaxTask::save(FieldWriter& to) const {
  visit_fields(*this, to);
  for (size_t c = 0; c < factors_.size(); ++c) to(numbered("factor", c), factors_[c].matrix());
  FieldWriter sums = to.inside("sums");
  sums_.save(sums);
}

void SoftmaxTask::restore(FieldReader& from) {
  visit_fields(*this, from);
  for (size_t c = 0; c < factors_.size(); ++c) from(numbered("factor", c), factors_[c].matrix());
  FieldReader sums = from.inside("sums");
  sums_.restore(sums, wants_ == Wants::product ? weights_ : trial_, trial_norm_,
                samples_ ? std::span<const double>(rates_) : std::span<const double>(), direction_);
}

}  // namespace linblock
