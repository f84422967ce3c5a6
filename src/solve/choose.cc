#include "solve/choose.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"
#include "solve/core/difficulty.h"
#include "solve/core/row_plan.h"
#include "solve/solve.h"

namespace linblock {

namespace {

// Dual descent moves a number for each row: with many rows for each feature, or long rows, steps undo each other, and
// it needs many passes. Newton's passes do not depend on the rows, and it needs few: each makes the whole step, from a
// sample of rows that the memory holds, or by its trust region.

// With some room for what is not known yet, such as rows to test on: a choice must not be refused where another works.
constexpr uint64_t kOthersShare = 4;  // one part in so many

// Rows that are long for their cost: with fewer than half a row for each feature dual descent arrives all the same, and
// is cheaper. Where the memory has no samples, newton's trust region needs more rows than that.
constexpr uint64_t kFeaturesForSamples = 2;  // for each row
constexpr uint64_t kRowsForTrustRegion = 2;  // for each feature

constexpr double kEasy = 100;  // what a smaller cost is to reach
// The hinge to a loose gap: up to here dual descent is done before newton has found the rows that matter. It is worth
// more where rows are read in each pass: then newton's sample is small and its passes are many.
constexpr double kShortRows = 12;
constexpr double kShortStreamedRows = 100;
constexpr double kLooseTolerance = 0.005;
constexpr std::string_view kTooLittleMemory = "newton and its samples of rows do not fit in memory";

// The plan for as many tasks as are worked on together; nothing where it does not fit.
std::optional<Plan> plan_for(Problem problem, const AnyMethod& method, Context context) {
  context.reserved_bytes += context.memory_bytes / kOthersShare;
  try {
    problem.tasks.resize(tasks_at_once(problem, {.method = method}, context));
    return make_plan(problem, method, context);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::memory) throw;
    return {};
  }
}

size_t groups(const Problem& problem, const AnyMethod& method, const Context& context) {
  const size_t at_once = tasks_at_once(problem, {.method = method}, context);
  return (problem.tasks.size() + at_once - 1) / at_once;
}

// With samples that stand for all rows, and as many tasks in a pass as dual has.
bool has_samples(const Problem& problem, const Plan& newton, Context context) {
  context.reserved_bytes += context.memory_bytes / kOthersShare;
  Problem part = problem;
  part.tasks.resize(newton.tasks);
  if (!Newton::is_worth(part, newton)) return false;
  if (newton.tasks == problem.tasks.size()) return true;
  try {
    return groups(problem, Newton{}, context) <= groups(problem, Dual{}, context);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::memory) throw;
    return true;  // dual does not fit at all
  }
}

bool is_smooth(const Problem& problem) {
  return std::visit([]<class L>(const L&) { return SmoothLoss<L>; }, problem.loss);
}

// Of problems whose rows are long: with samples of rows newton does not mind.
bool suits_long_rows(const Problem& problem, const Plan& newton, const Context& context) {
  return has_samples(problem, newton, context) ||
         (is_smooth(problem) && problem.store->info().rows > kRowsForTrustRegion * problem.weights());
}

}  // namespace

std::string foresee_passes(const Problem& problem, const Plan& plan) {
  if (!is_hard(problem) || (plan.method_name() == Newton::kName && Newton::is_worth(problem, plan))) return {};
  double cost = 0;
  for (const Task& task : problem.tasks) cost = std::max(cost, task.cost);
  const StoreInfo& info = problem.store->info();
  // Of a table unit length destroys what the columns say.
  const bool documents = !info.values->negative && !info.normalized && info.rows < problem.weights();
  return library_text(
      "this may take hundreds of passes: the cost times the mean squared length of a row is {:.2g}, and {} is slow "
      "above "
      "{:.0f}. Lower the `cost` to about {:.2g}, scale the columns{}, or run 'linblock tune', which begins with small "
      "costs",
      *difficulty(problem), plan.method_name(), hard_from(problem), cost * kEasy / *difficulty(problem),
      documents ? library_text(" (or the rows: `normalize`)") : std::string());
}

std::string describe_data(const Problem& problem) {
  const StoreInfo& info = problem.store->info();
  return fmt::format("{}, {} rows x {} features", name_of(problem.loss), grouped(info.rows), grouped(info.features()));
}

Choice choose_method(const Problem& problem, const Context& context, double tolerance) {
  const auto because = [&](const AnyMethod& method, std::string_view why) {
    return Choice{method, fmt::format("{}: {}, because {}", describe_data(problem), name_of(method), why)};
  };
  if (problem.free_bias) return because(Newton{}, "the bias is not penalized");
  const std::optional<double> found = difficulty(problem);
  const bool long_rows = is_hard(problem) && kFeaturesForSamples * problem.store->info().rows > problem.weights();
  if (!has_few_features(problem) && !long_rows) return because(Dual{}, "rows are few for each feature");
  const std::optional<Plan> newton = plan_for(problem, Newton{}, context);
  if (!newton) return because(Dual{}, kTooLittleMemory);
  if (long_rows && suits_long_rows(problem, *newton, context)) return because(Newton{}, "rows are long for this cost");
  if (!has_few_features(problem) || !has_samples(problem, *newton, context)) return because(Dual{}, kTooLittleMemory);
  const double short_rows = newton->rows == RowsHeld::streamed ? kShortStreamedRows : kShortRows;
  if (!is_smooth(problem) && tolerance >= kLooseTolerance && found && *found <= short_rows)
    return because(Dual{}, "rows are short for this cost");
  return because(Newton{}, "rows are many for each feature");
}

}  // namespace linblock
