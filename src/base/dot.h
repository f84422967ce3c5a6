// The inner loops of everything: a sparse row against a dense vector.
#pragma once

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

// The sum of value[k]^2, in double: squares of 32-bit floats up to 1e38 do not overflow there.
double squared_norm(std::span<const float> value);

// weights[index[k]] += scale * value[k].
template <typename Weight>
void add_scaled(std::span<const uint32_t> index, std::span<const float> value, Weight scale, Weight* weights) {
  for (size_t k = 0; k < index.size(); ++k) weights[index[k]] += scale * static_cast<Weight>(value[k]);
}

}  // namespace linblock
