// What a step along one feature sees: the rows as a task has them, the pieces of a column, and what is added up over
// its nonzeros.
//
// Rows that a task does not see (held out, removed, of no cost) have w.x = y * infinity: no loss, no slope, no
// curvature, and no step changes that, so that no loop needs to ask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace linblock {

// What a task makes of the rows of one class.
struct Side {
  double sign = 1;
  double cost = 0;
};

// All rows, by their place, as one task sees them.
struct TaskRows {
  double* state = nullptr;
  const uint16_t* classes = nullptr;  // the rows' classes, for all tasks
  const Side* sides = nullptr;        // of each class
  const float* weights = nullptr;     // of the rows; null: all 1
  size_t count = 0;

  const Side& side(size_t place) const { return sides[classes[place]]; }
  template <bool kWeighted>
  double cost(const Side& side, size_t place) const {
    return kWeighted ? side.cost * double{weights[place]} : side.cost;
  }
  double cost_at(size_t place) const {
    return weights != nullptr ? cost<true>(side(place), place) : cost<false>(side(place), place);
  }
};

// A piece of a column: of any values, of equal ones, or the bias, which every row has.
struct MixedPiece {
  const uint32_t* index;
  const float* values;
  size_t count;
  static constexpr bool kEqual = false;
  size_t place(size_t k) const { return index[k]; }
  double value(size_t k) const { return double{values[k]}; }
};
struct EqualPiece {
  const uint32_t* index;
  double constant;
  size_t count;
  static constexpr bool kEqual = true;
  size_t place(size_t k) const { return index[k]; }
  double value(size_t) const { return constant; }
};
struct BiasPiece {
  double constant;
  size_t count;
  static constexpr bool kEqual = true;
  size_t place(size_t k) const { return k; }
  double value(size_t) const { return constant; }
};

// D at 0, without the part of the weight itself: D', D'', sum of cost x^2, which bounds D'', and, for the logistic
// loss, the largest |x|.
struct ColumnDerivatives {
  double gradient = 0;
  double curvature = 0;
  double bound = 0;
  double largest = 0;
};

// How fast D'' can grow beyond 0: not beyond `most_curvature` of the loss times sum of cost x^2; and where the
// curvature is tame, changing by a factor of e^|change of w.x| at most, not beyond e^(|t| largest) times what it is.
struct CurvatureBound {
  double most_curvature = 2;
  bool tame = false;
};

// How much the losses change, and how large the numbers are that this is the difference of: a measure of its rounding.
struct LossChange {
  double change = 0;
  double size = 0;
};

// A place that is seen has a finite w.x.
inline bool is_seen(double margin) { return margin < std::numeric_limits<double>::infinity(); }

// Calls work(weighted) with what is known when the program is compiled.
template <class Work>
auto with_weights(const TaskRows& rows, const Work& work) {
  return rows.weights != nullptr ? work(std::true_type()) : work(std::false_type());
}

}  // namespace linblock
