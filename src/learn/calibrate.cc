#include "learn/calibrate.h"

#include <algorithm>
#include <cmath>

namespace linblock {

namespace {

constexpr double kLargest = 1e300;  // what a sigmoid's exponent may be
constexpr int kMostSteps = 200;
constexpr double kEnoughDecrease = 1e-4;  // of what the slope of the objective promises
constexpr double kShortestStep = 1e-12;   // of Newton's step
constexpr double kNearlyThere = 1e-9;     // Newton's step from here is as good as the answer
constexpr double kNoSpread = 1e-24;       // of squared decisions against their mean: rounding, not information

double exponent(const Sigmoid& sigmoid, double decision) {
  return std::clamp(sigmoid.slope * decision + sigmoid.offset, -kLargest, kLargest);
}

// log(1 + exp(z)) without overflow.
double softplus(double z) { return std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))); }

double logistic(double z) {
  const double small = std::exp(-std::abs(z));
  return (z >= 0 ? 1 : small) / (1 + small);
}

// The negative log-likelihood of a sigmoid over decisions that were divided by the largest, and Newton's steps on it.
class Fit {
 public:
  Fit(std::span<const double> decisions, std::span<const uint8_t> positive)
      : decisions_(decisions), positive_(positive) {
    double positives = 0;
    double negatives = 0;
    double largest = 0;
    for (size_t i = 0; i < decisions.size(); ++i) {
      if (!std::isfinite(decisions[i])) continue;
      largest = std::max(largest, std::abs(decisions[i]));
      (positive[i] != 0 ? positives : negatives) += 1;
    }
    if (largest > 0) unit_ = largest;
    positive_target_ = (positives + 1) / (positives + 2);
    negative_target_ = 1 / (negatives + 2);
    sigmoid_.offset = std::log((negatives + 1) / (positives + 1));  // the best without a slope
    has_both_classes_ = positives > 0 && negatives > 0;
  }

  Sigmoid run() {
    double value = objective(sigmoid_);
    for (int step = 0; step < kMostSteps && has_both_classes_; ++step) {
      const SigmoidStep newton = newton_step();
      if (!(newton.decrease > 0)) break;
      const bool last = newton.decrease <= kNearlyThere * value;
      double share = 1;
      Sigmoid next = moved(newton, share);
      double next_value = objective(next);
      while (!last && !(next_value <= value - kEnoughDecrease * share * newton.decrease) && share > kShortestStep) {
        share /= 2;
        next = moved(newton, share);
        next_value = objective(next);
      }
      if (!last && !(next_value < value)) break;
      sigmoid_ = next;
      value = next_value;
      if (last) break;
    }
    return {.slope = std::clamp(sigmoid_.slope / unit_, -kLargest, kLargest), .offset = sigmoid_.offset};
  }

 private:
  struct SigmoidStep {
    double slope = 0;
    double offset = 0;
    double decrease = 0;  // of the objective for each small share of the step
  };

  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (size_t i = 0; i < decisions_.size(); ++i)
      if (std::isfinite(decisions_[i]))
        visit(decisions_[i] / unit_, positive_[i] != 0 ? positive_target_ : negative_target_);
  }

  Sigmoid moved(const SigmoidStep& step, double share) const {
    return {.slope = sigmoid_.slope + share * step.slope, .offset = sigmoid_.offset + share * step.offset};
  }

  // -t log p - (1 - t) log(1 - p), where p = 1 / (1 + exp(z)).
  double objective(const Sigmoid& sigmoid) const {
    double sum = 0;
    for_each([&](double decision, double target) {
      const double z = exponent(sigmoid, decision);
      sum += target * softplus(z) + (1 - target) * softplus(-z);
    });
    return sum;
  }

  // Around the decisions' weighted mean the two unknowns do not depend on each other: no matrix that may be singular.
  SigmoidStep newton_step() const {
    double weight = 0;
    double weighted = 0;
    double gradient = 0;
    for_each([&](double decision, double target) {
      const double z = exponent(sigmoid_, decision);
      const double w = logistic(z) * logistic(-z);
      weight += w;
      weighted += w * decision;
      gradient += target - logistic(-z);
    });
    if (!(weight > 0)) return {};
    const double mean = weighted / weight;
    double spread = 0;
    double slope_gradient = 0;
    for_each([&](double decision, double target) {
      const double z = exponent(sigmoid_, decision);
      const double from_mean = decision - mean;
      spread += logistic(z) * logistic(-z) * from_mean * from_mean;
      slope_gradient += (target - logistic(-z)) * from_mean;
    });
    SigmoidStep step;
    if (spread > kNoSpread * mean * mean * weight) step.slope = -slope_gradient / spread;
    const double at_mean = -gradient / weight;
    step.offset = at_mean - step.slope * mean;
    step.decrease = -slope_gradient * step.slope - gradient * at_mean;
    return step;
  }

  std::span<const double> decisions_;
  std::span<const uint8_t> positive_;
  double unit_ = 1;
  double positive_target_ = 0;
  double negative_target_ = 0;
  bool has_both_classes_ = false;
  Sigmoid sigmoid_;
};

}  // namespace

double Sigmoid::probability(double decision) const { return 1 / (1 + std::exp(exponent(*this, decision))); }

double Sigmoid::log_probability(double decision) const { return -softplus(exponent(*this, decision)); }

Sigmoid fit_sigmoid(std::span<const double> decisions, std::span<const uint8_t> positive) {
  return Fit(decisions, positive).run();
}

}  // namespace linblock
