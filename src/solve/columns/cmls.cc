// CMLS: coordinate descent over features with steps that are never too long.
//
// Problem:  for each task, min over w  f(w) = 1/2 |w|^2 + sum of C_j max(0, 1 - y_j w.x_j)^2; in pass k (from 0) rows
//           beyond the margin count too, with b_j = c_k (1 - y_j w.x_j), c_k = max(0, 1 - k / 50)
// Update:   for feature i, within |z| <= Delta_i:  z = -D'(0) / U cut off at +-Delta_i, where U bounds D'' there;
//           w_i += z, w.x_j += z x_ji, Delta_i = 2 |z| + 0.001, at first 10
// Paper:    Zhang and Oles (2001), as Chang, Hsieh, Lin, "Coordinate descent method for large-scale L2-loss linear SVM"
//           give it: section 4.3, equations 28 to 30, Algorithm 6. Their U lacks the squares of the values: it is
//           1 + 2 sum of C_j x_ji^2 over rows with y_j w.x_j <= 1 + Delta_i |x_ji|, and c_k^2 times as much for others.
//           Orders: cyclic, and permuted for CMLSPER.
// Reads:    as primal_column.
//
// While c_k > 0 another problem is solved, so f may rise, and the gap is not looked at before pass 51.
#include "solve/columns/cmls.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "base/error.h"
#include "solve/columns/column_plan.h"
#include "solve/columns/column_solver.h"

namespace linblock {

namespace {

constexpr double kSmoothPasses = 50;
constexpr float kFirstRegion = 10;
constexpr double kLeastRegion = 0.001;

// D'(0) without the weight's own part, and U without the 1.
struct Bounded {
  double gradient = 0;
  double curvature = 0;
};

template <class Piece>
void add_bounded(const Piece& piece, const TaskRows& rows, double region, double smooth2, Bounded& sums) {
  with_weights(rows, [&](auto weighted) {
    for (size_t k = 0; k < piece.count; ++k) {
      const size_t place = piece.place(k);
      const Side& side = rows.side(place);
      const double x = piece.value(k);
      const double margin = side.sign * rows.state[place];
      if (!is_seen(margin)) continue;
      const double pull = 2 * rows.template cost<decltype(weighted)::value>(side, place) * x;
      const double slack = 1 - margin;
      sums.gradient -= pull * side.sign * slack * (slack > 0 ? 1 : smooth2);
      sums.curvature += pull * x * (margin <= 1 + region * std::abs(x) ? 1 : smooth2);
    }
  });
}

class CmlsDescent : public ColumnDescent {
 public:
  CmlsDescent(const Problem& problem, const Task& task, const ColumnRows& shared, const RowFacts& facts,
              Solution& solution, const std::atomic<bool>* stop)
      : ColumnDescent(problem, task, shared, facts, solution, stop), regions_(problem.weights(), kFirstRegion) {}

  // False: stopped half-way.
  bool solve_block(const Block& block, const ColumnVisits& visits) {
    const Stopwatch working;
    RowBuffer buffer;
    const double smooth2 = smooth() * smooth();
    for (size_t at = 0; at < visits.size(); ++at) {
      if (must_leave(at, working)) return false;
      visits.prefetch(block, at, task_.weights());
      step_along(task_.view(block, visits[at], buffer), smooth2);
    }
    return true;
  }

  // ColumnDerivatives of another problem say nothing about the gap of this one.
  double dual_values() const { return smooth() > 0 ? 0.5 * squared_weights() : ColumnDescent::dual_values(); }

  static void visit_fields(auto& self, auto&& field) {
    ColumnDescent::visit_fields(self, field);
    field("regions", std::span(self.regions_));
  }
  void save(FieldWriter& to) const { visit_fields(*this, to); }
  void restore(FieldReader& from) {
    visit_fields(*this, from);
    if (!std::all_of(regions_.begin(), regions_.end(),
                     [](float region) { return region >= 0 && std::isfinite(region); }))
      from.refuse_value("regions");
  }

 private:
  // c_k, k counted from 0.
  double smooth() const { return std::max(0.0, 1 - (pass_ - 1) / kSmoothPasses); }

  void step_along(const ColumnView& column, double smooth2) {
    const TaskRows rows = task_.rows();
    float& region = column.is_bias() ? regions_.back() : regions_[column.feature()];
    const auto bound = double{region};
    Bounded sums;
    column.for_each_piece([&](const auto& piece) { add_bounded(piece, rows, bound, smooth2, sums); });
    double& weight = task_.weight(column);
    const double gradient = weight + sums.gradient;
    met_gradient(gradient);
    const double newton = -gradient / (1 + sums.curvature);
    const double next = weight + std::clamp(newton, -bound, bound);
    const double step = next - weight;
    region = static_cast<float>(2 * std::abs(step) + kLeastRegion);
    if (step == 0) return;
    ++steps_.steps;
    if (std::abs(newton) <= bound) ++steps_.full;
    const PlainColumns<SquaredHinge> columns;
    assert(smooth2 > 0 || falls(columns, column, rows, weight, step));
    column.for_each_piece([&](const auto& piece) { columns.move(piece, rows, step); });
    weight = next;
  }

  static bool falls(const PlainColumns<SquaredHinge>& columns, const ColumnView& column, const TaskRows& rows,
                    double weight, double step) {
    LossChange all;
    column.for_each_piece([&](const auto& piece) {
      const LossChange change = columns.loss_change(piece, rows, step);
      all.change += change.change;
      all.size += change.size;
    });
    return !(step * (weight + 0.5 * step) + all.change > 1e-11 * (all.size + weight * weight + step * step));
  }

  std::vector<float> regions_;  // Delta, as the weights
};

}  // namespace

Plan Cmls::plan(const Problem& problem, const SolveOptions& options, const Context& context) const {
  return plan_columns({.bytes_per_weight = sizeof(float)}, problem, options, context);
}

std::unique_ptr<Solver> Cmls::make(const Setup& setup) const {
  return std::make_unique<ColumnSolver<CmlsDescent>>(
      setup, order, [&](const Task& task, const ColumnRows& shared, const RowFacts& facts, Solution& solution) {
        return CmlsDescent(setup.problem, task, shared, facts, solution, setup.context.stop);
      });
}

}  // namespace linblock
