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
#include <set>

#include "base/error.h"
#include "solve/core/run.h"
#include "solve/indexed/indexed_plan.h"
#include "solve/indexed/indexed_task.h"
#include "solve/indexed/start_sample.h"

namespace linblock {

namespace {

constexpr double kStartTolerance = 0.01;

class IndexedRun {
 public:
  IndexedRun(const Problem& problem, const SolveOptions& options, const Indexed& method,
             std::vector<Solution>& solutions, const Context& context)
      : problem_(problem),
        options_(options),
        solutions_(solutions),
        forest_(open_forest(problem)),
        run_(problem, options, context),
        cache_(forest_, run_.plan().cache_bytes) {
    const uint64_t share = active_bytes(run_.plan());
    for (size_t i = 0; i < problem.tasks.size(); ++i) {
      const std::string files =
          context.checkpoint.wanted() ? fmt::format("{}.active-{}-", context.checkpoint.path, i) : "";
      tasks_.push_back(std::make_unique<IndexedTask>(
          problem, problem.tasks[i], forest_, cache_,
          IndexedTask::Settings{.query = std::max<size_t>(1, method.query),
                                .tolerance = options.tolerance,
                                .descent = {.newton = method.block_solver == BlockSolver::newton,
                                            .seed = mix64(options.seed, i),
                                            .bytes = share,
                                            .files = files,
                                            .give_up = [this] { return run_.gives_up("step"); }}}));
    }
    const bool resumed = run_.restore([&](FieldReader& from) {
      for (size_t i = 0; i < tasks_.size(); ++i) from(numbered("task", i), *tasks_[i]);
    });
    if (resumed)
      share_memory();
    else
      start();
  }

  Summary solve() {
    for (;; ++run_.pass) {
      std::vector<IndexedTask*> in_work;
      for (const auto& task : tasks_)
        if (!task->done()) in_work.push_back(task.get());
      const Stopwatch working;
      const ReadCosts before = cache_.costs();
      run_.for_each_task(in_work.size(), [&](size_t i) {
        in_work[i]->step();
        return true;
      });
      share_memory();
      const bool last = run_.last_step();
      if (last)
        for (IndexedTask* task : in_work)
          if (!task->done()) task->conclude();
      report(working, before);
      const bool all_done = std::all_of(tasks_.begin(), tasks_.end(), [](const auto& task) { return task->done(); });
      if (all_done || last) return finish_run(all_done ? Termination::converged : run_.limit());
      run_.end_step([&](FieldWriter& to) {
        for (size_t i = 0; i < tasks_.size(); ++i) to(numbered("task", i), *tasks_[i]);
      });
    }
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

  // The support vectors of a random sample, as the convex problem has them there.
  void start() {
    std::vector<StartSample::Start> starts(tasks_.size());
    {
      const StartSample sample(problem_, StartSample::usual_rows(problem_.store->info()), run_.plan().cache_bytes / 2,
                               options_.seed);
      cache_.add_costs(sample.costs());
      run_.for_each_task(tasks_.size(), [&](size_t i) {
        starts[i] = sample.solve(problem_.tasks[i], std::max(kStartTolerance, options_.tolerance));
        return true;
      });
    }
    std::set<uint32_t> chunks;
    for (const StartSample::Start& start : starts)
      for (const StartSample::Support& one : start.support) chunks.insert(one.origin.chunk);
    for (const uint32_t number : chunks) {
      const Stopwatch reading;
      Chunk chunk;
      problem_.store->read(number, chunk);
      cache_.add_costs({.bytes = problem_.store->chunks()[number].extent(), .read_seconds = reading.seconds()});
      for (size_t i = 0; i < tasks_.size(); ++i)
        for (const StartSample::Support& one : starts[i].support)
          if (one.origin.chunk == number) tasks_[i]->add_to_start(chunk, one.origin.row, one.alpha);
    }
    for (const auto& task : tasks_) task->start();
    share_memory();
    run_.count(cache_.costs());
  }

  // As active rows grow they take from the cache, down to a quarter.
  void share_memory() {
    uint64_t active = 0;
    for (const auto& task : tasks_)
      active += task->active().bytes_here() + task->active().size() * ActiveRows::kNoteBytes;
    const uint64_t all = run_.plan().cache_bytes;
    cache_.set_capacity(std::max(all / 4, all - std::min(all, active)));
  }

  void report(const Stopwatch& working, const ReadCosts& before) {
    PassReport report{.pass = run_.pass, .costs = cache_.costs() - before};
    Certificate widest = {};
    run_.count(report.costs);
    report.solve_seconds = std::max(0.0, working.seconds() - report.costs.read_seconds);
    run_.summary().solve_seconds += report.solve_seconds;
    bool stepped = false;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      const IndexedTask& task = *tasks_[i];
      report.rows += task.rows_looked_at();
      report.active_rows += task.active().size();
      report.add_task(task.certificate().primal, task.certificate().dual);
      if (!task.done()) ++report.tasks_left;
      stepped = tasks_[i]->take_outer_step() || stepped;
      if (i == 0 || task.certificate().gap() > widest.gap()) widest = task.certificate();
      std::vector<float>& weights = solutions_[i].weights;
      weights.resize(task.weights().size());
      std::transform(task.weights().begin(), task.weights().end(), weights.begin(),
                     [](double x) { return static_cast<float>(x); });
      if (const auto note = tasks_[i]->take_note()) run_.context().on_note(*note);
    }
    if (report.tasks_left == 0) report.certified = widest;
    if (stepped) report.truncated = truncated_so_far();
    const uint64_t rows = report.rows;
    report.rows -= std::exchange(rows_so_far_, rows);
    report.solutions = &solutions_;
    run_.report(report);
  }

  // Of all tasks together: nothing before each has made a step.
  std::optional<TruncatedResult> truncated_so_far() const {
    TruncatedResult sum;
    for (const auto& task : tasks_) {
      const TruncatedResult one = task->result().truncated;
      if (one.outer_steps == 0) return std::nullopt;
      sum.objective += one.objective;
      sum.outliers += one.outliers;
      sum.outer_steps += one.outer_steps;
    }
    return sum;
  }

  Summary finish_run(Termination termination) {
    std::vector<Certificate> certificates;
    for (const auto& task : tasks_) {
      certificates.push_back(task->certificate());
      const IndexedTask::Result result = task->result();
      if (problem_.truncate) run_.summary().truncated.push_back(result.truncated);
      run_.summary().support_vectors.push_back(result.support_vectors);
    }
    run_.summary().truncate = problem_.truncate;
    return run_.finish(termination, std::move(certificates));
  }

  const Problem& problem_;
  const SolveOptions& options_;
  std::vector<Solution>& solutions_;
  const MetricForest forest_;
  Run run_;
  PageCache cache_;
  std::vector<std::unique_ptr<IndexedTask>> tasks_;
  uint64_t rows_so_far_ = 0;
};

}  // namespace

Plan Indexed::plan(const Problem& problem, const SolveOptions&, const Context& context) const {
  return plan_indexed(problem, context);
}

Summary Indexed::solve(const Problem& problem, const SolveOptions& options, std::vector<Solution>& solutions,
                       const Context& context) const {
  return IndexedRun(problem, options, *this, solutions, context).solve();
}

}  // namespace linblock
