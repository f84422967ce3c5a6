// Weights of several tasks side by side: products and steps are those of each task alone.
#include "objective/side_by_side.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "objective/certificate.h"

namespace linblock {
namespace {

constexpr size_t kFeatures = 300;

struct Weights {
  explicit Weights(size_t tasks) : of_task(tasks, std::vector<float>(kFeatures + 1)) {
    Random random(1, tasks);
    for (auto& weights : of_task)
      for (float& weight : weights) weight = static_cast<float>(2 * random.unit() - 1);
  }
  std::vector<std::span<float>> spans() { return {of_task.begin(), of_task.end()}; }

  std::vector<std::vector<float>> of_task;
};

struct SomeRow {
  explicit SomeRow(uint64_t seed) {
    Random random(seed, 2);
    for (uint32_t j = 0; j < kFeatures; ++j)
      if (random.below(8) == 0) {
        index.push_back(j);
        value.push_back(static_cast<float>(random.unit() - 0.5));
      }
  }
  Row view() const { return {.index = index, .value = value}; }

  std::vector<uint32_t> index;
  std::vector<float> value;
};

size_t tasks_of(const SideBySide& beside) {
  size_t tasks = 0;
  for (const WeightGroup& group : beside.groups()) {
    EXPECT_EQ(group.first(), tasks);
    tasks += group.width();
  }
  return tasks;
}

TEST(SideBySide, GivesEachTaskTheProductsAndStepsThatItWouldHaveAlone) {
  for (const double bias : {-1.0, 0.7})
    for (size_t tasks = 1; tasks <= 19; ++tasks)
      for (const size_t columns : {size_t{0}, size_t{1}, size_t{5}, tasks})
        for (const size_t parts : {1, 3, 16}) {
          Weights together(tasks);
          Weights alone(tasks);
          const SideBySide beside(together.spans(), columns, parts, bias);
          ASSERT_EQ(tasks_of(beside), tasks);
          EXPECT_GE(beside.groups().size(), std::min(parts, tasks));
          beside.load(2);
          for (const uint64_t seed : {1, 2, 3}) {
            const SomeRow row(seed);
            for (const WeightGroup& group : beside.groups()) {
              std::vector<double> exact(group.width());
              std::vector<double> sums(group.width());
              std::vector<float> scales(group.width(), 0);
              group.exact_products(row.view(), exact.data());
              group.products(row.view(), sums.data());
              for (size_t c = 0; c < group.width(); ++c) {
                std::vector<float>& own = alone.of_task[group.first() + c];
                EXPECT_EQ(sums[c], margin_of(row.view(), 1, bias, own));
                EXPECT_EQ(exact[c], exact_dot(row.index, row.value, own.data()) + (bias >= 0 ? bias * own.back() : 0));
                if ((c + seed) % 3 == 0) continue;
                scales[c] = static_cast<float>(sums[c]);
                add_scaled(row.index, row.value, scales[c], own.data());
                if (bias >= 0) own.back() += scales[c] * static_cast<float>(bias);
              }
              group.add(row.view(), scales.data());
            }
          }
          beside.put_back(3);
          EXPECT_EQ(together.of_task, alone.of_task);
        }
}

TEST(SideBySide, SplitsGroupsWhileThreadsHaveNothingToDo) {
  const auto widths = [](size_t tasks, size_t columns, size_t parts) {
    Weights weights(tasks);
    const SideBySide beside(weights.spans(), columns, parts, -1);
    std::vector<size_t> found;
    for (const WeightGroup& group : beside.groups()) found.push_back(group.width());
    return found;
  };
  EXPECT_EQ(widths(20, 20, 1), (std::vector<size_t>{8, 8, 4}));
  EXPECT_EQ(widths(5, 5, 1), (std::vector<size_t>{5}));
  EXPECT_EQ(widths(5, 5, 2), (std::vector<size_t>{4, 1}));
  EXPECT_EQ(widths(8, 8, 4), (std::vector<size_t>{2, 2, 2, 2}));
  EXPECT_EQ(widths(5, 5, 16), (std::vector<size_t>{1, 1, 1, 1, 1}));
  EXPECT_EQ(widths(5, 3, 1), (std::vector<size_t>{3, 1, 1}));
  EXPECT_EQ(widths(5, 0, 1), (std::vector<size_t>{1, 1, 1, 1, 1}));
}

// A float sum that overflows is made again in double, for the task that it belongs to alone.
TEST(SideBySide, GivesProductsThatAFloatCannotHold) {
  Weights weights(3);
  weights.of_task[1].assign(kFeatures + 1, std::numeric_limits<float>::max());
  const SomeRow row(1);
  for (const size_t columns : {0, 3}) {
    const SideBySide beside(weights.spans(), columns, 1, -1);
    beside.load(1);
    for (const WeightGroup& group : beside.groups()) {
      std::vector<double> sums(group.width());
      group.products(row.view(), sums.data());
      for (size_t c = 0; c < group.width(); ++c)
        EXPECT_EQ(sums[c], margin_of(row.view(), 1, -1, weights.of_task[group.first() + c]));
    }
  }
}

// A step of another task of the group adds 0 to this one's weights, which makes +0 of -0: so it is +0 everywhere.
TEST(SideBySide, HasNoNegativeZeros) {
  const SomeRow row(1);
  for (const size_t columns : {0, 4}) {
    Weights weights(4);
    for (auto& own : weights.of_task) own.assign(kFeatures + 1, -0.0F);
    const SideBySide beside(weights.spans(), columns, 1, -1);
    beside.make_zeros_positive();
    beside.load(1);
    for (const WeightGroup& group : beside.groups()) {
      const std::vector<float> none(group.width(), 0);
      group.add(row.view(), none.data());
    }
    beside.put_back(1);
    for (const auto& own : weights.of_task)
      for (const float weight : own) EXPECT_EQ(std::bit_cast<uint32_t>(weight), 0U);
  }
}

}  // namespace
}  // namespace linblock
