#include "solve/solve.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/error.h"
#include "solve/core/pass_loop.h"
#include "solve/truncated/truncated.h"

namespace linblock {

namespace {

void check_problem(const Problem& problem, const AnyMethod& method) {
  if (problem.store->info().rows == 0) fail(ErrorKind::input, "'{}' has no rows", problem.store->path());
  check(method, problem.loss);
  const bool all_at_once = abilities_of(method).tasks == TaskKind::all_classes;
  for (const Task& task : problem.tasks) {
    const auto& labels = problem.store->info().labels;
    if (!all_at_once && !labels.contains(task.positive))
      fail(ErrorKind::input, "no row of '{}' has the label {}", problem.store->path(), task.positive);
    if (labels.size() < 2)
      fail(ErrorKind::input, "every row of '{}' has the label {}: a classifier needs two classes",
           problem.store->path(), labels.begin()->first);
    if (!(task.cost > 0) || !std::isfinite(task.cost)) fail(ErrorKind::usage, "the cost must be a positive number");
  }
  if (problem.truncate) check_truncated(method, *problem.truncate);
}

// Where the duals are at hand.
std::vector<uint64_t> count_support_vectors(const std::vector<Solution>& solutions) {
  std::vector<uint64_t> counts;
  for (const Solution& solution : solutions) {
    if (solution.duals.empty() || solution.duals.in_file()) return {};
    const std::span<const double> all = solution.duals.all();
    counts.push_back(static_cast<uint64_t>(std::count_if(all.begin(), all.end(), [](double a) { return a > 0; })));
  }
  return counts;
}

// The outer loop of truncated losses goes around the method.
bool is_wrapped(const Problem& problem, const AnyMethod& method) {
  return problem.truncate && abilities_of(method).truncates == Truncates::around;
}

}  // namespace

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
      return duals_in_file || !plan.duals_in_file;
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
          .threads = context.threads,
          .decode_blocks = problem.tasks.size() > 1};
}

namespace {

// One pass after another, to the end.
Summary drive(const Problem& problem, const SolveOptions& options, std::vector<Solution>& solutions,
              const Context& context, Rows& rows) {
  PassLoop loop(problem, options, solutions, context, rows);
  while (const auto done = loop.pass()) {
    if (context.on_v && done->purpose == Pass::Purpose::certify)
      for (const PartOfV& part : loop.solver().v()) context.on_v(part.task, part.begin, part.v);
    if (done->report) context.observer(*done->report);
  }
  if (context.on_answer) loop.read_rows("to look at the rows with what was learned", context.on_answer);
  return loop.finish();
}

}  // namespace

std::unique_ptr<Solver> make_solver(const Problem& problem, const SolveOptions& options,
                                    std::vector<Solution>& solutions, const Context& context, Plan& plan, Rows& rows) {
  if (plan.columns)
    rows.release();  // the solver knows where its columns are
  else
    rows.hold(rows_of(problem, context, plan));
  const Setup setup{problem, options, solutions, context, plan, rows.resident()};
  return std::visit([&](const auto& method) { return method.make(setup); }, options.method);
}

Summary solve(const Problem& problem, const SolveOptions& options, std::vector<Solution>& solutions,
              const Context& context) {
  check_problem(problem, options.method);
  solutions.resize(problem.tasks.size());
  if (is_wrapped(problem, options.method)) return solve_truncated(problem, options, solutions, context);
  Rows own_rows;
  Rows& rows = context.handed_on != nullptr ? *context.handed_on : own_rows;
  Summary summary = drive(problem, options, solutions, context, rows);
  for (const Certificate& one : summary.certificates)
    if (summary.has_dual && one.contradicts_itself())
      throw std::logic_error(fmt::format(
          "the certificate contradicts itself: no objective can be below {:.17g}, and that of these weights is "
          "{:.17g}",
          one.dual, one.primal));
  if (summary.support_vectors.empty()) summary.support_vectors = count_support_vectors(solutions);
  return summary;
}

}  // namespace linblock
