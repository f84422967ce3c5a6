// What a method that goes over columns keeps of one task: the weights, every row's state, and the certificate that can
// be made of them.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "objective/certificate.h"
#include "solve/columns/column_blocks.h"
#include "solve/columns/column_losses.h"
#include "solve/core/solver.h"
#include "store/columns/columns.h"

namespace linblock {

// Of the rows, what all tasks share.
struct ColumnRows {
  static constexpr size_t kMostClasses = size_t{UINT16_MAX} + 1;

  ColumnRows(const Problem& problem, const RowFacts& facts);
  static uint64_t bytes(uint64_t rows, bool weighted) {
    return rows * (sizeof(uint16_t) + (weighted ? sizeof(float) : 0));
  }

  std::vector<uint16_t> classes;  // by place, as numbers of labels
  std::vector<float> weights;     // empty: all 1
};

class ColumnTask {
 public:
  // Beside the weights that are the answer.
  static constexpr uint64_t kBytesPerWeight = sizeof(double);
  static constexpr uint64_t kBytesPerRow = sizeof(double);

  // At w = 0. The solution's weights are set by round(), and never looked at.
  ColumnTask(const Problem& problem, const Task& task, const ColumnRows& shared, const RowFacts& facts,
             Solution& solution);

  TaskRows rows() { return {states_.data(), shared_.classes.data(), sides_.data(), row_weights(), states_.size()}; }
  const AnyColumns& columns() const { return columns_; }
  // Every state becomes what these keep.
  void keep_as(const AnyColumns& columns);
  // The states that exponentials cannot hold (of w.x beyond about 640) are none.
  bool can_be_stored() const;

  double& weight(const ColumnView& column) { return column.is_bias() ? weights_.back() : weights_[column.feature()]; }
  ColumnView view(const Block& block, ColumnPlace place, RowBuffer& buffer) const {
    return {block, place, problem_.bias, states_.size(), buffer};
  }
  const double* weights() const { return weights_.data(); }
  double squared_weights() const;
  // Of all rows at the present states.
  double losses() const { return sum_of_losses().value(); }

  // A warm start from these weights, by feature numbers, in a reading that makes products; features that no row has
  // begin at 0, which is their best.
  void begin_from(std::span<const float> weights);
  void take_weights(const Block& block, const ColumnVisits& visits, std::span<const float> weights);
  // The answer so far: the weights as floats, by feature numbers.
  void give_weights() const;

  // In this order, with all blocks of a reading between two of them: the weights become what floats hold, and the
  // states are made anew from them; then the gradient there is summed, which gives the certificate of these weights.
  void round_weights();
  void begin_products();
  void add_products(const Block& block, const ColumnVisits& visits);
  void end_products();
  void begin_gradient() {
    v2_ = {};
    lengths2_ = 0;
  }
  void add_gradient(const Block& block, const ColumnVisits& visits);
  Certificate certificate() const;

  void save(FieldWriter& to) const;
  void restore(FieldReader& from);

 private:
  const float* row_weights() const { return shared_.weights.empty() ? nullptr : shared_.weights.data(); }
  LossSum sum_of_losses() const;
  TaskRows readable_rows() const { return const_cast<ColumnTask*>(this)->rows(); }

  const Problem& problem_;
  const ColumnRows& shared_;
  const FeatureMap& features_;
  Solution& solution_;
  AnyColumns columns_;
  std::vector<Side> sides_;      // by class
  std::vector<double> weights_;  // by original feature index; the bias last
  std::vector<double> states_;   // by place
  LossSum losses_;               // of the certificate: at the products, before they became states
  LongSum v2_;
  double lengths2_ = 0;  // sum of cost |x|^2
};

}  // namespace linblock
