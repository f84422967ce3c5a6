#include "base/dot.h"

#include <algorithm>
#include <array>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace linblock {

namespace {

constexpr size_t kLanes = 8;

float add_up(const std::array<float, kLanes>& lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// The last few, one to a lane, as the vector code would with the missing ones as zeros.
void add_rest(std::span<const uint32_t> index, std::span<const float> value, const float* weights, size_t from,
              std::array<float, kLanes>& lanes) {
  for (size_t k = from; k < index.size(); ++k) lanes[k - from] += weights[index[k]] * value[k];
}

float dot_portable(std::span<const uint32_t> index, std::span<const float> value, const float* weights) {
  std::array<float, kLanes> lanes{};
  size_t k = 0;
  for (; k + kLanes <= index.size(); k += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += weights[index[k + lane]] * value[k + lane];
  add_rest(index, value, weights, k, lanes);
  return add_up(lanes);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) float dot_avx2(std::span<const uint32_t> index, std::span<const float> value,
                                               const float* weights) {
  __m256 sum = _mm256_setzero_ps();
  size_t k = 0;
  for (; k + kLanes <= index.size(); k += kLanes) {
    const uint32_t* i = index.data() + k;
    // Eight plain loads: the gather instruction is slower on several processors, and reads indices as signed.
    const __m256 gathered = _mm256_setr_ps(weights[i[0]], weights[i[1]], weights[i[2]], weights[i[3]], weights[i[4]],
                                           weights[i[5]], weights[i[6]], weights[i[7]]);
    sum = _mm256_add_ps(sum, _mm256_mul_ps(gathered, _mm256_loadu_ps(value.data() + k)));
  }
  std::array<float, kLanes> lanes;
  _mm256_storeu_ps(lanes.data(), sum);
  add_rest(index, value, weights, k, lanes);
  return add_up(lanes);
}
#endif

template <typename Weight>
double exact_dot_of(std::span<const uint32_t> index, std::span<const float> value, const Weight* weights) {
  std::array<double, kLanes> lanes{};
  size_t k = 0;
  for (; k + kLanes <= index.size(); k += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] += double{weights[index[k + lane]]} * double{value[k + lane]};
  for (size_t lane = 0; k < index.size(); ++k, ++lane) lanes[lane] += double{weights[index[k]]} * double{value[k]};
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

template <typename Sum>
[[gnu::always_inline]] inline void dot_each_as(std::span<const uint32_t> index, std::span<const float> value,
                                               const float* weights, size_t width, Sum* __restrict out) {
  std::fill_n(out, width, Sum{0});
  for (size_t k = 0; k < index.size(); ++k) {
    const float* const row = weights + size_t{index[k]} * width;
    const auto x = static_cast<Sum>(value[k]);
    for (size_t c = 0; c < width; ++c) out[c] += x * static_cast<Sum>(row[c]);
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void dot_each_avx2(std::span<const uint32_t> index, std::span<const float> value,
                                                   const float* weights, size_t width, float* out) {
  dot_each_as(index, value, weights, width, out);
}
#endif

}  // namespace

void dot_each(std::span<const uint32_t> index, std::span<const float> value, const float* weights, size_t width,
              float* out) {
#if defined(__x86_64__)
  static const bool fast = __builtin_cpu_supports("avx2") != 0;
  if (fast) return dot_each_avx2(index, value, weights, width, out);
#endif
  dot_each_as(index, value, weights, width, out);
}

void exact_dot_each(std::span<const uint32_t> index, std::span<const float> value, const float* weights, size_t width,
                    double* out) {
  dot_each_as(index, value, weights, width, out);
}

double exact_dot(std::span<const uint32_t> index, std::span<const float> value, const float* weights) {
  return exact_dot_of(index, value, weights);
}

double exact_dot(std::span<const uint32_t> index, std::span<const float> value, const double* weights) {
  return exact_dot_of(index, value, weights);
}

double squared_norm(std::span<const float> value) {
  std::array<double, 4> lanes{};
  size_t k = 0;
  for (; k + 4 <= value.size(); k += 4)
    for (size_t lane = 0; lane < 4; ++lane) lanes[lane] += double{value[k + lane]} * double{value[k + lane]};
  for (size_t lane = 0; k < value.size(); ++k, ++lane) lanes[lane] += double{value[k]} * double{value[k]};
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

float dot(std::span<const uint32_t> index, std::span<const float> value, const float* weights) {
#if defined(__x86_64__)
  static const bool fast = __builtin_cpu_supports("avx2") != 0;
  if (fast) return dot_avx2(index, value, weights);
#endif
  return dot_portable(index, value, weights);
}

}  // namespace linblock
