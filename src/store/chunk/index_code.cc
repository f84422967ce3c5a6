#include "store/chunk/index_code.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>

#include "base/bytes.h"
#include "store/chunk/format.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace linblock {

namespace {

constexpr size_t kSets = format::kWidthSets.size();
constexpr uint32_t kInvalid = UINT32_MAX;

// Nibbles that a gap needs; 0 for a gap of 0.
unsigned nibbles_of(uint32_t gap) { return (static_cast<unsigned>(std::bit_width(gap)) + 3) / 4; }

// For each set: the code of a gap of k nibbles, 4 where none is wide enough.
constexpr auto kCodeOf = [] {
  std::array<std::array<uint8_t, 9>, kSets> table{};
  for (size_t set = 0; set < kSets; ++set)
    for (unsigned need = 0; need < 9; ++need) {
      uint8_t code = 0;
      while (code < 4 && format::kWidthSets[set][code] < need) ++code;
      table[set][need] = code;
    }
  return table;
}();

// Nibbles taken by the first `used` of the four gaps of a control byte.
unsigned group_nibbles(unsigned control, unsigned width_set, unsigned used = 4) {
  unsigned sum = 0;
  for (unsigned lane = 0; lane < used; ++lane) sum += format::kWidthSets[width_set][control >> (2 * lane) & 3];
  return sum;
}

}  // namespace

size_t index_code_limit(size_t count) { return (count + 3) / 4 + count * 4 + 16; }

size_t encode_indices(std::span<const uint32_t> index, unsigned width_set, unsigned char* out) {
  const auto& code_of = kCodeOf[width_set];
  const auto& widths = format::kWidthSets[width_set];
  unsigned char* control = out;
  unsigned char* data = out + (index.size() + 3) / 4;
  uint64_t pending = 0;  // bits not yet written for good, `filled` of them
  unsigned filled = 0;
  unsigned codes = 0;
  unsigned widest = 0;
  uint32_t next = 0;  // the smallest number that may follow
  for (size_t i = 0; i < index.size(); ++i) {
    const uint32_t gap = index[i] - next;
    next = index[i] + 1;
    const unsigned code = code_of[nibbles_of(gap)];
    widest |= code;
    codes |= (code & 3) << (2 * (i & 3));
    if ((i & 3) == 3) {
      *control++ = static_cast<unsigned char>(codes);
      codes = 0;
    }
    pending |= static_cast<uint64_t>(gap) << filled;
    filled += 4U * widths[code & 3];
    store_le(data, pending);
    const unsigned whole = filled / 8;
    data += whole;
    pending = whole == 8 ? 0 : pending >> (8 * whole);
    filled &= 7;
  }
  if ((widest & 4) != 0) return 0;
  if ((index.size() & 3) != 0) *control = static_cast<unsigned char>(codes);
  if (filled != 0) *data++ = static_cast<unsigned char>(pending);
  return static_cast<size_t>(data - out);
}

namespace detail {

uint32_t decode_indices_portable(std::span<const unsigned char> row, size_t count, unsigned width_set, uint32_t* out) {
  const size_t controls = (count + 3) / 4;
  if (row.size() < controls) return kInvalid;
  const auto& widths = format::kWidthSets[width_set];
  const unsigned char* data = row.data() + controls;
  const size_t available = 2 * (row.size() - controls);
  size_t position = 0;
  uint64_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    const unsigned width = widths[row[i / 4] >> (2 * (i & 3)) & 3];
    if (position + width > available) return kInvalid;
    const uint64_t window = load_le<uint64_t>(data + position / 2) >> (4 * (position & 1));
    const uint64_t gap = window & ((uint64_t{1} << (4 * width)) - 1);
    position += width;
    next += gap;
    if (next >= kInvalid) return kInvalid;
    out[i] = static_cast<uint32_t>(next++);
  }
  if (round_up<size_t>(position, 2) != available) return kInvalid;
  return count == 0 ? 0 : out[count - 1];
}

}  // namespace detail

#if defined(__x86_64__)

namespace {

// How to take four gaps from 16 bytes, for a control byte and a starting nibble that is even or odd.
struct alignas(32) Recipe {
  std::array<uint8_t, 16> shuffle;    // the four bytes that hold each gap
  std::array<uint8_t, 4> shift_left;  // drops what stands above the gap, then what stands below
  std::array<uint8_t, 4> shift_right;
};

struct Recipes {
  std::array<std::array<std::array<Recipe, 256>, 2>, kSets> of;
  std::array<std::array<uint8_t, 256>, kSets> nibbles;
};

const Recipes& recipes() {
  static const std::unique_ptr<Recipes> table = [] {
    auto made = std::make_unique<Recipes>();
    for (unsigned set = 0; set < kSets; ++set)
      for (unsigned control = 0; control < 256; ++control) {
        made->nibbles[set][control] = static_cast<uint8_t>(group_nibbles(control, set));
        for (unsigned odd = 0; odd < 2; ++odd) {
          Recipe& recipe = made->of[set][odd][control];
          unsigned position = odd;
          for (unsigned lane = 0; lane < 4; ++lane) {
            const unsigned width = format::kWidthSets[set][control >> (2 * lane) & 3];
            for (unsigned byte = 0; byte < 4; ++byte) {
              const unsigned from = position / 2 + byte;
              recipe.shuffle[lane * 4 + byte] = static_cast<uint8_t>(from < 16 && width > 0 ? from : 0x80);
            }
            const unsigned skipped = 4 * (position & 1);
            recipe.shift_right[lane] = static_cast<uint8_t>(width == 0 ? 0 : 32 - 4 * width);
            recipe.shift_left[lane] =
                static_cast<uint8_t>(width == 0 || 4 * width + skipped > 32 ? 0 : 32 - 4 * width - skipped);
            position += width;
          }
        }
      }
    return made;
  }();
  return *table;
}

__attribute__((target("avx2"))) uint32_t decode_indices_avx2(std::span<const unsigned char> row, size_t count,
                                                             unsigned width_set, uint32_t* out) {
  static const Recipes& all = recipes();
  const size_t controls = (count + 3) / 4;
  if (row.size() < controls) return kInvalid;
  const auto& table = all.of[width_set];
  const auto& nibbles = all.nibbles[width_set];
  const unsigned char* const data = row.data() + controls;
  const size_t available = 2 * (row.size() - controls);
  size_t position = 0;
  const __m128i ones = _mm_set1_epi32(1);
  __m128i before = _mm_setzero_si128();  // one more than the four numbers before, so that it begins with 0
  __m128i fallen = _mm_setzero_si128();  // where a number does not follow the one before it: gaps that lead around
  const auto group = [&](unsigned control) __attribute__((target("avx2"), always_inline)) {
    const Recipe& recipe = table[position & 1][control];
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + position / 2));
    const __m128i shuffle = _mm_load_si128(reinterpret_cast<const __m128i*>(recipe.shuffle.data()));
    const __m128i left = _mm_cvtepu8_epi32(_mm_cvtsi32_si128(load_le<int32_t>(recipe.shift_left.data())));
    const __m128i right = _mm_cvtepu8_epi32(_mm_cvtsi32_si128(load_le<int32_t>(recipe.shift_right.data())));
    __m128i gap = _mm_srlv_epi32(_mm_sllv_epi32(_mm_shuffle_epi8(bytes, shuffle), left), right);
    gap = _mm_add_epi32(gap, ones);
    gap = _mm_add_epi32(gap, _mm_slli_si128(gap, 4));
    gap = _mm_add_epi32(gap, _mm_slli_si128(gap, 8));
    return _mm_add_epi32(gap, _mm_shuffle_epi32(before, 0xff));
  };
  const auto not_above = [](__m128i next, __m128i previous) __attribute__((target("avx2"), always_inline)) {
    const __m128i shifted = _mm_alignr_epi8(next, previous, 12);
    return _mm_cmpeq_epi32(_mm_max_epu32(next, shifted), shifted);
  };
  const size_t full = count / 4;
  for (size_t i = 0; i < full; ++i) {
    const unsigned control = row[i];
    const __m128i ends = group(control);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 4 * i), _mm_sub_epi32(ends, ones));
    fallen = _mm_or_si128(fallen, not_above(ends, before));
    before = ends;
    position += nibbles[control];
    // The group has read at most 16 bytes from inside the row, which its buffer's slack covers.
    if (position > available) return kInvalid;
  }
  if (_mm_testz_si128(fallen, fallen) == 0) return kInvalid;
  if (const unsigned rest = count & 3; rest != 0) {
    const unsigned control = row[full];
    const __m128i ends = group(control);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 4 * full), _mm_sub_epi32(ends, ones));
    const auto wrong = static_cast<unsigned>(_mm_movemask_ps(_mm_castsi128_ps(not_above(ends, before))));
    if ((wrong & ((1U << rest) - 1)) != 0) return kInvalid;
    position += group_nibbles(control, width_set, rest);
  }
  // Numbers increase, so the last is the largest.
  const uint32_t result = count == 0 ? 0 : out[count - 1];
  return round_up<size_t>(position, 2) == available ? result : kInvalid;
}

}  // namespace

uint32_t decode_indices(std::span<const unsigned char> row, size_t count, unsigned width_set, uint32_t* out) {
  static const bool fast = __builtin_cpu_supports("avx2") != 0;
  return fast ? decode_indices_avx2(row, count, width_set, out)
              : detail::decode_indices_portable(row, count, width_set, out);
}

#else

uint32_t decode_indices(std::span<const unsigned char> row, size_t count, unsigned width_set, uint32_t* out) {
  return detail::decode_indices_portable(row, count, width_set, out);
}

#endif

void GapHistogram::add(std::span<const uint32_t> index) {
  uint32_t next = 0;
  for (const uint32_t number : index) {
    ++nibbles[nibbles_of(number - next)];
    next = number + 1;
  }
}

void GapHistogram::add_gap(uint32_t gap) { ++nibbles[nibbles_of(gap)]; }

unsigned best_width_set(const GapHistogram& histogram) {
  unsigned best = 0;
  uint64_t best_nibbles = UINT64_MAX;
  for (unsigned set = 0; set < kSets; ++set) {
    uint64_t sum = 0;
    for (unsigned need = 0; need < 9; ++need) {
      const unsigned code = kCodeOf[set][need];
      // A gap that does not fit turns its whole row into set 0; a hundred bytes is a fair price.
      sum += histogram.nibbles[need] * (code == 4 ? 200 : format::kWidthSets[set][code]);
    }
    if (sum < best_nibbles) {
      best_nibbles = sum;
      best = set;
    }
  }
  return best;
}

}  // namespace linblock
