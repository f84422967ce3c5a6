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

// Of `kWidth` of `stride` vectors that stand side by side, with the partial sums of dot() and exact_dot().
template <size_t kWidth, typename Sum>
void sums_beside(std::span<const uint32_t> index, std::span<const float> value, const float* weights, size_t stride,
                 Sum* out) {
  std::array<std::array<Sum, kWidth>, kLanes> lanes{};
  for (size_t k = 0; k < index.size(); ++k) {
    const float* const row = weights + index[k] * stride;
    for (size_t c = 0; c < kWidth; ++c) lanes[k % kLanes][c] += static_cast<Sum>(row[c]) * static_cast<Sum>(value[k]);
  }
  for (size_t c = 0; c < kWidth; ++c)
    out[c] = ((lanes[0][c] + lanes[4][c]) + (lanes[2][c] + lanes[6][c])) +
             ((lanes[1][c] + lanes[5][c]) + (lanes[3][c] + lanes[7][c]));
}

template <typename Sum>
void sums_beside_portable(std::span<const uint32_t> index, std::span<const float> value, const float* weights,
                          size_t width, Sum* out) {
  size_t c = 0;
  for (; c + 4 <= width; c += 4) sums_beside<4>(index, value, weights + c, width, out + c);
  for (; c < width; ++c) sums_beside<1>(index, value, weights + c, width, out + c);
}

void add_beside_portable(std::span<const uint32_t> index, std::span<const float> value, const float* scales,
                         float* weights, size_t width) {
  for (size_t k = 0; k < index.size(); ++k)
    for (size_t c = 0; c < width; ++c) weights[index[k] * width + c] += scales[c] * value[k];
}

#if defined(__x86_64__)
#define LINBLOCK_AVX2 __attribute__((target("avx2"), always_inline)) static inline

// Vectors of one number for each of some tasks, and what their sums are made with.
struct EightFloats {
  using Vector = __m256;
  LINBLOCK_AVX2 Vector zero() { return _mm256_setzero_ps(); }
  LINBLOCK_AVX2 Vector load(const float* from) { return _mm256_loadu_ps(from); }
  LINBLOCK_AVX2 Vector times(Vector a, float b) { return _mm256_mul_ps(a, _mm256_set1_ps(b)); }
  LINBLOCK_AVX2 Vector plus(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  LINBLOCK_AVX2 void store(float* to, Vector a) { _mm256_storeu_ps(to, a); }
};
struct FourFloats {
  using Vector = __m128;
  LINBLOCK_AVX2 Vector zero() { return _mm_setzero_ps(); }
  LINBLOCK_AVX2 Vector load(const float* from) { return _mm_loadu_ps(from); }
  LINBLOCK_AVX2 Vector times(Vector a, float b) { return _mm_mul_ps(a, _mm_set1_ps(b)); }
  LINBLOCK_AVX2 Vector plus(Vector a, Vector b) { return _mm_add_ps(a, b); }
  LINBLOCK_AVX2 void store(float* to, Vector a) { _mm_storeu_ps(to, a); }
};
struct TwoFloats : FourFloats {  // the upper two are zeros
  LINBLOCK_AVX2 Vector load(const float* from) { return _mm_castsi128_ps(_mm_loadu_si64(from)); }
  LINBLOCK_AVX2 void store(float* to, Vector a) { _mm_storeu_si64(to, _mm_castps_si128(a)); }
};
struct OneFloat : FourFloats {
  LINBLOCK_AVX2 Vector load(const float* from) { return _mm_load_ss(from); }
  LINBLOCK_AVX2 void store(float* to, Vector a) { _mm_store_ss(to, a); }
};
struct FourDoubles {
  using Vector = __m256d;
  LINBLOCK_AVX2 Vector zero() { return _mm256_setzero_pd(); }
  LINBLOCK_AVX2 Vector load(const float* from) { return _mm256_cvtps_pd(_mm_loadu_ps(from)); }
  LINBLOCK_AVX2 Vector times(Vector a, float b) { return _mm256_mul_pd(a, _mm256_set1_pd(double{b})); }
  LINBLOCK_AVX2 Vector plus(Vector a, Vector b) { return _mm256_add_pd(a, b); }
  LINBLOCK_AVX2 void store(double* to, Vector a) { _mm256_storeu_pd(to, a); }
};
struct TwoDoubles {
  using Vector = __m128d;
  LINBLOCK_AVX2 Vector zero() { return _mm_setzero_pd(); }
  LINBLOCK_AVX2 Vector load(const float* from) { return _mm_cvtps_pd(TwoFloats::load(from)); }
  LINBLOCK_AVX2 Vector times(Vector a, float b) { return _mm_mul_pd(a, _mm_set1_pd(double{b})); }
  LINBLOCK_AVX2 Vector plus(Vector a, Vector b) { return _mm_add_pd(a, b); }
  LINBLOCK_AVX2 void store(double* to, Vector a) { _mm_storeu_pd(to, a); }
};
struct OneDouble : TwoDoubles {
  LINBLOCK_AVX2 Vector load(const float* from) { return _mm_cvtps_pd(_mm_load_ss(from)); }
  LINBLOCK_AVX2 void store(double* to, Vector a) { _mm_store_sd(to, a); }
};

#undef LINBLOCK_AVX2

// `kStride`: of the vectors, where it is known beforehand.
template <class V, size_t kStride = 0, typename Sum>
__attribute__((target("avx2"))) void sums_beside_avx2(std::span<const uint32_t> index, std::span<const float> value,
                                                      const float* weights, size_t width, Sum* out) {
  const size_t stride = kStride > 0 ? kStride : width;
  typename V::Vector lanes[kLanes];
  for (auto& lane : lanes) lane = V::zero();
  const auto add = [&](size_t lane, size_t k) __attribute__((target("avx2"), always_inline)) {
    lanes[lane] = V::plus(lanes[lane], V::times(V::load(weights + index[k] * stride), value[k]));
  };
  const size_t whole = index.size() / kLanes * kLanes;
  for (size_t k = 0; k < whole; k += kLanes) {
#pragma GCC unroll 8
    for (size_t lane = 0; lane < kLanes; ++lane) add(lane, k + lane);
  }
#pragma GCC unroll 8
  for (size_t lane = 0; lane < kLanes - 1; ++lane)
    if (whole + lane < index.size()) add(lane, whole + lane);
  V::store(out, V::plus(V::plus(V::plus(lanes[0], lanes[4]), V::plus(lanes[2], lanes[6])),
                        V::plus(V::plus(lanes[1], lanes[5]), V::plus(lanes[3], lanes[7]))));
}

template <class V, size_t kStride = 0>
__attribute__((target("avx2"))) void add_beside_avx2(std::span<const uint32_t> index, std::span<const float> value,
                                                     const float* scales, float* weights, size_t width) {
  const size_t stride = kStride > 0 ? kStride : width;
  const auto scale = V::load(scales);
  for (size_t k = 0; k < index.size(); ++k) {
    float* const at = weights + index[k] * stride;
    V::store(at, V::plus(V::load(at), V::times(scale, value[k])));
  }
}

bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
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

void dot_side_by_side(std::span<const uint32_t> index, std::span<const float> value, const float* weights, size_t width,
                      float* out) {
  if (width == 1) {
    *out = dot(index, value, weights);
    return;
  }
#if defined(__x86_64__)
  if (has_avx2()) {
    if (width == 8) return sums_beside_avx2<EightFloats, 8>(index, value, weights, width, out);
    if (width == 4) return sums_beside_avx2<FourFloats, 4>(index, value, weights, width, out);
    // Part by part: what the first has loaded is in the first-level cache for the others.
    size_t c = 0;
    if ((width & 4) != 0) sums_beside_avx2<FourFloats>(index, value, weights, width, out), c = 4;
    if ((width & 2) != 0) sums_beside_avx2<TwoFloats>(index, value, weights + c, width, out + c), c += 2;
    if ((width & 1) != 0) sums_beside_avx2<OneFloat>(index, value, weights + c, width, out + c);
    return;
  }
#endif
  sums_beside_portable(index, value, weights, width, out);
}

void exact_dot_side_by_side(std::span<const uint32_t> index, std::span<const float> value, const float* weights,
                            size_t width, double* out) {
  if (width == 1) {
    *out = exact_dot(index, value, weights);
    return;
  }
#if defined(__x86_64__)
  if (has_avx2()) {
    // Four at once, whose partial sums stay in registers.
    size_t c = 0;
    for (; c + 4 <= width; c += 4) sums_beside_avx2<FourDoubles>(index, value, weights + c, width, out + c);
    if ((width & 2) != 0) sums_beside_avx2<TwoDoubles>(index, value, weights + c, width, out + c), c += 2;
    if ((width & 1) != 0) sums_beside_avx2<OneDouble>(index, value, weights + c, width, out + c);
    return;
  }
#endif
  sums_beside_portable(index, value, weights, width, out);
}

void add_scaled_side_by_side(std::span<const uint32_t> index, std::span<const float> value, const float* scales,
                             float* weights, size_t width) {
  if (width == 1) return add_scaled(index, value, *scales, weights);
#if defined(__x86_64__)
  if (has_avx2()) {
    if (width == 8) return add_beside_avx2<EightFloats, 8>(index, value, scales, weights, width);
    if (width == 4) return add_beside_avx2<FourFloats, 4>(index, value, scales, weights, width);
    size_t c = 0;
    if ((width & 4) != 0) add_beside_avx2<FourFloats>(index, value, scales, weights, width), c = 4;
    if ((width & 2) != 0) add_beside_avx2<TwoFloats>(index, value, scales + c, weights + c, width), c += 2;
    if ((width & 1) != 0) add_beside_avx2<OneFloat>(index, value, scales + c, weights + c, width);
    return;
  }
#endif
  add_beside_portable(index, value, scales, weights, width);
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
