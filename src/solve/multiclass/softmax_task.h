// One task's Newton steps on all classes at once, as a row of passes over the rows: each pass either evaluates the
// objective at new weights or multiplies a direction by the Hessian. Tasks that are solved together make their passes
// in the same reading.
#pragma once

#include <cstddef>
#include <vector>

#include "objective/certificate.h"
#include "objective/softmax_objective.h"
#include "solve/core/solver.h"
#include "solve/newton/factor.h"

namespace linblock {

class SoftmaxTask {
 public:
  // Without the solution's weights and what SoftmaxObjective takes: weights and weights on trial in double; gradient,
  // step, residual, direction and two of the preconditioner. A free bias needs the sums of all classes, too.
  static constexpr uint64_t kBytesPerWeight = 2 * sizeof(double) + 6 * sizeof(float);
  static constexpr uint64_t kBytesPerWeightOfFreeBias = sizeof(double);

  // Begins with the solution's weights, or with zeros.
  SoftmaxTask(const Problem& problem, const Task& task, Solution& solution, size_t accumulators, bool keeps_rows,
              bool factorizes, double tolerance);

  enum class State { working, converged, stalled };
  friend constexpr State last_of(State) { return State::stalled; }
  State state() const { return state_; }
  // The weights changed in the last pass.
  bool moved() const { return moved_; }
  // From now on one pass is wanted, for the certificate of the weights as they are saved.
  void begin_last(const Team& team);

  // The team works on the vectors after a pass; the sums over rows are shared out by accumulators.
  void begin_pass();
  void add(const Block& block, size_t accumulator) { sums_.add(block, accumulator); }
  // After every task has added the block.
  void collect(const Block& block, const Team& team);
  void end_pass(const Team& team);

  // Of the weights as they are, and the best bound so far; after the last pass, of the weights as they are saved.
  Certificate certificate() const { return {value_, bound_}; }
  double gradient_norm() const { return gradient_norm_; }

  void save(FieldWriter& to) const;
  void restore(FieldReader& from);

 private:
  enum class Wants { class_sums, first, trial, product, last };
  friend constexpr Wants last_of(Wants) { return Wants::last; }

  static void visit_fields(auto& self, auto&& field) {
    field("weights", std::span(self.weights_));
    field("saved_weights", std::span(self.solution_.weights));
    field("trial", std::span(self.trial_));
    field("gradient", std::span(self.gradient_));
    field("step", std::span(self.step_));
    field("residual", std::span(self.residual_));
    field("direction", std::span(self.direction_));
    field("scale", std::span(self.scale_));
    field("rates", std::span(self.rates_));
    field("samples", self.samples_);
    field("factorized", self.factorized_);
    field("class_sums", std::span(self.class_sums_));
    field("class_costs", std::span(self.class_costs_));
    field("class_sums_wrong", self.class_sums_wrong_);
    field("wants", self.wants_);
    field("state", self.state_);
    field("warm", self.warm_);
    field("trial_norm", self.trial_norm_);
    field("value", self.value_);
    field("bound", self.bound_);
    field("gradient_norm", self.gradient_norm_);
    field("accuracy", self.accuracy_);
    field("residual2", self.residual2_);
    field("enough_residual2", self.enough_residual2_);
    field("slope", self.slope_);
    field("share", self.share_);
    field("products", self.products_);
    field("accepted", self.accepted_);
    field("shortened", self.shortened_);
  }

  // 1, or 0 of a bias that is free.
  double penalty(size_t weight) const { return weight < penalized_ ? 1 : 0; }
  void take_class_sums(const Team& team);
  Certificate evaluated(const Team& team, double w2, double v2) const;
  double mixed_dual(const Team& team) const;
  void finish_evaluation(const Team& team);
  bool decide(double value, double slope, double gradient_norm);
  void begin_samples();
  void factorize(const Team& team);
  double precondition(const Team& team);
  bool left_out(size_t of_class) const { return problem_.free_bias && class_costs_[of_class] == 0; }
  void begin_directions(const Team& team);
  void finish_product(const Team& team);
  void set_trial(const Team& team);
  void try_step(const Team& team);

  const Problem& problem_;
  Solution& solution_;
  const double tolerance_;
  SoftmaxObjective sums_;
  const size_t penalized_;  // weights, the first
  Wants wants_ = Wants::first;
  State state_ = State::working;
  bool moved_ = false;
  bool warm_ = false;
  std::vector<double> weights_;
  std::vector<double> trial_;
  std::vector<float> gradient_;
  std::vector<float> step_;
  std::vector<float> residual_;
  std::vector<float> direction_;
  std::vector<float> preconditioned_;  // the residual
  std::vector<float> scale_;           // of the weights: the preconditioner, where it has no factors
  // Of each class: of the Hessian's block of its weights, from a sample of rows. None where they do not fit in memory.
  mutable std::vector<Factor> factors_;  // matrix() gives out what may be changed
  std::vector<double> rates_;            // of the samples
  bool samples_ = false;                 // the evaluation makes the blocks anew
  bool factorized_ = false;
  std::vector<double> class_sums_;   // sum of cost * x of a class's rows; of a free bias
  std::vector<double> class_costs_;  // likewise
  double class_sums_wrong_ = 0;      // by rounding: the length of what is wrong, of all classes together
  double trial_norm_ = 0;            // of the weights that are read
  double value_ = 0;
  double bound_ = 0;
  double gradient_norm_ = 0;
  double accuracy_ = 1;   // of the step: its residual, relative to the gradient
  double residual2_ = 0;  // in the inverse of the preconditioner's norm
  double enough_residual2_ = 0;
  double slope_ = 0;       // gradient . step
  double share_ = 1;       // of the step, that is on trial
  uint64_t products_ = 0;  // for this step
  uint64_t accepted_ = 0;  // steps
  uint64_t shortened_ = 0;
};

}  // namespace linblock
