// Several tasks on their way to a certified optimum, each with a descent of its own: which are in work, which are worth
// a certificate now, and what is known of each.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/team.h"
#include "solve/core/pass.h"

namespace linblock {

template <class Descent>
class Tasks {
 public:
  struct TaskRun {
    const Task& task;
    Solution& solution;
    Descent descent;
    double gap_ratio;   // certified gap / estimated gap, as far as is known
    bool done = false;  // certified within the tolerance: left out of later passes
    Certificate certificate = {};
    int short_of_tolerance = 0;  // certificates in a row, made without v
    CertificatesMade made = {};
    double primal = 0;  // estimates of the last pass
    double dual = 0;

    double estimated_gap() const { return relative_gap(primal, dual); }

    static void visit_fields(auto& self, auto&& field) {
      field("gap_ratio", self.gap_ratio);
      field("done", self.done);
      field("certificate", self.certificate);
      field("short_of_tolerance", self.short_of_tolerance);
      field("made", self.made);
      field("weights_of_duals", self.solution.weights_of_duals);
    }
  };

  // `most_gap_ratio`: above 1 where estimates can be too low.
  explicit Tasks(double most_gap_ratio = 1) : most_gap_ratio_(most_gap_ratio) {}

  // Estimates are of losses before a step, and so too high: certificates are tried early where `gap_ratio` is small.
  Descent& add(const Task& task, Solution& solution, Descent descent, double gap_ratio) {
    tasks_.push_back(std::unique_ptr<TaskRun>(
        new TaskRun{.task = task, .solution = solution, .descent = std::move(descent), .gap_ratio = gap_ratio}));
    return tasks_.back()->descent;
  }

  std::vector<TaskRun*> in_work() const {
    std::vector<TaskRun*> tasks_in_work;
    for (const auto& task : tasks_)
      if (!task->done) tasks_in_work.push_back(task.get());
    return tasks_in_work;
  }

  std::vector<const Descent*> all() const {
    std::vector<const Descent*> descents;
    for (const auto& task : tasks_) descents.push_back(&task->descent);
    return descents;
  }

  // After a pass: what may be within the tolerance is due for a certificate, and everything after the last pass.
  // `waits`: a certificate is a reading, and waits for others that are due.
  const std::vector<TaskRun*>& choose_due(const Team& team, const SolveOptions& options, bool waits, bool last) {
    const std::vector<TaskRun*> tasks = in_work();
    team.for_each(tasks.size(), [&](size_t i) {
      TaskRun& task = *tasks[i];
      const double w2 = task.descent.squared_weights();
      task.primal = 0.5 * w2 + task.descent.losses();
      task.dual = task.descent.dual_values() - 0.5 * w2;
    });
    due_.clear();
    for (TaskRun* task : tasks)
      if (last || task->estimated_gap() * task->gap_ratio <= options.tolerance) due_.push_back(task);
    const bool enough = static_cast<double>(due_.size()) >= kShareDue * static_cast<double>(tasks.size());
    if (!last && waits && !enough) due_.clear();
    return due_;
  }
  const std::vector<TaskRun*>& due() const { return due_; }
  // The certificates of those due are known: what they make of the tasks, and of the report.
  void end_certificates(const SolveOptions& options, PassReport& report) {
    for (TaskRun* task_run : due_) {
      TaskRun& task = *task_run;
      const double gap = task.certificate.gap();
      if (const double estimate = task.estimated_gap(); estimate > 0 && std::isfinite(estimate))
        task.gap_ratio = std::clamp(gap / estimate, 0.1, most_gap_ratio_);
      task.done = gap <= options.tolerance;
      if (!report.certified || gap > report.certified->gap()) report.certified = task.certificate;
    }
    due_.clear();
    for (const auto& task : tasks_) {
      if (task->done)
        report.add_task(task->certificate.primal, task->certificate.dual);
      else
        report.add_task(task->primal, task->dual);
      if (!task->done) ++report.tasks_left;
    }
  }

  std::vector<Certificate> certificates() const {
    std::vector<Certificate> all;
    for (const auto& task : tasks_) all.push_back(task->certificate);
    return all;
  }

  CertificatesMade certificates_made() const {
    CertificatesMade all;
    for (const auto& task : tasks_) all += task->made;
    return all;
  }

  void save(FieldWriter& to) const {
    for (size_t i = 0; i < tasks_.size(); ++i) {
      const std::string name = numbered("task", i);
      to(name, *tasks_[i]);
      FieldWriter descent = to.inside(name).inside("descent");
      tasks_[i]->descent.save(descent);
    }
  }
  // `restore_descent`: of one task, from its own fields, since descents ask for different things.
  template <class Restore>
  void restore(FieldReader& from, const Restore& restore_descent) {
    for (size_t i = 0; i < tasks_.size(); ++i) {
      TaskRun& task = *tasks_[i];
      const std::string name = numbered("task", i);
      from(name, task);
      if (task.done && task.certificate.contradicts_itself()) from.refuse("contradicts itself");
      FieldReader descent = from.inside(name).inside("descent");
      restore_descent(task, descent);
      const size_t weights = task.solution.weights_of_duals.size();
      if (weights != 0 && weights != task.solution.weights.size()) from.refuse_value(name + ".weights_of_duals");
    }
  }

 private:
  static constexpr double kShareDue = 0.5;  // of the tasks, before a reading is spent on their certificates

  double most_gap_ratio_;
  std::vector<std::unique_ptr<TaskRun>> tasks_;  // at fixed places: descents point to their solutions
  std::vector<TaskRun*> due_;                    // for a certificate
};

}  // namespace linblock
