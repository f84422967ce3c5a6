// A certificate of one task, as tests make it.
#pragma once

#include <vector>

#include "objective/certificate.h"

namespace linblock::test {

inline CertificateSums sums_of(const Certifier& certifier, const Problem& problem, std::vector<float> weights,
                               const Chunk& chunk, size_t first_row, size_t end_row, std::span<const double> duals) {
  CertificateSums sums;
  RowBuffer buffer;
  const WeightGroup group(0, 1, weights, problem.bias);
  Certifier::find_sums({&certifier, 1}, group, chunk, first_row, end_row, {&duals, 1}, buffer, {&sums, 1});
  return sums;
}

}  // namespace linblock::test
