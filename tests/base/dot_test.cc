#include "base/dot.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "base/random.h"

namespace linblock {
namespace {

struct Case {
  std::vector<uint32_t> index;
  std::vector<float> value;
  std::vector<float> weights;
};

Case random_case(size_t length, uint64_t seed) {
  Random random(seed, length);
  Case made{.index = {}, .value = {}, .weights = std::vector<float>(8 * length + 8)};
  for (float& weight : made.weights) weight = static_cast<float>(2 * random.unit() - 1);
  for (size_t i = 0; i < length; ++i) {
    made.index.push_back(static_cast<uint32_t>(8 * i + random.below(8)));
    made.value.push_back(static_cast<float>(2 * random.unit() - 1));
  }
  return made;
}

// Eight partial sums, element k in sum k mod 8, added up as the instructions for halving a vector would.
float eight_sums(const Case& made) {
  std::array<float, 8> sums{};
  for (size_t k = 0; k < made.index.size(); ++k) {
    volatile float product = made.weights[made.index[k]] * made.value[k];  // never fused with the addition
    sums[k % 8] += product;
  }
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

TEST(Dot, IsNearThePlainSumInDouble) {
  for (size_t length = 0; length <= 300; ++length) {
    const Case made = random_case(length, 1);
    double sum = 0;
    double size = 0;
    for (size_t k = 0; k < length; ++k) {
      const double term = static_cast<double>(made.weights[made.index[k]]) * made.value[k];
      sum += term;
      size += std::abs(term);
    }
    EXPECT_NEAR(dot(made.index, made.value, made.weights.data()), sum, 1e-6 * size) << length;
  }
}

TEST(Dot, GivesTheSameBitsOnEveryMachineForAllLengths) {
  for (size_t length = 0; length <= 40; ++length)
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const Case made = random_case(length, seed);
      EXPECT_EQ(std::bit_cast<uint32_t>(dot(made.index, made.value, made.weights.data())),
                std::bit_cast<uint32_t>(eight_sums(made)))
          << length << " numbers, seed " << seed;
    }
}

TEST(Dot, OfVectorsSideBySideHasTheBitsOfEachAlone) {
  for (size_t width = 1; width <= kMostSideBySide; ++width)
    for (size_t length = 0; length <= 40; ++length) {
      const Case made = random_case(length, width);
      const size_t features = made.weights.size();
      Random random(length, width);
      std::vector<float> beside(features * width);
      for (float& weight : beside) weight = static_cast<float>(2 * random.unit() - 1);
      std::vector<std::vector<float>> alone(width, std::vector<float>(features));
      for (size_t j = 0; j < features; ++j)
        for (size_t c = 0; c < width; ++c) alone[c][j] = beside[j * width + c];
      std::array<float, kMostSideBySide> sums{};
      std::array<double, kMostSideBySide> exact{};
      dot_side_by_side(made.index, made.value, beside.data(), width, sums.data());
      exact_dot_side_by_side(made.index, made.value, beside.data(), width, exact.data());
      std::array<float, kMostSideBySide> scales{};
      for (size_t c = 0; c < width; ++c) scales[c] = c == 1 ? 0.0F : static_cast<float>(random.unit());
      add_scaled_side_by_side(made.index, made.value, scales.data(), beside.data(), width);
      for (size_t c = 0; c < width; ++c) {
        EXPECT_EQ(std::bit_cast<uint32_t>(sums[c]),
                  std::bit_cast<uint32_t>(dot(made.index, made.value, alone[c].data())));
        EXPECT_EQ(std::bit_cast<uint64_t>(exact[c]),
                  std::bit_cast<uint64_t>(exact_dot(made.index, made.value, alone[c].data())));
        add_scaled(made.index, made.value, scales[c], alone[c].data());
        for (size_t j = 0; j < features; ++j)
          ASSERT_EQ(std::bit_cast<uint32_t>(beside[j * width + c]), std::bit_cast<uint32_t>(alone[c][j]));
      }
    }
}

TEST(Dot, IsZeroForAnEmptyRow) { EXPECT_EQ(dot({}, {}, static_cast<const float*>(nullptr)), 0.0F); }

TEST(Dot, ReadsRowsAtAnyAddress) {
  const Case made = random_case(33, 5);
  for (size_t skipped = 0; skipped < 17; ++skipped) {
    const Case rest{.index = {made.index.begin() + static_cast<ptrdiff_t>(skipped), made.index.end()},
                    .value = {made.value.begin() + static_cast<ptrdiff_t>(skipped), made.value.end()},
                    .weights = made.weights};
    EXPECT_EQ(dot(std::span(made.index).subspan(skipped), std::span(made.value).subspan(skipped), made.weights.data()),
              eight_sums(rest))
        << skipped;
  }
}

TEST(Dot, ReachesWeightsBeyondTheRangeOfSignedIndices) {
  // The address of a weight that cannot exist is never made: the pointer is moved back by as much.
  const std::vector<float> weights = {2, 3};
  const uint32_t far = 0x80000001U;
  const std::vector<uint32_t> index(9, far);
  const std::vector<float> value(9, 1);
  const auto* base = reinterpret_cast<const float*>(reinterpret_cast<uintptr_t>(weights.data() + 1) -
                                                    static_cast<uintptr_t>(far) * sizeof(float));
  EXPECT_EQ(dot(index, value, base), 27.0F);
}

TEST(ExactDot, RoundsOnlyTheSumAndOnlyInDouble) {
  for (size_t length = 0; length <= 100; ++length) {
    const Case made = random_case(length, 3);
    long double sum = 0;
    long double size = 0;
    for (size_t k = 0; k < length; ++k) {
      const long double term = static_cast<long double>(made.weights[made.index[k]]) * made.value[k];
      sum += term;
      size += std::abs(term);
    }
    EXPECT_LE(std::abs(exact_dot(made.index, made.value, made.weights.data()) - sum), 1e-15L * size) << length;
  }
}

TEST(ExactDot, KeepsWhatFloatsWouldLoseOrOverflow) {
  const std::vector<uint32_t> index = {0, 1, 2};
  EXPECT_EQ(exact_dot(index, std::vector<float>{1e8F, 1, -1e8F}, std::vector<float>{1, 1, 1}.data()), 1.0);
  EXPECT_EQ(exact_dot(index, std::vector<float>{3e38F, 1, 0}, std::vector<float>{10, 1, 1}.data()),
            static_cast<double>(3e38F) * 10 + 1);
}

// Several vectors side by side are as good as each alone, added up in the order of the row.
TEST(DotEach, IsTheProductWithEveryVector) {
  for (const size_t width : {1, 2, 3, 8, 17, 40}) {
    for (size_t length = 0; length <= 20; ++length) {
      const Case made = random_case(length, 5);
      Random random(6, width);
      std::vector<float> weights(made.weights.size() * width);
      for (float& weight : weights) weight = static_cast<float>(2 * random.unit() - 1);
      std::vector<float> sums(width, 77);
      std::vector<double> exact(width, 77);
      dot_each(made.index, made.value, weights.data(), width, sums.data());
      exact_dot_each(made.index, made.value, weights.data(), width, exact.data());
      for (size_t c = 0; c < width; ++c) {
        float sum = 0;
        double wide = 0;
        for (size_t k = 0; k < length; ++k) {
          sum += made.value[k] * weights[made.index[k] * width + c];
          wide += double{made.value[k]} * double{weights[made.index[k] * width + c]};
        }
        EXPECT_EQ(sums[c], sum) << width << " " << length;
        EXPECT_EQ(exact[c], wide) << width << " " << length;
      }
    }
  }
}

TEST(SquaredNorm, IsTheSumOfSquaresInDouble) {
  for (size_t length = 0; length <= 40; ++length) {
    const Case made = random_case(length, 4);
    long double sum = 0;
    for (const float value : made.value) sum += static_cast<long double>(value) * value;
    EXPECT_NEAR(squared_norm(made.value), static_cast<double>(sum), 1e-14 * static_cast<double>(sum)) << length;
  }
  EXPECT_EQ(squared_norm(std::vector<float>{3, 4}), 25.0);
  EXPECT_NEAR(squared_norm(std::vector<float>(5, 1e38F)) / 5e76, 1, 1e-6) << "no overflow";
}

TEST(AddScaled, TouchesTheWeightsOfTheRowOnly) {
  const std::vector<uint32_t> index = {1, 4};
  const std::vector<float> value = {0.5F, -2};
  std::vector<double> wide = {1, 1, 1, 1, 1};
  add_scaled(index, value, 10.0, wide.data());
  EXPECT_EQ(wide, (std::vector<double>{1, 6, 1, 1, -19}));
  std::vector<float> narrow = {1, 1, 1, 1, 1};
  add_scaled(index, value, 0.5F, narrow.data());
  EXPECT_EQ(narrow, (std::vector<float>{1, 1.25F, 1, 1, 0}));
}

// A row of any size and sign, and weights; what the sums of its parts are must not depend on the parts.
struct GridRow {
  std::vector<uint32_t> index;
  std::vector<float> value;
  std::vector<float> weights;
  double norms = 0;  // |w| |x|
};

GridRow grid_row(size_t count, double scale, uint64_t seed) {
  Random random(seed);
  GridRow row;
  row.weights.resize(3 * count + 1);
  double w2 = 0;
  double x2 = 0;
  for (float& weight : row.weights) {
    weight =
        static_cast<float>(scale * (random.unit() - 0.5) * std::pow(2.0, static_cast<double>(random.below(30)) - 15));
    w2 += double{weight} * double{weight};
  }
  for (size_t k = 0; k < count; ++k) {
    row.index.push_back(static_cast<uint32_t>(3 * k + random.below(3)));
    row.value.push_back(
        static_cast<float>((random.unit() - 0.5) * std::pow(2.0, static_cast<double>(random.below(20)) - 10)));
    x2 += double{row.value.back()} * double{row.value.back()};
  }
  row.norms = std::sqrt(w2) * std::sqrt(x2);
  return row;
}

TEST(GridDot, IsTheSameForAnyCutsOfARow) {
  for (const double scale : {1e-30, 1e-3, 1.0, 1e6, 1e30})
    for (const size_t count : {1, 7, 8, 9, 40, 1000}) {
      const GridRow row = grid_row(count, scale, count);
      const SumGrid grid(exponent_above(row.norms));
      const double whole = grid_dot(row.index, row.value, row.weights.data(), grid);
      Random random(count);
      for (int trial = 0; trial < 20; ++trial) {
        double parts = 0;
        for (size_t begin = 0; begin < count;) {
          const size_t size = std::min<size_t>(count - begin, 1 + random.below(trial == 0 ? 1 : 40));
          parts += grid_dot(std::span(row.index).subspan(begin, size), std::span(row.value).subspan(begin, size),
                            row.weights.data(), grid);
          begin += size;
        }
        ASSERT_EQ(parts, whole) << count << " nonzeros, weights of " << scale;
      }
    }
}

TEST(GridDot, IsNearTheExactSum) {
  for (const size_t count : {1, 8, 40, 1000}) {
    const GridRow row = grid_row(count, 1, 100 + count);
    const double sum = grid_dot(row.index, row.value, row.weights.data(), SumGrid(exponent_above(row.norms)));
    const double exact = exact_dot(row.index, row.value, row.weights.data());
    EXPECT_LE(std::abs(sum - exact), 0x1p-23 * row.norms) << count;
  }
}

TEST(GridDot, AddsARowAsTheScalarLoopDoesAndReturnsTheSumBefore) {
  for (const size_t count : {1, 3, 8, 15, 200}) {
    const GridRow row = grid_row(count, 1, 200 + count);
    const SumGrid grid(exponent_above(row.norms));
    std::vector<float> expected = row.weights;
    add_scaled(row.index, row.value, 0.37F, expected.data());
    std::vector<float> weights = row.weights;
    EXPECT_EQ(grid_dot_and_add(row.index, row.value, 0.37F, weights.data(), grid),
              grid_dot(row.index, row.value, row.weights.data(), grid));
    EXPECT_EQ(weights, expected) << count;
  }
}

TEST(GridDot, HasAnExponentAboveItsBound) {
  for (const double bound : {1e-300, 0.5, 1.0, 1.5, 2.0, 3e38, 1e200}) {
    const int exponent = exponent_above(bound);
    EXPECT_LT(bound, std::ldexp(1.0, exponent));
    EXPECT_GE(bound, std::ldexp(1.0, exponent - 2));
  }
  EXPECT_EQ(SumGrid(exponent_above(0)).round(0), 0);
}

}  // namespace
}  // namespace linblock
