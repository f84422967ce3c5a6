#include "solve/solve.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "solve/core/pass_loop.h"
#include "solve/second_method.h"
#include "solve/truncated/truncated.h"

namespace linblock {

void check_problem(const Problem& problem, const AnyMethod& method) {
  if (problem.store->info().rows == 0) fail(ErrorKind::input, "'{}' has no rows", problem.store->path());
  check(method, problem.loss);
  const bool all_at_once = abilities_of(method).tasks == TaskKind::all_classes;
  for (const Task& task : problem.tasks) {
    const auto& labels = problem.store->info().labels;
    if (!all_at_once && !labels.contains(task.positive))
      fail(ErrorKind::input, "no row of '{}' has the label {}", problem.store->path(),
           problem.store->info().label_names.show(task.positive));
    if (labels.size() < 2)
      fail(ErrorKind::input, "every row of '{}' has the label {}: a classifier needs two classes",
           problem.store->path(), problem.store->info().label_names.show(labels.begin()->first));
    if (!(task.cost > 0) || !std::isfinite(task.cost)) fail(ErrorKind::usage, "the cost must be a positive number");
  }
  if (problem.free_bias && !(problem.bias > 0 && abilities_of(method).free_bias))
    fail(ErrorKind::usage, "{} cannot leave a bias of {} out of the penalty", name_of(method), problem.bias);
  if (problem.truncate) check_truncated(method, *problem.truncate);
}

bool is_wrapped(const Problem& problem, const AnyMethod& method) {
  return problem.truncate && abilities_of(method).truncates == Truncates::around;
}

Plan make_plan(const Problem& problem, const SolveOptions& options, const Context& context) {
  if (is_wrapped(problem, options.method)) {
    Problem convex = problem;
    convex.truncate.reset();
    Context rest = context;
    rest.reserved_bytes += truncated_bytes(problem);
    return make_plan(convex, options, rest);
  }
  Plan plan = std::visit([&](const auto& method) { return method.plan(problem, options, context); }, options.method);
  plan.method = options.method.index();
  return plan;
}

size_t tasks_at_once(const Problem& problem, const SolveOptions& options, const Context& context) {
  Problem part = problem;
  const auto fits = [&](size_t tasks, bool duals_in_file) {
    part.tasks.assign(problem.tasks.begin(), problem.tasks.begin() + static_cast<ptrdiff_t>(tasks));
    try {
      const Plan plan = make_plan(part, options, context);
      return !plan.crowded && (duals_in_file || !plan.duals_in_file);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::memory) throw;
      return false;
    }
  };
  for (const bool duals_in_file : {false, true}) {
    if (!fits(1, duals_in_file)) continue;
    size_t enough = 1;
    size_t too_many = problem.tasks.size() + 1;
    while (too_many - enough > 1) {
      const size_t middle = enough + (too_many - enough) / 2;
      (fits(middle, duals_in_file) ? enough : too_many) = middle;
    }
    return enough;
  }
  make_plan(part, options, context);  // says what is too large
  return 1;
}

Rows::As rows_of(const Problem& problem, const Context& context, const Plan& plan) {
  return {.store = problem.store,
          .held = plan.rows,
          .window_bytes = plan.window_bytes,
          // Before another pass begins the rest may be for v, and all of it for pages of the index.
          .kept_bytes = plan.index ? 0 : plan.certify_window_bytes,
          .team = context.team,
          .decode_blocks = problem.tasks.size() > 1};
}

std::unique_ptr<Solver> make_solver(const Problem& problem, const SolveOptions& options,
                                    std::vector<Solution>& solutions, const Context& context, Plan& plan, Rows& rows) {
  if (is_wrapped(problem, options.method))
    return make_truncated({problem, options, solutions, context, plan, nullptr}, rows);
  if (plan.columns)
    rows.release();  // the solver knows where its columns are
  else
    rows.hold(rows_of(problem, context, plan));
  const Setup setup{problem, options, solutions, context, plan, rows.resident()};
  if (options.may_change) return make_changing(setup, rows);
  return std::visit([&](const auto& method) { return method.make(setup); }, options.method);
}

Summary solve(const Problem& problem, const SolveOptions& options, std::vector<Solution>& solutions,
              const Context& context) {
  Rows rows;
  PassLoop loop(problem, options, solutions, context, rows);
  while (const auto done = loop.pass())
    if (done->report) context.observer.pass(*done->report);
  return loop.finish();
}

}  // namespace linblock
