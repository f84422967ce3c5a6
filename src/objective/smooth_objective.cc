#include "objective/smooth_objective.h"

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
  std::array<double, 4> accumulators{};
  size_t k = 0;
  const size_t count = row.index.size();
  for (; k + 4 <= count; k += 4)
    for (size_t accumulator = 0; accumulator < 4; ++accumulator)
      accumulators[accumulator] += weights[row.index[k + accumulator]] * double{row.value[k + accumulator]};
  for (size_t accumulator = 0; k < count; ++k, ++accumulator)
    accumulators[accumulator] += weights[row.index[k]] * double{row.value[k]};
  return (accumulators[0] + accumulators[2]) + (accumulators[1] + accumulators[3]);
}

double dot_with(const Row& row, const SmoothObjective::Cell* cells) {
  std::array<double, 4> accumulators{};
  size_t k = 0;
  const size_t count = row.index.size();
  for (; k + 4 <= count; k += 4)
    for (size_t accumulator = 0; accumulator < 4; ++accumulator)
      accumulators[accumulator] +=
          double{cells[row.index[k + accumulator]].pair.direction} * double{row.value[k + accumulator]};
  for (size_t accumulator = 0; k < count; ++k, ++accumulator)
    accumulators[accumulator] += double{cells[row.index[k]].pair.direction} * double{row.value[k]};
  return (accumulators[0] + accumulators[2]) + (accumulators[1] + accumulators[3]);
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

SmoothObjective::SmoothObjective(const Problem& problem, const Task& task, size_t accumulators)

    : problem_(problem),
      costs_(problem, task),
      free_(free_weight(problem)),
      begin_(row_begins(*problem.store)),
      accumulators_(accumulators) {
  rows_.resize(begin_.back());
  for (Accumulator& accumulator : accumulators_) {
    accumulator.cells.resize(weights());
    accumulator.diagonal.resize(weights());
    if (problem.free_bias) accumulator.negative_v.resize(weights());
  }
}

void SmoothObjective::begin(Pass pass) {
  pass_ = pass;
  for (Accumulator& accumulator : accumulators_) accumulator.totals = {};
}

void SmoothObjective::begin_evaluation(std::span<const double> weights, bool on_trial) {
  begin(on_trial ? Pass::trial : Pass::evaluation);
  at_ = weights;
  for (Accumulator& accumulator : accumulators_) {
    std::fill(accumulator.cells.begin(), accumulator.cells.end(), Cell{.v = 0});
    std::fill(accumulator.diagonal.begin(), accumulator.diagonal.end(), 0.0F);
    std::fill(accumulator.negative_v.begin(), accumulator.negative_v.end(), 0.0);
    accumulator.balance = {};
  }
}

void SmoothObjective::begin_product() { begin(Pass::product); }

void SmoothObjective::begin_losses(std::span<const float> weights) {
  begin(Pass::losses);
  rounded_ = weights;
  rounded_norm_ = std::sqrt(squared_norm_of(weights).value);
}

template <SmoothLoss L>
void SmoothObjective::evaluate(const L& loss, const Chunk& chunk, std::span<RowState> states,
                               Accumulator& accumulator) {
  Cell* const cells = accumulator.cells.data();
  for (size_t i = 0; i < chunk.rows(); ++i) {
    const Row row = chunk.row(i, accumulator.buffer);
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
    accumulator.totals.losses += cost * loss.value(margin);
    if (problem_.free_bias)
      accumulator.balance.add(loss, sign, alpha, cost, std::sqrt(squared_norm(row, problem_.bias)));
    if (alpha == 0 && curvature == 0) continue;
    if (problem_.free_bias) {
      if (sign < 0) add_row(row, problem_.bias, -alpha, accumulator.negative_v);
    } else if constexpr (QuadraticDual<L>) {
      accumulator.totals.alphas.add(loss.dual_linear(alpha, cost));
      accumulator.totals.squares.add(loss.dual_square(alpha, cost));
      accumulator.totals.largest = std::max(accumulator.totals.largest, alpha / loss.largest_alpha(cost));
    } else {
      accumulator.totals.alphas.add(loss.dual_value(alpha, cost));
    }
    const double scale = sign * alpha;
    double norm2 = problem_.has_bias() ? problem_.bias * problem_.bias : 0;
    for (size_t k = 0; k < row.index.size(); ++k) {
      const double x = row.value[k];
      norm2 += x * x;
      cells[row.index[k]].v += scale * x;
      accumulator.diagonal[row.index[k]] += static_cast<float>(curvature * x * x);
    }
    if (problem_.has_bias()) {
      accumulator.cells.back().v += scale * problem_.bias;
      accumulator.diagonal.back() += static_cast<float>(curvature * problem_.bias * problem_.bias);
    }
    accumulator.totals.lengths += alpha * std::sqrt(norm2);
    ++accumulator.totals.rows;
  }
}

void SmoothObjective::add(const Block& block, size_t accumulator) {
  for (size_t i = 0; i < block.chunks.size(); ++i) {
    const uint32_t number = block.numbers[i];
    if (number % accumulators_.size() != accumulator) continue;
    const Chunk& chunk = *block.chunks[i];
    const std::span<RowState> states(rows_.data() + begin_[number], chunk.rows());
    switch (pass_) {
      case Pass::evaluation:
      case Pass::trial:
        visit_smooth(problem_.loss,
                     [&](const auto& loss) { evaluate(loss, chunk, states, accumulators_[accumulator]); });
        break;
      case Pass::product: multiply(chunk, states, accumulators_[accumulator]); break;
      case Pass::losses: add_losses(chunk, accumulators_[accumulator]); break;
    }
  }
}

// Rows without curvature, such as those beyond the margin, are not looked at.
void SmoothObjective::multiply(const Chunk& chunk, std::span<const RowState> states, Accumulator& accumulator) const {
  Cell* const cells = accumulator.cells.data();
  const auto next_curved = [&](size_t from) {
    while (from < states.size() && states[from].curvature == 0) ++from;
    return from;
  };
  Row next;
  size_t which = 0;
  size_t at = next_curved(0);
  const bool far = accumulator.cells.size() > kNearCells;
  const auto bring_near = [&] {
    if (at == states.size()) return;
    next = chunk.row(at, accumulator.buffers[which ^= 1]);
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
    if (problem_.has_bias()) sum += problem_.bias * double{accumulator.cells.back().pair.direction};
    const auto scale = static_cast<float>(double{states[i].curvature} * sum);
    for (size_t k = 0; k < row.index.size(); ++k) cells[row.index[k]].pair.product += scale * row.value[k];
    if (problem_.has_bias()) accumulator.cells.back().pair.product += scale * static_cast<float>(problem_.bias);
  }
}

void SmoothObjective::add_losses(const Chunk& chunk, Accumulator& accumulator) const {
  const double norm = rounded_norm_;
  std::visit(
      [&](const auto& loss) {
        for (size_t i = 0; i < chunk.rows(); ++i) {
          const Row row = chunk.row(i, accumulator.buffer);
          const double cost = costs_.cost(row);
          if (cost == 0) continue;
          double sum = exact_dot(row.index, row.value, rounded_.data());
          if (problem_.has_bias()) sum += problem_.bias * double{rounded_.back()};
          accumulator.totals.saved_losses.add(loss, cost, costs_.sign(row) * sum,
                                              norm * std::sqrt(squared_norm(row, problem_.bias)), row.index.size());
        }
      },
      problem_.loss);
}

double SmoothObjective::losses() const {
  double sum = 0;
  for (const Accumulator& accumulator : accumulators_) sum += accumulator.totals.losses;
  return sum;
}

LossSum SmoothObjective::saved_losses() const {
  LossSum sum;
  for (const Accumulator& accumulator : accumulators_) sum.add(accumulator.totals.saved_losses);
  return sum;
}

BalancedDual SmoothObjective::balanced() const {
  BalancedDual all;
  for (const Accumulator& accumulator : accumulators_) all.add(accumulator.balance);
  return all;
}

double SmoothObjective::most_diagonal_of_bias() const {
  const double curvature = visit_smooth(problem_.loss, [](const auto& loss) { return loss.most_curvature(); });
  return curvature * balanced().costs() * problem_.bias * problem_.bias;
}

double SmoothObjective::dual(const SquaredNorm& v2) const {
  if (problem_.free_bias) {
    const BalancedDual dual = balanced();
    const auto parts = static_cast<double>(accumulators_.size());
    return visit_smooth(problem_.loss, [&](const auto& loss) { return dual.bound(loss, dual.shares(), v2, parts); });
  }
  LongSum alphas;
  LongSum squares;
  double lengths = 0;
  double rows = 0;
  double largest = 0;
  for (const Accumulator& accumulator : accumulators_) {
    largest = std::max(largest, accumulator.totals.largest);
    alphas.add(accumulator.totals.alphas);
    squares.add(accumulator.totals.squares);
    lengths += accumulator.totals.lengths;
    rows += accumulator.totals.rows;
  }
  const double wrong = sum_rounding(rows + static_cast<double>(accumulators_.size())) * lengths;
  const ScaledDual dual{.v2 = v2.value, .v2_rounding = v2.rounding + (2 * std::sqrt(v2.value) + wrong) * wrong};
  const bool is_parabola = std::visit([]<class L>(const L&) { return QuadraticDual<L>; }, problem_.loss);
  return is_parabola ? dual.of_parabola(alphas, squares, largest_scale(largest)) : dual.of_values(alphas, 1);
}

void SmoothObjective::accept() {
  for (RowState& row : rows_) row.margin += row.change;
}

double SmoothObjective::line_derivative(double share) const {
  return visit_smooth(problem_.loss, [&](const auto& loss) {
    double sum = 0;
    for (const RowState& row : rows_)
      if (row.cost != 0)
        sum += double{row.cost} * double{row.change} * loss.derivative(double{row.margin} + share * double{row.change});
    return sum;
  });
}

void SmoothObjective::restore(FieldReader& from, std::span<const double> weights, std::span<const float> rounded) {
  at_ = weights;
  rounded_ = rounded;
  rounded_norm_ = std::sqrt(squared_norm_of(rounded).value);
  visit_fields(*this, from);
}

}  // namespace linblock
