// A run of a method that goes over columns: all tasks, pass after pass, to a certified optimum.
#pragma once

#include <memory>
#include <vector>

#include "base/threads.h"
#include "solve/columns/column_descent.h"
#include "solve/core/tasks.h"

namespace linblock {

template <class Descent>
class ColumnRun {
 public:
  // `make(task, shared, facts, solution)`: a task's descent at w = 0.
  template <class Make>
  ColumnRun(const Problem& problem, const SolveOptions& options, ColumnOrder order, std::vector<Solution>& solutions,
            const Context& context, const Make& make)
      : problem_(problem),
        options_(options),
        order_(order),
        context_(context),
        solutions_(solutions),
        columns_(Columns::open(*problem.store)),
        units_(columns_.store()),
        run_(problem, options, context, &columns_.store()) {
    const RowFacts facts = columns_.facts();
    shared_ = std::make_unique<ColumnRows>(problem, facts);
    std::vector<Descent*> warm;
    std::vector<Solution*> starts;
    for (size_t i = 0; i < problem.tasks.size(); ++i) {
      Solution& solution = solutions[i];
      solution.duals = Duals();
      Descent& descent =
          tasks_.add(problem.tasks[i], solution, make(problem.tasks[i], *shared_, facts, solution), kFirstTrust);
      if (solution.weights.empty()) continue;
      descent.task().begin_from(solution.weights);
      warm.push_back(&descent);
      starts.push_back(&solution);
    }
    const bool resumed = run_.restore([&](FieldReader& from) {
      tasks_.restore(from, [](auto& task, FieldReader& own) { task.descent.restore(own); });
    });
    if (!resumed && !warm.empty())
      make_products(warm, 0, 1, [&](size_t i, const Block& block) {
        warm[i]->task().take_weights(block, visits_, starts[i]->weights);
      });
  }

  Summary solve() {
    for (;; ++run_.pass, run_.block = 0) {
      work_on_pass();
      const auto tasks = tasks_.in_work();
      for_each_on_threads(context_.threads, tasks.size(), [&](size_t i) {
        tasks[i]->descent.end_pass();
        tasks[i]->descent.task().give_weights();
      });
      PassReport report = run_.pass_report();
      double squares = 0;
      for (const auto* task : tasks) {
        squares += task->descent.squared_slopes();
        report.largest_slope = std::max(report.largest_slope, task->descent.largest_slope());
      }
      report.gradient_norm = std::sqrt(squares);
      const bool waits = run_.plan().rows == RowsHeld::streamed;
      const bool last = run_.last_pass();
      tasks_.finish_pass(run_, options_, waits, report, [&](const auto& due) { certify(due); });
      report.solutions = &solutions_;
      run_.report(report);
      if (report.tasks_left > 0 && !last) continue;
      run_.summary().column_steps = {};
      for (const Descent* descent : tasks_.all()) run_.summary().column_steps += descent->steps();
      return run_.finish(report.tasks_left == 0 ? Termination::converged : run_.limit(), tasks_.certificates());
    }
  }

 private:
  static constexpr double kFirstTrust = 0.5;
  // In cyclic order a feature's slope is met when its neighbours have just been dealt with, and says little of those
  // that they leave behind.
  static constexpr double kMostTrust = 1000;
  static constexpr uint64_t kSalt = 0xfea7;  // apart from the seed's other uses

  BlockOrder order_of(ColumnOrder order, int pass) const {
    return units_.order_of_pass(order, run_.plan().chunks_per_block, options_.seed, pass);
  }

  // The bias comes with the last block.
  void arrange(const Block& block, size_t number, size_t blocks) {
    visits_.collect(block, problem_.has_bias() && number + 1 >= blocks);
    const auto pass = order_ == ColumnOrder::once ? 0 : static_cast<uint64_t>(run_.pass);
    visits_.arrange(order_, Random(mix64(options_.seed, kSalt), mix64(pass, number)));
  }

  void work_on_pass() {
    const auto tasks = tasks_.in_work();
    for (auto* task : tasks) task->descent.begin_pass(run_.pass);
    const BlockOrder order = order_of(order_, run_.pass);
    const auto work = [&](const Block& block, size_t number) {
      arrange(block, number, order.ends.size());
      return run_.for_each_task(tasks.size(), [&](size_t i) { return tasks[i]->descent.solve_block(block, visits_); });
    };
    // Rows without a single feature have no columns, and may still have a bias.
    if (order.ends.empty()) work(Block{}, 0);
    run_.work_on_pass(order, work, [&](FieldWriter& to) { tasks_.save(to); });
  }

  // Reading `number` of so many, each task on its own.
  template <class Work>
  void read(size_t count, size_t number, size_t readings, const Work& work) {
    const BlockOrder order = order_of(ColumnOrder::cyclic, 1);
    const auto look = [&](const Block& block, size_t at) {
      visits_.collect(block, problem_.has_bias() && at + 1 >= order.ends.size());
      for_each_on_threads(context_.threads, count, [&](size_t i) { work(i, block); });
    };
    if (order.ends.empty()) look(Block{}, 0);
    run_.read_for_certificate(order, number, readings, look);
  }

  template <class Before>
  void make_products(const std::vector<Descent*>& those, size_t number, size_t readings, const Before& before) {
    for (Descent* descent : those) descent->task().begin_products();
    read(those.size(), number, readings, [&](size_t i, const Block& block) {
      before(i, block);
      those[i]->task().add_products(block, visits_);
    });
    for_each_on_threads(context_.threads, those.size(), [&](size_t i) { those[i]->task().end_products(); });
  }

  // At the very weights that will be saved: one reading gives w.x of every row, another the gradient.
  template <class Due>
  void certify(const Due& due) {
    std::vector<Descent*> those;
    those.reserve(due.size());
    for (const auto& task : due) those.push_back(&task->descent);
    if (those.empty()) return;
    for (Descent* descent : those) descent->task().round_weights();
    make_products(those, 0, 2, [](size_t, const Block&) {});
    for (Descent* descent : those) descent->task().begin_gradient();
    read(those.size(), 1, 2, [&](size_t i, const Block& block) { those[i]->task().add_gradient(block, visits_); });
    for_each_on_threads(context_.threads, due.size(),
                        [&](size_t i) { due[i]->certificate = due[i]->descent.task().certificate(); });
  }

  const Problem& problem_;
  const SolveOptions& options_;
  const ColumnOrder order_;
  const Context& context_;
  std::vector<Solution>& solutions_;
  const Columns columns_;
  const ColumnUnits units_;
  Run run_;
  std::unique_ptr<ColumnRows> shared_;
  Tasks<Descent> tasks_{kMostTrust};
  ColumnVisits visits_;
};

}  // namespace linblock
