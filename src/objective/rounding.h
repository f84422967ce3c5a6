// How far sums in double can be from the numbers they stand for. A certificate is only as true as its sums: with a cost
// of 1e16 the dual is a small difference of two huge numbers. Every bound is a hard one, for any order of the additions
// (Higham, "Accuracy and stability of numerical algorithms", 2002, sections 3.1, 4.2 and 4.3).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace linblock {

// The largest relative error of one operation.
inline constexpr double kUnit = 0x1p-53;
// Roundings that a term has of its own: of the row's cost, of products, of an exponential or a logarithm.
inline constexpr double kRoundingsPerTerm = 16;

// The error of a sum of so many terms, each with so many roundings, relative to the sum of their sizes.
inline double sum_rounding(double terms, double of_each = kRoundingsPerTerm) {
  const double error = (terms + of_each) * kUnit;
  return error < 0.5 ? error / (1 - error) : std::numeric_limits<double>::infinity();
}
// The same for w.x with the bias: a product of two floats is exact in double, one of a float and a double nearly so.
inline double product_rounding(double terms) { return sum_rounding(terms, 4); }

// A sum as exact as if it were made with twice as many digits (Neumaier 1974).
class LongSum {
 public:
  void add(double term) {
    const double next = sum_ + term;
    rest_ += std::abs(sum_) >= std::abs(term) ? (sum_ - next) + term : (term - next) + sum_;
    sum_ = next;
    sizes_ += std::abs(term);
    ++terms_;
  }
  void add(const LongSum& other) {
    const double terms = terms_ + other.terms_;
    const double sizes = sizes_ + other.sizes_;
    add(other.sum_);
    rest_ += other.rest_;
    terms_ = terms + 2;
    sizes_ = sizes;
  }
  double value() const { return sum_ + rest_; }
  // Without the roundings of the terms themselves.
  double rounding() const {
    const double relative = sum_rounding(terms_);
    return 2 * kUnit * std::abs(value()) + relative * relative * sizes_;
  }

  static void visit_fields(auto& self, auto&& field) {
    field("sum", self.sum_);
    field("rest", self.rest_);
    field("sizes", self.sizes_);
    field("terms", self.terms_);
  }

 private:
  double sum_ = 0;
  double rest_ = 0;
  double sizes_ = 0;
  double terms_ = 0;
};

// |a|^2, and a bound of its rounding.
struct SquaredNorm {
  double value = 0;
  double rounding = 0;

  SquaredNorm& operator+=(const SquaredNorm& other) {
    value += other.value;
    rounding += other.rounding + kUnit * value;
    return *this;
  }
};

// In pieces, whose sums are added up: the rounding grows with the root of the length, about.
template <typename Number>
SquaredNorm squared_norm_of(std::span<const Number> numbers) {
  constexpr size_t kPiece = 1024;
  double sum = 0;
  for (size_t begin = 0; begin < numbers.size(); begin += kPiece) {
    const size_t end = std::min(numbers.size(), begin + kPiece);
    double part = 0;
    for (size_t i = begin; i < end; ++i) part += static_cast<double>(numbers[i]) * static_cast<double>(numbers[i]);
    sum += part;
  }
  const double pieces = static_cast<double>(numbers.size()) / static_cast<double>(kPiece);
  return {sum, sum_rounding(static_cast<double>(kPiece) + pieces) * sum};
}

// The sum of cost * loss(margin) over rows.
class LossSum {
 public:
  // `reach`: |w| |x|, and `terms`: how many products w.x is the sum of. They bound how wrong the margin is.
  template <class L>
  void add(const L& loss, double cost, double margin, double reach, size_t terms) {
    const double wrong = product_rounding(static_cast<double>(terms)) * reach;
    const double value = loss.value(margin);
    sum_.add(cost * value);
    // Losses are convex and fall with the margin, so none is steeper to the right of a point than at it.
    rounding_ += cost * (-loss.derivative(margin - wrong) * wrong + kRoundingsPerTerm * kUnit * value);
  }
  // A row's loss times its cost, and a bound of its rounding.
  void add(double loss, double rounding) {
    sum_.add(loss);
    rounding_ += rounding;
  }
  void add(const LossSum& other) {
    sum_.add(other.sum_);
    rounding_ += other.rounding_;
  }
  // A rounding that is known from elsewhere.
  void add_rounding(double rounding) { rounding_ += rounding; }
  double value() const { return sum_.value(); }
  double rounding() const { return rounding_ + sum_.rounding(); }

  static void visit_fields(auto& self, auto&& field) {
    field("sum", self.sum_);
    field("rounding", self.rounding_);
  }

 private:
  LongSum sum_;
  double rounding_ = 0;
};

// The sum of dual values over rows, and how wrong their v = sum of alpha y x can be.
class DualSum {
 public:
  // A row's alpha, which is not 0, its part of the dual, and |x|.
  void add(double alpha, double value, double norm) {
    values_.add(value);
    sizes_ += 2 * alpha + std::abs(value);
    lengths_ += alpha * norm;
    ++rows_;
  }
  void add(const DualSum& other) {
    values_.add(other.values_);
    sizes_ += other.sizes_;
    lengths_ += other.lengths_;
    rows_ += other.rows_;
  }
  double values() const { return values_.value(); }
  double values_rounding() const { return values_.rounding() + kRoundingsPerTerm * kUnit * sizes_; }
  // The length of what rounding has added to v. `parts`: v is the sum of so many that were made apart.
  double v_rounding(double parts = 1) const { return sum_rounding(rows_ + parts) * lengths_; }
  // The same for |v|^2.
  double v2_rounding(const SquaredNorm& v2, double parts = 1) const {
    const double wrong = v_rounding(parts);
    return v2.rounding + (2 * std::sqrt(v2.value) + wrong) * wrong;
  }

 private:
  LongSum values_;
  double sizes_ = 0;
  double lengths_ = 0;
  double rows_ = 0;
};

}  // namespace linblock
