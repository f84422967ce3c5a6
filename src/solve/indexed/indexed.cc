// Indexed block coordinate descent: an index leads to the rows near the margin, and the others are never read.
//
// Problem:  for each task, min over w  1/2 |w|^2 + sum of C_i min(loss(y_i w.x_i), 1 + s); hinge and squared hinge.
//           Without s, the same with the loss as it is.
// Update:   outer steps (equation 5): w^{t+1} solves the convex problem of the rows that are no outliers at w^t. Inner
//           steps (Algorithm 1): a query finds up to n rows outside the active ones that violate at w and are no
//           outliers; the block is made of them and of as many active rows, in turn, as the query looked at in vain;
//           it is solved by dual coordinate descent or, for squared hinge, by Newton's method (equations 15 and 16).
//           The first active rows are the support vectors of a random sample.
// Paper:    Yen, Chang, Lin, Lin, Lin, "Indexed block coordinate descent for large-scale linear classification with
//           limited memory" (KDD 2013).
// Reads:    the sample; then pages of the index (store/metric_forest) as queries ask for them, through a cache that
//           gives its memory to active rows as they grow.
//
// Beyond the paper: a page remembers how far w may move before a row in it can violate (its smallest margin beyond 1,
// over its longest row), and a node's pivot and radius may say the same of a page that was never read. So a check of
// ALL rows reads only pages where something can have changed, and the last convex problem is certified as with any
// other method: rows outside the active ones that do not violate have no loss and no dual.
#include "solve/indexed/indexed.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "solve/core/pass.h"
#include "solve/indexed/indexed_plan.h"
#include "solve/indexed/indexed_task.h"
#include "solve/indexed/start_sample.h"

namespace linblock {

namespace {

constexpr double kStartTolerance = 0.01;

class IndexedSolver : public Solver {
 public:
  IndexedSolver(const Setup& setup, const Indexed& method)
      : setup_(setup), forest_(open_forest(setup.problem)), cache_(forest_, setup.plan.cache_bytes) {
    const Problem& problem = setup.problem;
    const Checkpoint& checkpoint = setup.context.checkpoint;
    const uint64_t share = active_bytes(setup.plan);
    for (size_t i = 0; i < problem.tasks.size(); ++i) {
      const std::string files = checkpoint.wanted() ? fmt::format("{}.active-{}-", checkpoint.path, i) : "";
      tasks_.push_back(std::make_unique<IndexedTask>(
          problem, problem.tasks[i], forest_, cache_,
          IndexedTask::Settings{.query = std::max<size_t>(1, method.query),
                                .tolerance = setup.options.tolerance,
                                .descent = {.newton = method.block_solver == BlockSolver::newton,
                                            .seed = mix64(setup.options.seed, i),
                                            .bytes = share,
                                            .files = files,
                                            .give_up = [this] { return gives_up(); }}}));
    }
  }

  std::optional<Pass> next(const Position& at) override {
    pass_ = at.pass;
    if (termination_) return std::nullopt;
    return Pass{.purpose = Pass::Purpose::step};
  }

  bool work(const Block&, size_t) override {
    if (!started_) start();
    started_ = true;
    in_work_.clear();
    for (const auto& task : tasks_)
      if (!task->done()) in_work_.push_back(task.get());
    working_.restart();
    costs_before_ = cache_.costs();
    for_each_task(setup_.context, in_work_.size(), [&](size_t i) {
      in_work_[i]->step();
      return true;
    });
    share_memory();
    return true;
  }

  std::optional<PassReport> end_pass(const PassEnd& end) override {
    if (end.limit)
      for (IndexedTask* task : in_work_)
        if (!task->done()) task->conclude();
    const bool all_done = std::all_of(tasks_.begin(), tasks_.end(), [](const auto& task) { return task->done(); });
    termination_ = all_done ? Termination::converged : end.limit;
    return report();
  }

  std::vector<std::span<const float>> weights() const override { return weights_of(setup_.solutions); }
  ReadCosts own_costs() const override { return cache_.costs(); }

  void finish(Summary& summary) override {
    summary.termination = *termination_;
    summary.truncate = setup_.problem.truncate;
    for (const auto& task : tasks_) {
      summary.certificates.push_back(task->certificate());
      const IndexedTask::Result result = task->result();
      if (setup_.problem.truncate) summary.truncated.push_back(result.truncated);
      summary.support_vectors.push_back(result.support_vectors);
    }
  }

  void save(FieldWriter& to) const override {
    for (size_t i = 0; i < tasks_.size(); ++i) to(numbered("task", i), *tasks_[i]);
  }
  void restore(FieldReader& from, const Position&) override {
    for (size_t i = 0; i < tasks_.size(); ++i) from(numbered("task", i), *tasks_[i]);
    started_ = true;
    share_memory();
  }

 private:
  static MetricForest open_forest(const Problem& problem) {
    MetricForest forest = MetricForest::open(*problem.store);
    const double bias = forest.info().bias;
    if ((bias >= 0) != problem.has_bias() || (problem.has_bias() && bias != problem.bias)) {
      const std::string wanted = problem.has_bias() ? library_text("`bias` {}", problem.bias) : "";
      fail(ErrorKind::usage, {rebuild("index", problem.store->path(), wanted)},
           "the index of '{}' was built {}, and this model is to have {}", problem.store->path(),
           bias >= 0 ? library_text("with `bias` {}", bias) : "without a bias", wanted.empty() ? "none" : wanted);
    }
    return forest;
  }

  // Inside a step: the user wants to stop and has waited long enough for the step to end. With a checkpoint that is
  // ErrorKind::interrupted. For any number of threads.
  bool gives_up() {
    const Context& context = setup_.context;
    if (!context.stopped()) return false;
    const std::lock_guard lock(told_mutex_);
    if (!told_to_stop_) told_to_stop_.emplace();
    if (told_to_stop_->seconds() < kStopSeconds) return false;
    if (context.checkpoint.wanted())
      fail(ErrorKind::interrupted, "interrupted in step {}: the same command {}", pass_,
           path_kind(context.checkpoint.path) == PathKind::file ? "resumes from the last checkpoint" : "starts over");
    return true;
  }

  // The support vectors of a random sample, as the convex problem has them there.
  void start() {
    const Problem& problem = setup_.problem;
    std::vector<StartSample::StartPoint> starts(tasks_.size());
    {
      const StartSample sample(problem, StartSample::usual_rows(problem.store->info()), setup_.plan.cache_bytes / 2,
                               setup_.options.seed);
      cache_.add_costs(sample.costs());
      for_each_task(setup_.context, tasks_.size(), [&](size_t i) {
        starts[i] = sample.solve(problem.tasks[i], std::max(kStartTolerance, setup_.options.tolerance));
        return true;
      });
    }
    std::set<uint32_t> chunks;
    for (const StartSample::StartPoint& start : starts)
      for (const StartSample::Support& support : start.support) chunks.insert(support.origin.chunk);
    for (const uint32_t number : chunks) {
      const Stopwatch reading;
      Chunk chunk;
      problem.store->read(number, chunk);
      cache_.add_costs({.bytes = problem.store->chunks()[number].extent(), .read_seconds = reading.seconds()});
      for (size_t i = 0; i < tasks_.size(); ++i)
        for (const StartSample::Support& support : starts[i].support)
          if (support.origin.chunk == number) tasks_[i]->add_to_start(chunk, support.origin.row, support.alpha);
    }
    for (const auto& task : tasks_) task->start();
    share_memory();
  }

  // As active rows grow they take from the cache, down to a quarter.
  void share_memory() {
    uint64_t active = 0;
    for (const auto& task : tasks_)
      active += task->active().bytes_here() + task->active().size() * ActiveRows::kNoteBytes;
    const uint64_t all = setup_.plan.cache_bytes;
    cache_.set_capacity(std::max(all / 4, all - std::min(all, active)));
  }

  PassReport report() {
    PassReport report{.costs = cache_.costs() - costs_before_};
    Certificate widest = {};
    report.solve_seconds = std::max(0.0, working_.seconds() - report.costs.read_seconds);
    bool stepped = false;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      const IndexedTask& task = *tasks_[i];
      report.rows += task.rows_looked_at();
      report.active_rows += task.active().size();
      report.add_task(task.certificate().primal, task.certificate().dual);
      if (!task.done()) ++report.tasks_left;
      stepped = tasks_[i]->take_outer_step() || stepped;
      if (i == 0 || task.certificate().gap() > widest.gap()) widest = task.certificate();
      std::vector<float>& weights = setup_.solutions[i].weights;
      weights.resize(task.weights().size());
      std::transform(task.weights().begin(), task.weights().end(), weights.begin(),
                     [](double x) { return static_cast<float>(x); });
      if (auto note = tasks_[i]->take_note()) report.notes.push_back(std::move(*note));
    }
    if (report.tasks_left == 0) report.certified = widest;
    if (stepped) report.truncated = truncated_so_far();
    const uint64_t rows = report.rows;
    report.rows -= std::exchange(rows_so_far_, rows);
    return report;
  }

  // Of all tasks together: nothing before each has made a step.
  std::optional<TruncatedResult> truncated_so_far() const {
    TruncatedResult sum;
    for (const auto& task : tasks_) {
      const TruncatedResult result = task->result().truncated;
      if (result.outer_steps == 0) return std::nullopt;
      sum.objective += result.objective;
      sum.outliers += result.outliers;
      sum.outer_steps += result.outer_steps;
    }
    return sum;
  }

  const Setup setup_;
  const MetricForest forest_;
  PageCache cache_;
  std::vector<std::unique_ptr<IndexedTask>> tasks_;
  bool started_ = false;
  uint64_t rows_so_far_ = 0;
  std::optional<Termination> termination_;
  // Of the step in work.
  int pass_ = 1;
  std::vector<IndexedTask*> in_work_;
  Stopwatch working_;
  ReadCosts costs_before_;
  std::mutex told_mutex_;
  std::optional<Stopwatch> told_to_stop_;  // since it was seen inside a step
};

}  // namespace

Plan Indexed::plan(const Problem& problem, const SolveOptions&, const Context& context) const {
  return plan_indexed(problem, context);
}

std::unique_ptr<Solver> Indexed::make(const Setup& setup) const {
  return std::make_unique<IndexedSolver>(setup, *this);
}

}  // namespace linblock
