#include "solve/choose.h"

#include "base/bytes.h"
#include "base/error.h"
#include "solve/run.h"

namespace linblock {

namespace {

// Dual descent moves a number for each row: with many rows for each feature they all pull at the same few weights, and
// it needs many passes. Newton's passes do not depend on the rows.
constexpr uint64_t kManyRowsPerFeature = 64;

// With some room for what is not known yet, such as rows to test on: a choice must not be refused where another works.
constexpr uint64_t kOthersShare = 4;  // one part in so many

bool fits(const Problem& problem, const Method& method, Context context) {
  context.reserved_bytes += context.memory_bytes / kOthersShare;
  try {
    tasks_at_once(problem, {.method = method}, context);
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::memory) throw;
    return false;
  }
}

}  // namespace

std::string describe_data(const Problem& problem) {
  const StoreInfo& info = problem.store->info();
  return fmt::format("{}, {} rows x {} features", name_of(problem.loss), grouped(info.rows), grouped(info.features()));
}

Choice choose_method(const Problem& problem, const Context& context) {
  const StoreInfo& info = problem.store->info();
  const auto because = [&](const Method& method, std::string_view why) {
    return Choice{method, fmt::format("{}: {}, because {}", describe_data(problem), name_of(method), why)};
  };
  if (std::holds_alternative<Hinge>(problem.loss)) return because(DualBlock{}, "the hinge has a corner");
  if (info.rows < kManyRowsPerFeature * problem.weights()) return because(DualBlock{}, "features are many");
  if (!fits(problem, Newton{}, context)) return because(DualBlock{}, "the margins of newton do not fit the memory");
  return because(Newton{}, "features are few");
}

}  // namespace linblock
