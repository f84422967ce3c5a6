// Weights of several tasks side by side, feature by feature: looking one feature up serves all tasks of a group. A
// group's products have the bits that each task's own weights would give, so how tasks are grouped shows in no result.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/dot.h"
#include "base/team.h"
#include "store/chunk/row.h"

namespace linblock {

// The weights of some tasks: weight j of the c-th is at [j * width + c]. The last is that of the bias, where there is
// one (bias below 0: there is none).
class WeightGroup {
 public:
  // `weights`: of all of its tasks.
  WeightGroup(size_t first, size_t width, std::span<float> weights, double bias)
      : first_(first), width_(width), weights_(weights), bias_(bias) {}

  size_t first() const { return first_; }  // of all tasks
  size_t width() const { return width_; }

  // w.x of each, exact products summed in double.
  void exact_products(const Row& row, double* out) const;
  // The same as float sums with the bits of dot(); in double where a float would overflow.
  void products(const Row& row, double* out) const;
  // w += scales[c] * x.
  void add(const Row& row, const float* scales) const;

 private:
  std::span<const float> bias_weights() const { return std::span<const float>(weights_).last(width_); }

  size_t first_;
  size_t width_;
  std::span<float> weights_;
  double bias_;
};

class SideBySide {
 public:
  SideBySide() = default;
  // Of these tasks' weights, in groups of up to 8. At most `columns` of them are copied; the others stand alone, where
  // they are. Large groups are split while there are fewer of them than `parts`, so that every thread has one.
  SideBySide(std::vector<std::span<float>> tasks, size_t columns, size_t parts, double bias);

  bool is_of(std::span<const std::span<float>> tasks) const;
  std::span<const WeightGroup> groups() const { return groups_; }
  // From the tasks' own weights into the copies, and back.
  void load(const Team& team) const;
  void put_back(const Team& team) const;
  // In the weights that stand alone +0 for -0, as it is in copies: where another task of a group has a step, a -0 would
  // become +0.
  void make_zeros_positive() const;

 private:
  template <class Copy>
  void for_each_copied(const Team& team, const Copy& copy) const;

  std::vector<std::span<float>> tasks_;
  std::unique_ptr<float[]> copies_;
  std::vector<WeightGroup> groups_;
  std::vector<float*> copy_of_;  // by group; null: it stands alone
};

}  // namespace linblock
