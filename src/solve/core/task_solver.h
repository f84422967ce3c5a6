// A solver whose tasks descend on the rows and are certified by readings of all rows.
#pragma once

#include <optional>
#include <vector>

#include "solve/core/certify.h"
#include "solve/core/tasks.h"

namespace linblock {

template <class Descent>
class TaskSolver : public Solver {
 public:
  explicit TaskSolver(const Setup& setup) : setup_(setup), certify_(setup) {}

  std::optional<Pass> next(const Position& at) final {
    if (certify_.in_work()) return certify_.next();
    certify_.clear();
    if (termination_) return std::nullopt;
    return begin_pass(at);
  }

  bool work(const Block& block, size_t number) final {
    if (!certify_.in_work()) return solve_block(block, number);
    certify_.work(block);
    return true;
  }

  std::optional<PassReport> end_pass(const PassEnd& end) final {
    if (certify_.in_work())
      certify_.end_pass();
    else
      end_steps_and_certify(end.limit.has_value());
    if (certify_.in_work()) return std::nullopt;
    for (size_t i = 0; i < tasks_.due().size(); ++i) {
      auto& task = *tasks_.due()[i];
      task.certificate = certify_.jobs()[i].certificate;
      task.descent.set_drift_bound(certify_.jobs()[i].drift_bound);
      const bool with_v = certify_.jobs()[i].needs_v;
      task.short_of_tolerance = with_v ? 0 : task.short_of_tolerance + 1;
      task.made += {.all = 1, .without_v = with_v ? uint64_t{0} : 1};
    }
    PassReport report;
    tasks_.end_certificates(setup_.options, report);
    if (report.tasks_left == 0)
      termination_ = Termination::converged;
    else if (last_)
      termination_ = end.limit.value_or(Termination::interrupted);
    return report;
  }

  std::vector<std::span<const float>> weights() const final { return weights_of(setup_.solutions); }
  std::vector<PartOfV> v() const final { return certify_.v(); }

  void finish(Summary& summary) final {
    summary.termination = *termination_;
    summary.certificates = tasks_.certificates();
    summary.certificates_made = tasks_.certificates_made();
  }

 protected:
  virtual Pass begin_pass(const Position& at) = 0;
  // Of the pass. False: told to stop half-way.
  virtual bool solve_block(const Block& block, size_t number) = 0;
  // All blocks of the pass are done: the solutions are as they stand.
  virtual void end_steps() {}
  // A certificate waits for those of other tasks.
  virtual bool waits() const = 0;

  const Setup setup_;
  Tasks<Descent> tasks_;

 private:
  void end_steps_and_certify(bool last) {
    end_steps();
    last_ = last;
    std::vector<Certify::Job> jobs;
    for (auto* task : tasks_.choose_due(setup_.context.team, setup_.options, waits(), last)) {
      // What the drift takes off the dual is a small part of the gap that is asked for. With a high cost it may still
      // be what keeps the primal up: where certificates go on falling short, v takes the place of the weights.
      const double drift = task->descent.drift_bound();
      const bool small = 0.5 * drift * drift <= kDriftShare * setup_.options.tolerance * task->dual &&
                         task->short_of_tolerance < kMostShort;
      jobs.push_back({.task = &task->task,
                      .solution = &task->solution,
                      .replace_above = last ? std::nullopt : std::optional(setup_.options.tolerance),
                      .mean = task->descent.mean(),
                      .drift_bound = drift,
                      .needs_v = setup_.context.wants_v || !small});
    }
    certify_.begin(std::move(jobs));
  }

  static constexpr double kDriftShare = 0.1;
  static constexpr int kMostShort = 2;

  Certify certify_;
  bool last_ = false;  // no pass will follow
  std::optional<Termination> termination_;
};

}  // namespace linblock
