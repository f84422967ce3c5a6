// The inner loop of everything: a sparse row times a dense vector.
#pragma once

#include <cstdint>
#include <span>

namespace linblock {

// The sum of weights[index[k]] * value[k]. Eight partial sums, added up in a fixed order: the same bits whatever
// vector instructions the machine has. Every index must be below the size of the weights.
float dot(std::span<const uint32_t> index, std::span<const float> value, const float* weights);

}  // namespace linblock
