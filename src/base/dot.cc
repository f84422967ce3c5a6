#include "base/dot.h"

#include <algorithm>
#include <array>
#include <cmath>

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

double grid_dot_portable(std::span<const uint32_t> index, std::span<const float> value, const float* weights,
                         SumGrid grid) {
  double sum = 0;
  for (size_t k = 0; k < index.size(); ++k) sum += grid.round(double{weights[index[k]] * value[k]});
  return sum;
}

double grid_dot_and_add_portable(std::span<const uint32_t> index, std::span<const float> value, float scale,
                                 float* weights, SumGrid grid) {
  double sum = 0;
  for (size_t k = 0; k < index.size(); ++k) {
    float& weight = weights[index[k]];
    sum += grid.round(double{weight * value[k]});
    weight += scale * value[k];
  }
  return sum;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) inline __m256 gather(const uint32_t* i, const float* weights) {
  return _mm256_setr_ps(weights[i[0]], weights[i[1]], weights[i[2]], weights[i[3]], weights[i[4]], weights[i[5]],
                        weights[i[6]], weights[i[7]]);
}
__attribute__((target("avx2"))) inline void add_to_grid(__m256 product, __m256d offset, __m256d& low, __m256d& high) {
  low = _mm256_add_pd(low,
                      _mm256_sub_pd(_mm256_add_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(product)), offset), offset));
  high = _mm256_add_pd(
      high, _mm256_sub_pd(_mm256_add_pd(_mm256_cvtps_pd(_mm256_extractf128_ps(product, 1)), offset), offset));
}
__attribute__((target("avx2"))) inline double add_up(__m256d low, __m256d high) {
  std::array<double, 4> sums;
  _mm256_storeu_pd(sums.data(), _mm256_add_pd(low, high));
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);  // exact, so in any order
}

// The last few nonzeros of a row, filled up with others that count nothing.
struct LastFew {
  LastFew(std::span<const uint32_t> from, std::span<const float> values) : count(from.size()) {
    index.fill(from[0]);
    std::copy(from.begin(), from.end(), index.begin());
    std::copy(values.begin(), values.end(), value.begin());
  }
  size_t count;
  std::array<uint32_t, kLanes> index;
  std::array<float, kLanes> value{};
};

__attribute__((target("avx2"))) double grid_dot_avx2(std::span<const uint32_t> index, std::span<const float> value,
                                                     const float* weights, SumGrid grid) {
  const __m256d offset = _mm256_set1_pd(grid.offset());
  __m256d low = _mm256_setzero_pd();
  __m256d high = low;
  const auto add = [&](const uint32_t* i, const float* x) __attribute__((target("avx2"), always_inline)) {
    add_to_grid(_mm256_mul_ps(gather(i, weights), _mm256_loadu_ps(x)), offset, low, high);
  };
  size_t k = 0;
  for (; k + kLanes <= index.size(); k += kLanes) add(index.data() + k, value.data() + k);
  if (k < index.size()) {
    const LastFew last(index.subspan(k), value.subspan(k));
    add(last.index.data(), last.value.data());
  }
  return add_up(low, high);
}

__attribute__((target("avx2"))) double grid_dot_and_add_avx2(std::span<const uint32_t> index,
                                                             std::span<const float> value, float scale, float* weights,
                                                             SumGrid grid) {
  const __m256d offset = _mm256_set1_pd(grid.offset());
  const __m256 factor = _mm256_set1_ps(scale);
  __m256d low = _mm256_setzero_pd();
  __m256d high = low;
  std::array<float, kLanes> after;
  const auto add = [&](const uint32_t* i, const float* values) __attribute__((target("avx2"), always_inline)) {
    const __m256 before = gather(i, weights);
    const __m256 x = _mm256_loadu_ps(values);
    add_to_grid(_mm256_mul_ps(before, x), offset, low, high);
    _mm256_storeu_ps(after.data(), _mm256_add_ps(before, _mm256_mul_ps(factor, x)));
  };
  size_t k = 0;
  for (; k + kLanes <= index.size(); k += kLanes) {
    const uint32_t* const i = index.data() + k;
    add(i, value.data() + k);
    for (size_t lane = 0; lane < kLanes; ++lane) weights[i[lane]] = after[lane];
  }
  if (k < index.size()) {
    const LastFew last(index.subspan(k), value.subspan(k));
    add(last.index.data(), last.value.data());
    for (size_t lane = 0; lane < last.count; ++lane) weights[last.index[lane]] = after[lane];
  }
  return add_up(low, high);
}
#endif

}  // namespace

int exponent_above(double bound) {
  if (!(bound > 0)) return -900;
  if (!std::isfinite(bound)) return 900;
  int exponent = 0;
  std::frexp(bound, &exponent);
  return exponent;
}

double grid_dot(std::span<const uint32_t> index, std::span<const float> value, const float* weights, SumGrid grid) {
#if defined(__x86_64__)
  static const bool fast = __builtin_cpu_supports("avx2") != 0;
  if (fast) return grid_dot_avx2(index, value, weights, grid);
#endif
  return grid_dot_portable(index, value, weights, grid);
}

double grid_dot_and_add(std::span<const uint32_t> index, std::span<const float> value, float scale, float* weights,
                        SumGrid grid) {
#if defined(__x86_64__)
  static const bool fast = __builtin_cpu_supports("avx2") != 0;
  if (fast) return grid_dot_and_add_avx2(index, value, scale, weights, grid);
#endif
  return grid_dot_and_add_portable(index, value, scale, weights, grid);
}

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
