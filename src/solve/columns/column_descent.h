// A task on its way down its columns: what the methods that step along features have in common.
#pragma once

#include <atomic>

#include "base/clock.h"
#include "solve/columns/column_task.h"
#include "solve/core/pass.h"

namespace linblock {

class ColumnDescent {
 public:
  ColumnDescent(const Problem& problem, const Task& task, const ColumnRows& shared, const RowFacts& facts,
                Solution& solution, const std::atomic<bool>* stop)
      : task_(problem, task, shared, facts, solution), stop_(stop) {}

  ColumnTask& task() { return task_; }

  void begin_pass(int pass) {
    if (pass == pass_) return;  // taken up again before its first block
    pass_ = pass;
    squared_gradients_ = 0;
    largest_gradient_ = 0;
  }
  void end_pass() { losses_ = task_.losses(); }

  // Of this pass: D'(0)^2 of every step added up, and the largest |D'(0)| (section 5.3). At the end of the road they
  // are the gradient's.
  double squared_gradients() const { return squared_gradients_; }
  double largest_gradient() const { return largest_gradient_; }
  const ColumnSteps& steps() const { return steps_; }

  // For the estimates of Tasks: the objective as it is, and |gradient|^2 / 2 below it.
  double losses() const { return losses_; }
  double squared_weights() const { return task_.squared_weights(); }
  double dual_values() const {
    const double w2 = squared_weights();
    return std::max(0.5 * w2, losses_ + w2 - 0.5 * squared_gradients_);  // a dual of 0 is known without any pass
  }

  static void visit_fields(auto& self, auto&& field) {
    field("task", self.task_);
    field("pass", self.pass_);
    field("squared_slopes", self.squared_gradients_);
    field("largest_slope", self.largest_gradient_);
    field("losses", self.losses_);
    field("steps", self.steps_);
  }

 protected:
  static constexpr size_t kColumnsBetweenLooks = 64;

  void met_gradient(double gradient) {
    squared_gradients_ += gradient * gradient;
    largest_gradient_ = std::max(largest_gradient_, std::abs(gradient));
  }
  // Told to stop, and this block takes too long to be waited for.
  bool must_leave(size_t columns_done, const Stopwatch& working) const {
    return columns_done % kColumnsBetweenLooks == 0 && stop_ != nullptr && *stop_ && working.seconds() > kStopSeconds;
  }

  ColumnTask task_;
  const std::atomic<bool>* stop_;
  int pass_ = 0;
  double squared_gradients_ = 0;
  double largest_gradient_ = 0;
  double losses_ = 0;
  ColumnSteps steps_;
};

}  // namespace linblock
