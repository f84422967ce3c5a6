#include "solve/core/solver.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace linblock {

size_t weights_of_a_task(const Problem& problem, const AnyMethod& method) {
  return problem.weights() * (abilities_of(method).tasks == TaskKind::all_classes ? problem.classes() : 1);
}

std::string_view name_of(Termination termination) {
  constexpr std::array<std::string_view, 6> kNames = {"converged",   "pass_limit", "time_limit",
                                                      "interrupted", "stalled",    "ended"};
  return kNames[static_cast<size_t>(termination)];
}

void PassReport::add_task(double primal, double its_dual) {
  primal_estimate += primal;
  dual += its_dual;
  largest_gap = std::max(largest_gap, relative_gap(primal, its_dual));
}

Certificate Summary::total() const {
  Certificate sum;
  for (const Certificate& certificate : certificates)
    sum = {sum.primal + certificate.primal, sum.dual + certificate.dual};
  return sum;
}

TruncatedResult Summary::truncated_total() const {
  TruncatedResult sum;
  for (const TruncatedResult& result : truncated)
    sum = {sum.objective + result.objective, sum.outliers + result.outliers,
           std::max(sum.outer_steps, result.outer_steps)};
  return sum;
}

uint64_t Summary::support_vectors_total() const {
  return std::accumulate(support_vectors.begin(), support_vectors.end(), uint64_t{0});
}

double Summary::largest_gap() const {
  double largest = 0;
  for (const Certificate& certificate : certificates) largest = std::max(largest, certificate.gap());
  return largest;
}

}  // namespace linblock
