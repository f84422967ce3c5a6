#include "objective/row_sums.h"

#include <array>
#include <cmath>
#include <stdexcept>
#include <type_traits>

#include "base/dot.h"
#include "base/error.h"
#include "objective/double_weights.h"
#include "objective/scaled_dual.h"

namespace linblock {

namespace {

constexpr size_t kNearCells = 65536;  // as many are near anyway

// Four partial sums, added up in a fixed order.
double dot_with(const Row& row, const double* weights) {
  std::array<double, 4> lanes{};
  size_t k = 0;
  const size_t count = row.index.size();
  for (; k + 4 <= count; k += 4)
    for (size_t lane = 0; lane < 4; ++lane) lanes[lane] += weights[row.index[k + lane]] * double{row.value[k + lane]};
  for (size_t lane = 0; k < count; ++k, ++lane) lanes[lane] += weights[row.index[k]] * double{row.value[k]};
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

double dot_with(const Row& row, const RowSums::Cell* cells) {
  std::array<double, 4> lanes{};
  size_t k = 0;
  const size_t count = row.index.size();
  for (; k + 4 <= count; k += 4)
    for (size_t lane = 0; lane < 4; ++lane)
      lanes[lane] += double{cells[row.index[k + lane]].pair.direction} * double{row.value[k + lane]};
  for (size_t lane = 0; k < count; ++k, ++lane)
    lanes[lane] += double{cells[row.index[k]].pair.direction} * double{row.value[k]};
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

// Only methods that asked for a smooth loss come here.
template <typename Visitor>
auto visit_smooth(const AnyLoss& any, const Visitor& visitor) {
  using Result = std::invoke_result_t<const Visitor&, const SquaredHinge&>;
  return std::visit(
      [&]<class L>(const L& loss) -> Result {
        if constexpr (SmoothLoss<L>)
          return visitor(loss);
        else
          throw std::logic_error(fmt::format("the {} loss has no curvature", L::kName));
      },
      any);
}

}  // namespace

RowSums::RowSums(const Problem& problem, const Task& task, size_t lanes)
    : problem_(problem), costs_(problem, task), begin_(row_begins(*problem.store)), lanes_(lanes) {
  rows_.resize(begin_.back());
  for (Lane& lane : lanes_) {
    lane.cells.resize(weights());
    lane.diagonal.resize(weights());
  }
}

void RowSums::begin(Pass pass) {
  pass_ = pass;
  for (Lane& lane : lanes_) lane.totals = {};
}

void RowSums::begin_evaluation(std::span<const double> weights, bool on_trial) {
  begin(on_trial ? Pass::trial : Pass::evaluation);
  at_ = weights;
  for (Lane& lane : lanes_) {
    std::fill(lane.cells.begin(), lane.cells.end(), Cell{.v = 0});
    std::fill(lane.diagonal.begin(), lane.diagonal.end(), 0.0F);
  }
}

void RowSums::begin_product() { begin(Pass::product); }

void RowSums::begin_losses(std::span<const float> weights) {
  begin(Pass::losses);
  rounded_ = weights;
  rounded_norm_ = std::sqrt(squared_norm_of(weights).value);
}

template <SmoothLoss L>
void RowSums::evaluate(const L& loss, const Chunk& chunk, std::span<RowState> states, Lane& lane) {
  Cell* const cells = lane.cells.data();
  for (size_t i = 0; i < chunk.rows(); ++i) {
    const Row row = chunk.row(i, lane.buffer);
    const double cost = costs_.cost(row);
    RowState& state = states[i];
    if (cost == 0) {
      state = {};
      continue;
    }
    const double sign = costs_.sign(row);
    double sum = dot_with(row, at_.data());
    if (problem_.has_bias()) sum += problem_.bias * at_.back();
    const double margin = sign * sum;
    const double alpha = -cost * loss.derivative(margin);
    const double curvature = cost * loss.curvature(margin);
    state.change = static_cast<float>(margin - double{state.margin});
    if (pass_ == Pass::evaluation) state.margin = static_cast<float>(margin);
    state.curvature = static_cast<float>(curvature);
    state.cost = static_cast<float>(cost);
    lane.totals.losses += cost * loss.value(margin);
    if (alpha == 0 && curvature == 0) continue;
    if constexpr (QuadraticDual<L>) {
      lane.totals.alphas.add(loss.dual_linear(alpha, cost));
      lane.totals.squares.add(loss.dual_square(alpha, cost));
      lane.totals.largest = std::max(lane.totals.largest, alpha / loss.largest_alpha(cost));
    } else {
      lane.totals.alphas.add(loss.dual_value(alpha, cost));
    }
    const double scale = sign * alpha;
    double norm2 = problem_.has_bias() ? problem_.bias * problem_.bias : 0;
    for (size_t k = 0; k < row.index.size(); ++k) {
      const double x = row.value[k];
      norm2 += x * x;
      cells[row.index[k]].v += scale * x;
      lane.diagonal[row.index[k]] += static_cast<float>(curvature * x * x);
    }
    if (problem_.has_bias()) {
      lane.cells.back().v += scale * problem_.bias;
      lane.diagonal.back() += static_cast<float>(curvature * problem_.bias * problem_.bias);
    }
    lane.totals.lengths += alpha * std::sqrt(norm2);
    ++lane.totals.rows;
  }
}

void RowSums::add(const Block& block, size_t lane) {
  for (size_t i = 0; i < block.chunks.size(); ++i) {
    const uint32_t number = block.numbers[i];
    if (number % lanes_.size() != lane) continue;
    const Chunk& chunk = *block.chunks[i];
    const std::span<RowState> states(rows_.data() + begin_[number], chunk.rows());
    switch (pass_) {
      case Pass::evaluation:
      case Pass::trial:
        visit_smooth(problem_.loss, [&](const auto& loss) { evaluate(loss, chunk, states, lanes_[lane]); });
        break;
      case Pass::product: multiply(chunk, states, lanes_[lane]); break;
      case Pass::losses: add_losses(chunk, lanes_[lane]); break;
    }
  }
}

// Rows without curvature, such as those beyond the margin, are not looked at.
void RowSums::multiply(const Chunk& chunk, std::span<const RowState> states, Lane& lane) const {
  Cell* const cells = lane.cells.data();
  const auto next_curved = [&](size_t from) {
    while (from < states.size() && states[from].curvature == 0) ++from;
    return from;
  };
  Row next;
  size_t which = 0;
  size_t at = next_curved(0);
  const bool far = lane.cells.size() > kNearCells;
  const auto bring_near = [&] {
    if (at == states.size()) return;
    next = chunk.row(at, lane.buffers[which ^= 1]);
    if (far)
      for (const uint32_t index : next.index) __builtin_prefetch(&cells[index], 1);
  };
  bring_near();
  while (at < states.size()) {
    const Row row = next;
    const size_t i = at;
    at = next_curved(at + 1);
    bring_near();
    double sum = dot_with(row, cells);
    if (problem_.has_bias()) sum += problem_.bias * double{lane.cells.back().pair.direction};
    const auto scale = static_cast<float>(double{states[i].curvature} * sum);
    for (size_t k = 0; k < row.index.size(); ++k) cells[row.index[k]].pair.product += scale * row.value[k];
    if (problem_.has_bias()) lane.cells.back().pair.product += scale * static_cast<float>(problem_.bias);
  }
}

void RowSums::add_losses(const Chunk& chunk, Lane& lane) const {
  const double norm = rounded_norm_;
  std::visit(
      [&](const auto& loss) {
        for (size_t i = 0; i < chunk.rows(); ++i) {
          const Row row = chunk.row(i, lane.buffer);
          const double cost = costs_.cost(row);
          if (cost == 0) continue;
          double sum = exact_dot(row.index, row.value, rounded_.data());
          if (problem_.has_bias()) sum += problem_.bias * double{rounded_.back()};
          lane.totals.saved_losses.add(loss, cost, costs_.sign(row) * sum,
                                       norm * std::sqrt(squared_norm(row, problem_.bias)), row.index.size());
        }
      },
      problem_.loss);
}

double RowSums::losses() const {
  double sum = 0;
  for (const Lane& lane : lanes_) sum += lane.totals.losses;
  return sum;
}

LossSum RowSums::saved_losses() const {
  LossSum sum;
  for (const Lane& lane : lanes_) sum.add(lane.totals.saved_losses);
  return sum;
}

double RowSums::dual(const SquaredNorm& v2) const {
  LongSum alphas;
  LongSum squares;
  double lengths = 0;
  double rows = 0;
  double largest = 0;
  for (const Lane& lane : lanes_) {
    largest = std::max(largest, lane.totals.largest);
    alphas.add(lane.totals.alphas);
    squares.add(lane.totals.squares);
    lengths += lane.totals.lengths;
    rows += lane.totals.rows;
  }
  const double wrong = sum_rounding(rows + static_cast<double>(lanes_.size())) * lengths;
  const ScaledDual dual{.v2 = v2.value, .v2_rounding = v2.rounding + (2 * std::sqrt(v2.value) + wrong) * wrong};
  const bool is_parabola = std::visit([]<class L>(const L&) { return QuadraticDual<L>; }, problem_.loss);
  return is_parabola ? dual.of_parabola(alphas, squares, largest_scale(largest)) : dual.of_values(alphas, 1);
}

void RowSums::accept() {
  for (RowState& row : rows_) row.margin += row.change;
}

double RowSums::line_derivative(double share) const {
  return visit_smooth(problem_.loss, [&](const auto& loss) {
    double sum = 0;
    for (const RowState& row : rows_)
      if (row.cost != 0)
        sum += double{row.cost} * double{row.change} * loss.derivative(double{row.margin} + share * double{row.change});
    return sum;
  });
}

void RowSums::restore(FieldReader& from, std::span<const double> weights, std::span<const float> rounded) {
  at_ = weights;
  rounded_ = rounded;
  rounded_norm_ = std::sqrt(squared_norm_of(rounded).value);
  visit_fields(*this, from);
}

}  // namespace linblock
