// Dual descent needs few passes on most data, and thousands on some, which sums over the rows do not always foresee
// (choose). A run whose gap falls too slowly changes to newton and keeps what it has learned: the weights, and the dual
// value that was certified.
//
// Rule:     after 64, 128, 256, ... passes, the smallest gap so far is compared with that after half as many. If at
// this
//           rate more than 500 passes would lie ahead, dual descent makes its certificates one pass later, and newton
//           takes over where they are not within the tolerance. Estimates and passes are counted; no clock is read, so
//           the same data and options change at the same pass, with the same bits.
// Reads:    what dual reads, then what newton reads.
#include "solve/second_method.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "solve/core/certify.h"
#include "solve/solve.h"

namespace linblock {

namespace {

class ChangingSolver : public Solver {
 public:
  ChangingSolver(const Setup& setup, Rows& rows) : setup_(setup), rows_(rows), tasks_(setup.problem.tasks.size()) {
    begin_first();
  }

  std::optional<Pass> next(const Position& at) override {
    if (!second_) {
      if (std::optional<Pass> pass = first_->next(at)) return pass;
      if (!slowness_.is_too_slow() || limit_ || !end_first(at.pass - 1)) return std::nullopt;
      begin_second();
      say_what_changed();
    }
    std::optional<Pass> pass = second_->solver->next(within(at));
    // What was changed is in no checkpoint yet.
    if (pass && at.pass == passes_ + 1) pass->save_first = true;
    return pass;
  }

  bool work(const Block& block, size_t number) override { return now().work(block, number); }

  std::optional<PassReport> end_pass(const PassEnd& end) override {
    limit_ = limit_ ? limit_ : end.limit;
    PassEnd inner = end;
    if (!second_) {
      if (slowness_.is_too_slow() && !inner.limit) inner.limit = Termination::pass_limit;  // certificates, and out
      std::optional<PassReport> report = first_->end_pass(inner);
      if (report) slowness_.see(end.pass, report->gap_estimate(), setup_.options.tolerance);
      return report;
    }
    inner.pass -= passes_;
    std::optional<PassReport> report = second_->solver->end_pass(inner);
    // As a pass of the whole, with all tasks.
    for (const ChangedTask& task : tasks_)
      if (report && task.done) report->add_task(task.certificate.primal, task.certificate.dual);
    return report;
  }

  std::vector<std::span<const float>> weights() const override {
    if (!second_) return first_->weights();
    std::vector<std::span<const float>> weights = weights_of(setup_.solutions);
    const auto found = second_->solver->weights();
    for (size_t k = 0; k < found.size(); ++k) weights[second_->tasks[k]] = found[k];
    return weights;
  }
  std::vector<PartOfV> v() const override { return second_ ? std::vector<PartOfV>() : first_->v(); }
  ReadCosts own_costs() const override { return now().own_costs(); }
  bool cut_short() const override { return now().cut_short(); }

  void finish(Summary& summary) override {
    if (!second_ && first_) {
      first_->finish(summary);
      return;
    }
    summary.certificates_made = certificates_made_;
    summary.termination = Termination::converged;
    if (second_) {
      second_->solver->finish(summary);
      summary.plan = second_->plan;
      summary.changed_after = passes_;
    }
    std::vector<Certificate> found = std::move(summary.certificates);
    summary.certificates.clear();
    for (const ChangedTask& task : tasks_) summary.certificates.push_back(task.certificate);
    if (!second_) return;
    for (size_t k = 0; k < second_->tasks.size(); ++k) {
      const size_t i = second_->tasks[k];
      setup_.solutions[i] = std::move(second_->solutions[k]);
      summary.certificates[i] = found[k];
    }
  }

  void save(FieldWriter& to) const override {
    FieldWriter fields = to.inside("change");
    visit_progress(*this, fields);
    if (!second_) {
      first_->save(to);
      return;
    }
    for (size_t i = 0; i < tasks_.size(); ++i) {
      fields(numbered("task", i), tasks_[i]);
      if (tasks_[i].done) fields(numbered("weights", i), std::span<const float>(setup_.solutions[i].weights));
    }
    FieldWriter second = to.inside("second");
    second("plan", second_->plan);
    second_->solver->save(second);
  }

  void restore(FieldReader& from, const Position& at) override {
    FieldReader fields = from.inside("change");
    visit_progress(*this, fields);
    if (passes_ < 0 || passes_ >= at.pass) fields.refuse_value("passes");
    if (passes_ == 0) {
      first_->restore(from, at);
      return;
    }
    first_.reset();
    for (size_t i = 0; i < tasks_.size(); ++i) {
      fields(numbered("task", i), tasks_[i]);
      if (tasks_[i].certificate.contradicts_itself()) from.refuse("contradicts itself");
      Solution& solution = setup_.solutions[i];
      solution = {};
      solution.weights.resize(setup_.problem.weights(), 0.0F);
      if (tasks_[i].done)
        fields(numbered("weights", i), std::span<float>(solution.weights));
      else
        solution.known_dual = tasks_[i].certificate.dual;
    }
    if (std::all_of(tasks_.begin(), tasks_.end(), [](const ChangedTask& task) { return task.done; }))
      fields.refuse_value("passes");
    FieldReader second = from.inside("second");
    begin_second(second.take<Plan>("plan"));
    second_->solver->restore(second, within(at));
  }

 private:
  struct ChangedTask {
    Certificate certificate = {};  // by dual descent
    bool done = false;             // by dual descent

    static void visit_fields(auto& self, auto&& field) {
      field("certificate", self.certificate);
      field("done", self.done);
    }
  };

  // What newton works on, and all that its solver refers to.
  struct Second {
    std::vector<size_t> tasks = {};  // their numbers
    Problem problem;
    SolveOptions options;
    std::vector<Solution> solutions = {};
    Plan plan = {};
    std::unique_ptr<Solver> solver = {};
  };

  static void visit_progress(auto& self, auto&& field) {
    field("slowness", self.slowness_);
    field("passes", self.passes_);
    field("certificates_made", self.certificates_made_);
  }

  Solver& now() { return second_ ? *second_->solver : *first_; }
  const Solver& now() const { return second_ ? *second_->solver : *first_; }
  // In newton's passes.
  Position within(const Position& at) const { return {.pass = at.pass - passes_, .block = at.block}; }

  void begin_first() {
    first_ = std::visit([&](const auto& method) { return method.make(setup_); }, setup_.options.method);
  }

  // False: nothing is left to do, or newton does not fit in the memory.
  bool end_first(int passes) {
    Summary found;
    first_->finish(found);
    bool left = false;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      tasks_[i] = {.certificate = found.certificates[i],
                   .done = found.certificates[i].gap() <= setup_.options.tolerance};
      left = left || !tasks_[i].done;
    }
    if (!left || !make_second()) return false;
    passes_ = passes;
    certificates_made_ = found.certificates_made;
    first_.reset();
    for (size_t i = 0; i < tasks_.size(); ++i) {
      Solution& solution = setup_.solutions[i];
      solution = {.weights = std::move(solution.weights), .known_dual = tasks_[i].certificate.dual};
    }
    return true;
  }

  // Problem, options and plan; false where newton does not fit.
  bool make_second(std::optional<Plan> plan = {}) {
    second_plan_.reset();
    Second second{.problem = setup_.problem, .options = setup_.options};
    second.problem.tasks.clear();
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (tasks_[i].done) continue;
      second.tasks.push_back(i);
      second.problem.tasks.push_back(setup_.problem.tasks[i]);
    }
    second.options.method = Newton{};
    second.options.may_change = false;
    try {
      second.plan = plan ? std::move(*plan) : make_plan(second.problem, second.options, setup_.context);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::memory) throw;
      return false;
    }
    if (!plan && (second.plan.crowded || !Newton::is_worth(second.problem, second.plan))) return false;
    second_plan_ = std::make_unique<Second>(std::move(second));
    return true;
  }

  void begin_second(std::optional<Plan> plan = {}) {
    if (plan) make_second(std::move(plan));
    second_ = std::move(second_plan_);
    for (const size_t i : second_->tasks) second_->solutions.push_back(std::move(setup_.solutions[i]));
    second_->solver =
        make_solver(second_->problem, second_->options, second_->solutions, setup_.context, second_->plan, rows_);
  }

  void say_what_changed() const {
    double gap = 0;
    for (const ChangedTask& task : tasks_) gap = std::max(gap, task.certificate.gap());
    setup_.context.observer.note(
        fmt::format("dual is too slow on these data: after {} passes the certified gap is {:.3g}%, and more than {} "
                    "passes lie ahead. newton starts from its weights",
                    passes_, 100 * gap, static_cast<int>(Slowness::kMostAhead)));
    setup_.context.observer.plan(second_->plan);
  }

  const Setup setup_;
  Rows& rows_;
  Slowness slowness_;
  std::unique_ptr<Solver> first_;
  std::vector<ChangedTask> tasks_;  // once dual descent has ended
  int passes_ = 0;                  // of dual descent, when it has ended
  CertificatesMade certificates_made_;
  std::unique_ptr<Second> second_plan_;  // until it begins
  std::unique_ptr<Second> second_;
  std::optional<Termination> limit_;  // why no other pass will follow
};

}  // namespace

void Slowness::see(int pass, double gap, double tolerance) {
  if (std::isfinite(gap) && gap > 0) best_ = std::min(best_, gap);
  if (pass < next_check_ || too_slow_) return;
  // Of the second half of all passes.
  if (pass >= kFirstCheck && best_ > tolerance) {
    const double fall = std::log(best_before_ / best_);
    const double left = std::log(best_ / tolerance);
    too_slow_ = !(fall > 0) || left / fall * (pass / 2.0) > kMostAhead;
  }
  best_before_ = best_;
  next_check_ = 2 * next_check_;
}

std::unique_ptr<Solver> make_changing(const Setup& setup, Rows& rows) {
  return std::make_unique<ChangingSolver>(setup, rows);
}

}  // namespace linblock
