#include "solve/choose.h"

#include "base/bytes.h"
#include "base/error.h"
#include "solve/solve.h"

namespace linblock {

namespace {

// Dual descent moves a number for each row: with many rows for each feature they all pull at the same few weights, and
// it needs many passes. Newton's passes do not depend on the rows; but they are a hundred and more, which is too many
// where each of them is a reading.
constexpr uint64_t kManyRowsPerFeature = 64;

// With some room for what is not known yet, such as rows to test on: a choice must not be refused where another works.
constexpr uint64_t kOthersShare = 4;  // one part in so many

// How rows would be held, for as many tasks as are worked on together; nothing: the memory does not do.
std::optional<RowsHeld> rows_held(Problem problem, const AnyMethod& method, Context context) {
  context.reserved_bytes += context.memory_bytes / kOthersShare;
  try {
    problem.tasks.resize(tasks_at_once(problem, {.method = method}, context));
    return make_plan(problem, method, context).rows;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::memory) throw;
    return std::nullopt;
  }
}

}  // namespace

std::string describe_data(const Problem& problem) {
  const StoreInfo& info = problem.store->info();
  return fmt::format("{}, {} rows x {} features", name_of(problem.loss), grouped(info.rows), grouped(info.features()));
}

Choice choose_method(const Problem& problem, const Context& context) {
  const StoreInfo& info = problem.store->info();
  const auto because = [&](const AnyMethod& method, std::string_view why) {
    return Choice{method, fmt::format("{}: {}, because {}", describe_data(problem), name_of(method), why)};
  };
  if (!is_smooth(problem.loss)) return because(Dual{}, fmt::format("the {} has a corner", name_of(problem.loss)));
  if (info.rows < kManyRowsPerFeature * problem.weights()) return because(Dual{}, "features are many");
  const std::optional<RowsHeld> rows = rows_held(problem, Newton{}, context);
  if (!rows) return because(Dual{}, "the margins of newton do not fit the memory");
  if (*rows == RowsHeld::streamed)
    return because(Dual{}, "the rows do not fit the memory, and newton reads them more often");
  return because(Newton{}, "features are few");
}

}  // namespace linblock
