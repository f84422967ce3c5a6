// Weights in double, the bias as their last where there is one (bias below 0: there is none): for solvers whose weights
// must stay the sum of alpha y x through many changes.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "base/dot.h"
#include "store/chunk/chunk.h"

namespace linblock {

// w.x
inline double score_of(const Row& row, double bias, std::span<const double> weights) {
  const double sum = exact_dot(row.index, row.value, weights.data());
  return bias >= 0 ? sum + bias * weights.back() : sum;
}

// weights += scale x
inline void add_row(const Row& row, double bias, double scale, std::span<double> weights) {
  add_scaled(row.index, row.value, scale, weights.data());
  if (bias >= 0) weights.back() += scale * bias;
}

inline double squared_norm(const Row& row, double bias) {
  return squared_norm(row.value) + (bias >= 0 ? bias * bias : 0);
}

inline double product_of(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t j = 0; j < a.size(); ++j) sum += a[j] * b[j];
  return sum;
}

inline double squared(std::span<const double> a) { return product_of(a, a); }

inline double distance(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t j = 0; j < a.size(); ++j) sum += (a[j] - b[j]) * (a[j] - b[j]);
  return std::sqrt(sum);
}

}  // namespace linblock
