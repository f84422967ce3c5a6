// A problem solved by a method of the list.
#pragma once

#include <vector>

#include "solve/core/pass.h"

namespace linblock {

// How the plan holds the rows.
Rows::As rows_of(const Problem& problem, const Context& context, const Plan& plan);
// A method at the beginning of its work. From here on `rows` are held as the plan has them.
std::unique_ptr<Solver> make_solver(const Problem& problem, const SolveOptions& options,
                                    std::vector<Solution>& solutions, const Context& context, Plan& plan, Rows& rows);

// Throws where the data or the method do not suit the problem.
void check_problem(const Problem& problem, const AnyMethod& method);
// The solver of truncated losses goes around the method's own.
bool is_wrapped(const Problem& problem, const AnyMethod& method);

// One pass after another, to the end, with nothing in between.
Summary solve(const Problem& problem, const SolveOptions& options, std::vector<Solution>& solutions,
              const Context& context = {});

// What the memory would be used for. Throws ErrorKind::memory, with numbers and remedies, where there is too little.
Plan make_plan(const Problem& problem, const SolveOptions& options, const Context& context);
inline Plan make_plan(const Problem& problem, const AnyMethod& method, const Context& context) {
  return make_plan(problem, SolveOptions{.method = method}, context);
}
// How many of the problem's tasks can be solved together: the most that fit, with their duals in memory if any do.
size_t tasks_at_once(const Problem& problem, const SolveOptions& options, const Context& context);

}  // namespace linblock
