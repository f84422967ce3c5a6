// One task of Newton's method where rows are many for each feature, or where the loss has a corner: a reading of all
// rows, then a step to where the model of the sample is smallest, which reads nothing.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "objective/certificate.h"
#include "solve/core/pass.h"
#include "solve/newton/evaluation.h"
#include "solve/newton/local_model.h"
#include "solve/newton/row_sample.h"

namespace linblock {

class NewtonTask {
 public:
  // Without the solution's weights and what the accumulators take.
  static constexpr uint64_t kBytesPerWeight = 3 * sizeof(double) + 2 * sizeof(float) + LocalModel::kBytesPerWeight;

  static constexpr double kFirstPenalty = 0.5;  // of the cost: every row is free at w = 0

  NewtonTask(const Setup& setup, size_t number, double first_penalty = kFirstPenalty);

  enum class State { working, converged, stalled };
  friend constexpr State last_of(State) { return State::stalled; }
  State state() const { return state_; }
  // The next reading is the last, for the objective of the weights as they are saved; false: it is known already.
  bool begin_last();

  void begin_pass();
  void add(const Block& block, size_t accumulator) { evaluation_.add(block, accumulator); }
  void collect(const Block& block);
  void end_pass(FactorPool& factors);
  // Told to stop in the middle of the last step: the next reading would not be that of an undisturbed run.
  bool cut_short() const { return cut_short_; }

  // Of the saved weights, and the best bound so far.
  Certificate certificate() const { return {best_primal_, bound_ + best_rounding_}; }
  double gradient_norm() const { return gradient_norm_; }
  uint64_t sampled() const { return sample_.size(); }

  void save(FieldWriter& to) const;
  void restore(FieldReader& from);

 private:
  enum class Wants { first, trial, shortened, losses };
  friend constexpr Wants last_of(Wants) { return Wants::losses; }

  static void visit_fields(auto& self, auto&& field) {
    field("saved_weights", std::span(self.solution_.weights));
    field("weights", std::span(self.weights_));
    field("trial", std::span(self.trial_));
    field("rarely", std::span(self.rarely_));
    field("wants", self.wants_);
    field("state", self.state_);
    field("warm", self.warm_);
    field("rounds", self.rounds_);
    field("saved_as_evaluated", self.saved_as_evaluated_);
    field("readings", self.readings_);
    field("value", self.value_);
    field("best_primal", self.best_primal_);
    field("best_rounding", self.best_rounding_);
    field("bound", self.bound_);
    field("gradient_norm", self.gradient_norm_);
    field("products", self.products_);
    field("shortened", self.shortened_);
    field("shortened_steps", self.shortened_steps_);
    field("share", self.share_);
    field("exact", self.exact_);
    field("idle", self.idle_);
  }

  // `rounding`: of the primal value, at most 0.
  void take_best(const Certificate& certificate, double rounding);
  void shorten(double value, double slope);
  // `of_gradient`: the part of the gap that a step can close; the rest is the centres'.
  void step(const NewtonEvaluation::Sums& sums, double of_gradient, FactorPool& factors);
  SquaredNorm balanced_v2();
  std::span<const double> penalized_of(std::span<const double> weights) const;
  void set_trial(std::span<const double> weights, double share);

  const Setup setup_;
  const size_t number_;
  Solution& solution_;
  NewtonEvaluation evaluation_;
  RowSample sample_;
  LocalModel model_;
  std::vector<double> weights_;  // from where the last step was made
  std::vector<double> trial_;    // of the reading in work, or the next one
  std::vector<double> v_;
  std::vector<float> diagonal_;
  std::vector<float> rarely_;  // 1 / (1 + diagonal); empty before the first reading
  Wants wants_ = Wants::first;
  State state_ = State::working;
  bool cut_short_ = false;
  bool warm_ = false;
  bool rounds_ = false;              // weights are read as they would be saved
  bool saved_as_evaluated_ = false;  // the best weights were
  uint64_t readings_ = 0;
  double value_ = 0;  // of the function that is minimized, at weights_
  double best_primal_ = 0;
  double best_rounding_ = 0;  // below 0: what rounding may have done to it; the bound may be of another reading
  double bound_ = 0;
  double gradient_norm_ = 0;
  double products_ = 0;      // that the last inner step took
  int shortened_ = 0;        // readings in a row
  int shortened_steps_ = 0;  // in a row, since the penalty fell
  double share_ = 1;         // of the step, that is left of it
  bool exact_ = false;       // no row that may move was missing in its model, and the loss has a corner
  int idle_ = 0;             // readings since primal or bound have become better
};

}  // namespace linblock
