// AvgBlock: a model for each block, averaged.
//
// Problem:  each block on its own, min over w  1/2 |w|^2 + C sum over the block of losses; the answer is the mean
// Update:   dual coordinate descent on the block from zero, until its projected gradients lie within 0.1 of each other
// Paper:    Yu, Hsieh, Chang, Lin: sections 7.2 and 8.3 (AvgBlock), a bagging method.
// Reads:    the whole store once, and once for the certificate.
//
// The mean of m models is v of the duals divided by m, which are feasible for the whole problem: so it is certified.
#include "solve/baselines/average.h"

#include <algorithm>

#include "solve/core/certify.h"
#include "solve/core/row_plan.h"
#include "solve/dual/dual_descent.h"

namespace linblock {

namespace {

// One task on its way.
struct Averaging {
  Solution& solution;
  DualDescent descent;
  std::vector<float> mean;

  bool solve_block(const Block& block, size_t number, float share) {
    std::fill(solution.weights.begin(), solution.weights.end(), 0.0F);
    if (!descent.solve_block(block, number, {.most = kConvergeRounds, .converge = true})) return false;
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += share * solution.weights[i];
    for (const uint32_t chunk : block.numbers)
      for (double& alpha : solution.duals.page(chunk)) alpha *= double{share};
    solution.duals.put_back(block.numbers, 1);
    return true;
  }
};

class AverageSolver : public Solver {
 public:
  explicit AverageSolver(const Setup& setup)
      : setup_(setup),
        order_(order_of_pass(*setup.problem.store,
                             {.schedule = Schedule::fixed,
                              .chunks_per_block = setup.plan.chunks_per_block,
                              .sequence = BlockSequence::sequential,
                              .seed = setup.options.seed},
                             1)),
        certify_(setup) {
    const Problem& problem = setup.problem;
    for (size_t i = 0; i < problem.tasks.size(); ++i) {
      Solution& solution = setup.solutions[i];
      solution.duals = make_duals(setup, i);
      tasks_.push_back(
          {.solution = solution,
           .descent = DualDescent(problem, problem.tasks[i], setup.options.seed, solution, setup.context.stop),
           .mean = std::vector<float>(problem.weights(), 0)});
    }
  }

  std::optional<Pass> next(const Position&) override {
    if (certify_.in_work()) return certify_.next();
    certify_.clear();
    if (termination_) return std::nullopt;
    for (Averaging& task : tasks_)
      if (!resumed_) task.descent.begin_pass(1);
    return Pass{.order = order_};
  }

  bool work(const Block& block, size_t number) override {
    if (certify_.in_work()) {
      certify_.work(block);
      return true;
    }
    const auto share = 1 / static_cast<float>(order_.ends.size());
    return for_each_task(setup_.context, tasks_.size(),
                         [&](size_t i) { return tasks_[i].solve_block(block, number, share); });
  }

  std::optional<PassReport> end_pass(const PassEnd& end) override {
    if (!certify_.in_work()) {
      for (Averaging& task : tasks_) task.solution.weights = std::move(task.mean);
      certify_.begin_all();
      return std::nullopt;
    }
    certify_.end_pass();
    if (certify_.in_work()) return std::nullopt;
    PassReport report;
    for (const Certificate& certificate : certify_.certificates()) {
      report.add_task(certificate.primal, certificate.dual);
      if (certificate.gap() > setup_.options.tolerance) ++report.tasks_left;
      if (!report.certified || certificate.gap() > report.certified->gap()) report.certified = certificate;
    }
    const bool stopped = end.limit == Termination::interrupted;
    termination_ = stopped                  ? Termination::interrupted
                   : report.tasks_left == 0 ? Termination::converged
                                            : Termination::ended;
    return report;
  }

  std::vector<std::span<const float>> weights() const override { return weights_of(setup_.solutions); }
  std::vector<PartOfV> v() const override { return certify_.v(); }

  void finish(Summary& summary) override {
    summary.termination = *termination_;
    summary.certificates = certify_.certificates();
  }

  void save(FieldWriter& to) const override {
    for (size_t i = 0; i < tasks_.size(); ++i) {
      FieldWriter fields = to.inside(numbered("task", i));
      tasks_[i].descent.save(fields);
      fields("average", tasks_[i].mean);
    }
  }
  void restore(FieldReader& from, const Position& at) override {
    resumed_ = true;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      FieldReader fields = from.inside(numbered("task", i));
      tasks_[i].descent.restore(fields, order_, at.block);
      fields("average", std::span(tasks_[i].mean));
    }
  }

 private:
  const Setup setup_;
  const BlockOrder order_;
  Certify certify_;
  std::vector<Averaging> tasks_;
  bool resumed_ = false;
  std::optional<Termination> termination_;
};

}  // namespace

Plan Average::plan(const Problem& problem, const SolveOptions& options, const Context& context) const {
  return plan_rows({.weights = problem.weights(),
                    .bytes_per_weight = 2 * sizeof(float),
                    .bytes_per_row = Duals::kBytesPerRow,
                    .may_be_filed = true,
                    .v_bytes = problem.weights() * sizeof(double)},
                   problem, options, context);
}

std::unique_ptr<Solver> Average::make(const Setup& setup) const { return std::make_unique<AverageSolver>(setup); }

}  // namespace linblock
