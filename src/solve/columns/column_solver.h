// A method that goes over columns, at work: all tasks, pass after pass, to a certified optimum.
#pragma once

#include <memory>
#include <vector>

#include "solve/columns/column_descent.h"
#include "solve/core/certify.h"
#include "solve/core/tasks.h"

namespace linblock {

template <class Descent>
class ColumnSolver : public Solver {
 public:
  // `make(task, shared, facts, solution)`: a task's descent at w = 0.
  template <class Make>
  ColumnSolver(const Setup& setup, ColumnOrder order, const Make& make)
      : setup_(setup), order_(order), columns_(Columns::open(*setup.problem.store)), units_(columns_.store()) {
    const Problem& problem = setup.problem;
    const RowFacts facts = columns_.facts();
    shared_ = std::make_unique<ColumnRows>(problem, facts);
    for (size_t i = 0; i < problem.tasks.size(); ++i) {
      Solution& solution = setup.solutions[i];
      solution.duals = Duals();
      Descent& descent =
          tasks_.add(problem.tasks[i], solution, make(problem.tasks[i], *shared_, facts, solution), kFirstTrust);
      if (solution.weights.empty()) continue;
      descent.task().begin_from(solution.weights);
      read_.push_back(&descent);
      starts_.push_back(&solution);
    }
    if (!read_.empty()) reading_ = Reading::start;
  }

  std::optional<Pass> next(const Position& at) override {
    switch (reading_) {
      case Reading::start:
      case Reading::products:
        for (Descent* descent : read_) descent->task().begin_products();
        break;
      case Reading::gradient:
        for (Descent* descent : read_) descent->task().begin_gradient();
        break;
      case Reading::none:
        if (termination_) return std::nullopt;
        return begin_pass(at);
    }
    Pass pass = pass_over(order_of(ColumnOrder::cyclic, 1));
    pass.purpose = Pass::Purpose::certify;
    pass.words = kCertifying;
    pass.done = reading_ == Reading::gradient ? 1 : 0;
    pass.readings = reading_ == Reading::start ? 1 : 2;
    return pass;
  }

  bool work(const Block& block, size_t number) override {
    // The bias comes with the last block.
    visits_.collect(block, setup_.problem.has_bias() && number + 1 >= blocks_);
    if (reading_ != Reading::none) {
      setup_.context.team.for_each(read_.size(), [&](size_t i) { read(i, block); });
      return true;
    }
    const auto pass = order_ == ColumnOrder::once ? 0 : static_cast<uint64_t>(pass_);
    visits_.arrange(order_, Random(mix64(setup_.options.seed, kSalt), mix64(pass, number)));
    return for_each_task(setup_.context, in_work_.size(),
                         [&](size_t i) { return in_work_[i]->descent.solve_block(block, visits_); });
  }

  std::optional<PassReport> end_pass(const PassEnd& end) override {
    switch (reading_) {
      case Reading::start:
        end_products();
        reading_ = Reading::none;
        return std::nullopt;
      case Reading::products:
        end_products();
        reading_ = Reading::gradient;
        return std::nullopt;
      case Reading::gradient:
        setup_.context.team.for_each(tasks_.due().size(), [&](size_t i) {
          tasks_.due()[i]->certificate = tasks_.due()[i]->descent.task().certificate();
        });
        reading_ = Reading::none;
        break;
      case Reading::none:
        end_solving(end.limit.has_value());
        if (reading_ != Reading::none) return std::nullopt;
    }
    tasks_.end_certificates(setup_.options, report_);
    if (report_.tasks_left == 0)
      termination_ = Termination::converged;
    else if (last_)
      termination_ = end.limit.value_or(Termination::interrupted);
    return report_;
  }

  std::vector<std::span<const float>> weights() const override { return weights_of(setup_.solutions); }

  void finish(Summary& summary) override {
    summary.termination = *termination_;
    summary.certificates = tasks_.certificates();
    summary.column_steps = {};
    for (const Descent* descent : tasks_.all()) summary.column_steps += descent->steps();
  }

  void save(FieldWriter& to) const override { tasks_.save(to); }
  void restore(FieldReader& from, const Position&) override {
    tasks_.restore(from, [](auto& task, FieldReader& fields) { task.descent.restore(fields); });
    reading_ = Reading::none;  // the states of all rows are saved
  }

 private:
  static constexpr double kFirstTrust = 0.5;
  // In cyclic order a feature's slope is met when its neighbors have just been dealt with, and says little of those
  // that they leave behind.
  static constexpr double kMostTrust = 1000;
  static constexpr uint64_t kSalt = 0xfea7;  // apart from the seed's other uses

  // At the very weights that will be saved, one reading gives w.x of every row and another the gradient. A warm start
  // needs w.x too.
  enum class Reading { none, start, products, gradient };

  BlockOrder order_of(ColumnOrder order, int pass) const {
    return units_.order_of_pass(order, setup_.plan.chunks_per_block, setup_.options.seed, pass);
  }

  Pass pass_over(BlockOrder order) {
    blocks_ = order.ends.size();
    return {.order = std::move(order),
            .rows = Rows::As{.store = &columns_.store(),
                             .held = setup_.plan.rows,
                             .window_bytes = setup_.plan.window_bytes,
                             .team = setup_.context.team}};
  }

  Pass begin_pass(const Position& at) {
    pass_ = at.pass;
    in_work_ = tasks_.in_work();
    for (auto* task : in_work_) task->descent.begin_pass(at.pass);
    return pass_over(order_of(order_, at.pass));
  }

  void read(size_t i, const Block& block) {
    auto& task = read_[i]->task();
    if (reading_ == Reading::start) task.take_weights(block, visits_, starts_[i]->weights);
    if (reading_ == Reading::gradient)
      task.add_gradient(block, visits_);
    else
      task.add_products(block, visits_);
  }

  void end_products() {
    setup_.context.team.for_each(read_.size(), [&](size_t i) { read_[i]->task().end_products(); });
  }

  void end_solving(bool last) {
    last_ = last;
    setup_.context.team.for_each(in_work_.size(), [&](size_t i) {
      in_work_[i]->descent.end_pass();
      in_work_[i]->descent.task().give_weights();
    });
    report_ = {};
    double squares = 0;
    for (const auto* task : in_work_) {
      squares += task->descent.squared_gradients();
      report_.largest_slope = std::max(report_.largest_slope, task->descent.largest_gradient());
    }
    report_.gradient_norm = std::sqrt(squares);
    read_.clear();
    for (auto* task :
         tasks_.choose_due(setup_.context.team, setup_.options, setup_.plan.rows == RowsHeld::streamed, last))
      read_.push_back(&task->descent);
    if (read_.empty()) return;
    for (Descent* descent : read_) descent->task().round_weights();
    reading_ = Reading::products;
  }

  const Setup setup_;
  const ColumnOrder order_;
  const Columns columns_;
  const ColumnUnits units_;
  std::unique_ptr<ColumnRows> shared_;
  Tasks<Descent> tasks_{kMostTrust};
  ColumnVisits visits_;
  // Of the pass in work.
  int pass_ = 1;
  size_t blocks_ = 0;
  std::vector<typename Tasks<Descent>::TaskRun*> in_work_;
  Reading reading_ = Reading::none;
  std::vector<Descent*> read_;           // that a reading is for
  std::vector<const Solution*> starts_;  // of a warm start
  PassReport report_;
  bool last_ = false;  // no pass will follow
  std::optional<Termination> termination_;
};

}  // namespace linblock
