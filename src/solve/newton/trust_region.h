// One task's trust-region Newton steps, as a row of passes over the rows: each pass either evaluates the objective at
// new weights or multiplies a direction by the Hessian. Tasks that are solved together make their passes in the same
// reading.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "objective/certificate.h"
#include "objective/smooth_objective.h"
#include "solve/core/solver.h"

namespace linblock {

class TrustRegion {
 public:
  // Without what SmoothObjective takes: w, the weights on trial and the gradient in double; step, residual, direction's
  // scale.
  static constexpr uint64_t kBytesPerWeight = 3 * sizeof(double) + 3 * sizeof(float);

  // Begins with the solution's weights, or with zeros.
  TrustRegion(const Problem& problem, const Task& task, Solution& solution, size_t accumulators, double tolerance);

  enum class State { working, converged, stalled };
  friend constexpr State last_of(State) { return State::stalled; }
  State state() const { return state_; }
  // The weights changed in the last pass.
  bool moved() const { return moved_; }
  // From now on one pass is wanted, for the losses of the weights as they are saved. True: it always is.
  bool begin_last();

  // The team works on the vectors after a pass; the sums over rows are shared out by accumulators.
  void begin_pass();
  void add(const Block& block, size_t accumulator) { sums_.add(block, accumulator); }
  void end_pass(const Team& team);

  // Of the weights as they are, and the best bound so far; after the last pass, of the weights as they are saved.
  Certificate certificate() const { return {value_, bound_}; }
  double gradient_norm() const { return gradient_norm_; }

  void save(FieldWriter& to) const;
  void restore(FieldReader& from);

 private:
  enum class Wants { first_evaluation, trial, shortened, product, losses };
  friend constexpr Wants last_of(Wants) { return Wants::losses; }

  static void visit_fields(auto& self, auto&& field) {
    field("weights", std::span(self.weights_));
    field("saved_weights", std::span(self.solution_.weights));
    field("trial", std::span(self.trial_));
    field("gradient", std::span(self.gradient_));
    field("step", std::span(self.step_));
    field("residual", std::span(self.residual_));
    field("scale", std::span(self.scale_));
    field("wants", self.wants_);
    field("state", self.state_);
    field("value", self.value_);
    field("bound", self.bound_);
    field("gradient_norm", self.gradient_norm_);
    field("radius", self.radius_);
    field("step_length2", self.step_length2_);
    field("residual2", self.residual2_);
    field("first_residual2", self.first_residual2_);
    field("expected", self.expected_);
    field("slope", self.slope_);
    field("products", self.products_);
  }

  void finish_evaluation(const Team& team);
  void decide(double value, double gradient_norm);
  void take(double value);
  void shorten();
  void begin_directions(const Team& team);
  void finish_product(const Team& team);
  void try_step(const Team& team);
  void give_up();
  double resize_region(double value, double decrease);

  const Problem& problem_;
  Solution& solution_;
  const double tolerance_;
  const Task& task_;
  const size_t free_;  // the weight without a penalty
  SmoothObjective sums_;
  Wants wants_ = Wants::first_evaluation;
  State state_ = State::working;
  bool moved_ = false;
  std::vector<double> weights_;
  std::vector<double> trial_;
  std::vector<double> gradient_;
  std::vector<float> step_;
  std::vector<float> residual_;
  std::vector<float> scale_;  // of the weights: the preconditioner
  double value_ = 0;
  double bound_ = 0;
  double gradient_norm_ = 0;
  double radius_ = 0;        // of the region, in the preconditioner's norm
  double step_length2_ = 0;  // in that norm
  double residual2_ = 0;     // in its inverse
  double first_residual2_ = 0;
  double expected_ = 0;    // decrease, by the quadratic model
  double slope_ = 0;       // gradient . step
  uint64_t products_ = 0;  // for this step
};

}  // namespace linblock
