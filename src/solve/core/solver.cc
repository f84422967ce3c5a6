#include "solve/core/solver.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "base/error.h"
#include "solve/truncated/truncated.h"

namespace linblock {

namespace {

void check(const Problem& problem, const Method& method) {
  if (problem.store->info().rows == 0) fail(ErrorKind::input, "'{}' has no rows", problem.store->path());
  const bool all_at_once = std::holds_alternative<CrammerSinger>(method);
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

}  // namespace

std::string_view name_of_method(size_t number) {
  constexpr std::array<std::string_view, 9> kNames = {"dual",   "pegasos", "average", "subsample", "crammer-singer",
                                                      "newton", "primal",  "cmls",    "indexed"};
  return kNames[number];
}

std::string_view name_of(const Method& method) { return name_of_method(method.index()); }

bool is_primal(const Method& method) { return std::holds_alternative<Newton>(method) || goes_over_columns(method); }

bool goes_over_columns(const Method& method) {
  return std::holds_alternative<PrimalColumn>(method) || std::holds_alternative<Cmls>(method);
}

size_t weights_of_a_task(const Problem& problem, const Method& method) {
  return problem.weights() * (std::holds_alternative<CrammerSinger>(method) ? problem.classes() : 1);
}

Certificate Summary::total() const {
  Certificate sum;
  for (const Certificate& one : certificates) sum = {sum.primal + one.primal, sum.dual + one.dual};
  return sum;
}

TruncatedResult Summary::truncated_total() const {
  TruncatedResult sum;
  for (const TruncatedResult& one : truncated)
    sum = {sum.objective + one.objective, sum.outliers + one.outliers, std::max(sum.outer_steps, one.outer_steps)};
  return sum;
}

uint64_t Summary::support_vectors_total() const {
  return std::accumulate(support_vectors.begin(), support_vectors.end(), uint64_t{0});
}

double Summary::largest_gap() const {
  double largest = 0;
  for (const Certificate& one : certificates) largest = std::max(largest, one.gap());
  return largest;
}

Summary solve(const Problem& problem, const SolveOptions& options, std::vector<Solution>& solutions,
              const Context& context) {
  check(problem, options.method);
  solutions.resize(problem.tasks.size());
  if (problem.truncate && !std::holds_alternative<IndexedBlock>(options.method))
    return solve_truncated(problem, options, solutions, context);
  struct Run {
    const Problem& problem;
    const SolveOptions& options;
    std::vector<Solution>& solutions;
    const Context& context;
    Summary operator()(const DualBlock& method) const {
      return solve_dual_block(problem, options, method, solutions, context);
    }
    Summary operator()(const Pegasos& method) const {
      return solve_pegasos(problem, options, method, solutions, context);
    }
    Summary operator()(const Average& method) const {
      return solve_average(problem, options, method, solutions, context);
    }
    Summary operator()(const Subsample& method) const {
      return solve_subsample(problem, options, method, solutions, context);
    }
    Summary operator()(const CrammerSinger& method) const {
      return solve_crammer_singer(problem, options, method, solutions, context);
    }
    Summary operator()(const Newton& method) const {
      return solve_newton(problem, options, method, solutions, context);
    }
    Summary operator()(const PrimalColumn& method) const {
      return solve_primal_column(problem, options, method, solutions, context);
    }
    Summary operator()(const Cmls& method) const { return solve_cmls(problem, options, method, solutions, context); }
    Summary operator()(const IndexedBlock& method) const {
      return solve_indexed_block(problem, options, method, solutions, context);
    }
  };
  Summary summary = std::visit(Run{problem, options, solutions, context}, options.method);
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
