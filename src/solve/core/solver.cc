#include "solve/core/solver.h"

#include <algorithm>
#include <numeric>

namespace linblock {

size_t weights_of_a_task(const Problem& problem, const AnyMethod& method) {
  return problem.weights() * (abilities_of(method).tasks == TaskKind::all_classes ? problem.classes() : 1);
}

void PassReport::add_task(double primal, double its_dual) {
  primal_estimate += primal;
  dual += its_dual;
  largest_gap = std::max(largest_gap, relative_gap(primal, its_dual));
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

}  // namespace linblock
