// The inner loops of everything: a sparse row against a dense vector.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace linblock {

// The sum of weights[index[k]] * value[k]. Eight partial sums, added up in a fixed order: the same bits whatever
// vector instructions the machine has. Every index must be below the size of the weights.
float dot(std::span<const uint32_t> index, std::span<const float> value, const float* weights);
// The same products, exact, summed in double: for what must be right and not only fast.
double exact_dot(std::span<const uint32_t> index, std::span<const float> value, const float* weights);
double exact_dot(std::span<const uint32_t> index, std::span<const float> value, const double* weights);

// The same for `width` vectors that stand interleaved, weights[index[k] * width + c]: one memory access serves them
// all. Each sum is added up in the order of k.
void dot_each(std::span<const uint32_t> index, std::span<const float> value, const float* weights, size_t width,
              float* out);
void exact_dot_each(std::span<const uint32_t> index, std::span<const float> value, const float* weights, size_t width,
                    double* out);

// The same bits as dot() and exact_dot() of each of `width` such vectors, and add_scaled() to each of them. One memory
// access serves them all. `width`: at most 8.
inline constexpr size_t kMostSideBySide = 8;
void dot_side_by_side(std::span<const uint32_t> index, std::span<const float> value, const float* weights, size_t width,
                      float* out);
void exact_dot_side_by_side(std::span<const uint32_t> index, std::span<const float> value, const float* weights,
                            size_t width, double* out);
void add_scaled_side_by_side(std::span<const uint32_t> index, std::span<const float> value, const float* scales,
                             float* weights, size_t width);

// The sum of value[k]^2, in double: squares of 32-bit floats up to 1e38 do not overflow there.
double squared_norm(std::span<const float> value);

// weights[index[k]] += scale * value[k].
template <typename Weight>
void add_scaled(std::span<const uint32_t> index, std::span<const float> value, Weight scale, Weight* weights) {
  for (size_t k = 0; k < index.size(); ++k) weights[index[k]] += scale * static_cast<Weight>(value[k]);
}

// Sums whose bits do not depend on how their terms are grouped: every product is rounded to a multiple of a grid g, and
// sums of such multiples are exact as long as they stay below 2^53 g. The grid of a row x and weights w follows from a
// bound on |w| |x|, which no sum of some of the products can exceed: g = 2^-50 times a power of two above that bound.
// So a row may be cut into ranges of features, each summed by another thread, and the sum of the parts is the same
// double for any number of ranges.
class SumGrid {
 public:
  // |w| |x| is below 2^exponent.
  explicit SumGrid(int exponent)
      : round_(std::bit_cast<double>(static_cast<uint64_t>(1023 + std::clamp(exponent, -900, 900) + 2) << 52 |
                                     uint64_t{1} << 51)) {}

  // To the nearest multiple of g. Adding 1.5 * 2^52 g leaves no bit below g.
  double round(double product) const { return (product + round_) - round_; }
  double offset() const { return round_; }

 private:
  double round_;  // 1.5 * 2^52 g
};
// An exponent for SumGrid: `bound` is below 2^exponent_above(bound).
int exponent_above(double bound);

// The sum of weights[index[k]] * value[k], products rounded to float and then to the grid.
double grid_dot(std::span<const uint32_t> index, std::span<const float> value, const float* weights, SumGrid grid);
// The same sum before the step, and then weights[index[k]] += scale * value[k]. No index occurs twice.
double grid_dot_and_add(std::span<const uint32_t> index, std::span<const float> value, float scale, float* weights,
                        SumGrid grid);

}  // namespace linblock
