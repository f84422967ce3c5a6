// Coordinate descent on the primal, one feature at a time.
//
// Problem:  for each task, min over w  f(w) = 1/2 |w|^2 + sum of C_j loss(y_j w.x_j); squared hinge and logistic
// Update:   for feature i:  d = -D'(0) / D''(0), D(t) = f(w + t e_i); w_i += lambda d, where lambda is the first of
//           1, 1/2, 1/4 ... with D(lambda d) - D(0) <= -0.01 (lambda d)^2; w.x_j += lambda d x_ji for the rows of
//           feature i. D is not looked at where lambda <= D''(0) / (H / 2 + 0.01), H = 1 + (the loss's largest
//           curvature) * sum of C_j x_ji^2, which vouches for that; for logistic, whose curvature is seldom near its
//           largest, also where it cannot grow so much within the step (column_step.h)
// Paper:    Chang, Hsieh, Lin, "Coordinate descent method for large-scale L2-loss linear SVM": Algorithms 1, 2 and 3,
//           equations 9 to 17; orders: permuted is CDPER, cyclic CD, once CDPERONE, online Algorithm 3. Logistic:
//           section 6.2, with stored exponentials. Stopping: section 5.3, then a certificate.
// Reads:    the columns once a pass, and twice for each certificate; nothing after the first pass where they fit.
//           Beyond the memory, which the paper leaves open, a pass draws a new order of chunks and cuts blocks from it;
//           an order is then that of the features within a block.
#include "solve/columns/primal.h"

#include <cassert>

#include "base/error.h"
#include "solve/columns/column_plan.h"
#include "solve/columns/column_solver.h"
#include "solve/columns/column_step.h"

namespace linblock {

namespace {

// Its states can be kept in other ways than as w.x.
bool has_exponentials(const AnyLoss& loss) {
  return std::visit([]<class L>(const L&) { return std::tuple_size_v<typename ColumnKinds<L>::Kinds> > 1; }, loss);
}

class PrimalDescent : public ColumnDescent {
 public:
  PrimalDescent(const Problem& problem, const Task& task, const ColumnRows& shared, const RowFacts& facts,
                Solution& solution, const std::atomic<bool>* stop, Exponential exponential)
      : ColumnDescent(problem, task, shared, facts, solution, stop),
        chosen_(!has_exponentials(problem.loss) || exponential != Exponential::automatic) {
    if (!has_exponentials(problem.loss)) return;
    if (exponential == Exponential::fast) task_.keep_as(FastColumns{});
    if (exponential == Exponential::stored) task_.keep_as(StoredColumns{});
  }

  // False: stopped half-way.
  bool solve_block(const Block& block, const ColumnVisits& visits) {
    if (!chosen_) choose(block);
    const Stopwatch working;
    RowBuffer buffer;
    size_t at = 0;
    bool goes_on = true;
    // Once more where exponentials have come to their end.
    while (goes_on && at < visits.size()) {
      const AnyColumns columns = task_.columns();
      std::visit(
          [&](const auto& kept) {
            while (at < visits.size() && task_.columns().index() == columns.index()) {
              if (must_leave(at, working)) {
                goes_on = false;
                return;
              }
              visits.prefetch(block, at, task_.weights());
              step_along(kept, task_.view(block, visits[at++], buffer));
            }
          },
          columns);
    }
    return goes_on;
  }

  static void visit_fields(auto& self, auto&& field) {
    ColumnDescent::visit_fields(self, field);
    field("exponential_chosen", self.chosen_);
  }
  void save(FieldWriter& to) const { visit_fields(*this, to); }
  void restore(FieldReader& from) { visit_fields(*this, from); }

 private:
  // From the first block: stored exponentials are right for any column, but only pay where values are equal.
  void choose(const Block& block) {
    const bool equal =
        std::all_of(block.chunks.begin(), block.chunks.end(), [](const Chunk* chunk) { return chunk->equal_values(); });
    if (equal && task_.can_be_stored())
      task_.keep_as(StoredColumns{});
    else
      task_.keep_as(FastColumns{});
    chosen_ = true;
  }

  template <class Columns>
  void step_along(const Columns& columns, const ColumnView& column) {
    const TaskRows rows = task_.rows();
    ColumnDerivatives sums;
    column.for_each_piece([&](const auto& piece) { columns.add_derivatives(piece, rows, sums); });
    double& weight = task_.weight(column);
    const auto change_of = [&](double step) {
      LossChange all;
      column.for_each_piece([&](const auto& piece) {
        const LossChange change = columns.loss_change(piece, rows, step);
        all.change += change.change;
        all.size += change.size;
      });
      return all;
    };
    const ColumnStep newton = newton_step(weight, sums, columns.bound(), change_of);
    met_gradient(newton.gradient);
    const double next = weight + newton.step;
    const double step = next - weight;  // what rounding leaves of it, so that rows and weights agree
    if (step == 0) return;
    ++steps_.steps;
    if (newton.full) ++steps_.full;
    steps_.evaluations += static_cast<uint64_t>(newton.evaluations);
    steps_.saved += static_cast<uint64_t>(newton.saved);
    assert(falls_enough(weight, step, sums, change_of(step), costs_along(column, rows)));
    move(columns, column, rows, step);
    weight = next;
  }

  // Of the rows that have this feature.
  static double costs_along(const ColumnView& column, const TaskRows& rows) {
    double sum = 0;
    column.for_each_piece([&](const auto& piece) {
      for (size_t k = 0; k < piece.count; ++k) sum += rows.cost_at(piece.place(k));
    });
    return sum;
  }
  // Equation 12, as far as rounding and a fast exponential's error let it be seen. Of numbers too large for double,
  // nothing is.
  static bool falls_enough(double weight, double step, const ColumnDerivatives& sums, const LossChange& losses,
                           double costs) {
    const double change = step * (weight + 0.5 * step) + losses.change;
    // A margin near 1 is wrong by the rounding of 1, and its loss by the root of loss * cost times as much.
    const double rounding = 1e-11 * (losses.size + weight * weight + step * step) +
                            1e-14 * std::sqrt(losses.size * costs) +
                            kFastExponentialError * std::abs(step) * (losses.size + sums.bound + std::abs(weight));
    return !(change > -kSufficientDecrease * step * step + rounding);
  }

  template <class Columns>
  void move(const Columns& columns, const ColumnView& column, const TaskRows& rows, double step) {
    if constexpr (std::is_same_v<Columns, StoredColumns>) {
      bool stored = true;
      column.for_each_piece([&](const auto& piece) {
        size_t done = stored ? columns.move_from(0, piece, rows, step) : 0;
        if (done == piece.count) return;
        // Too far for an exponential: from here on the rows keep w.x itself, from this very entry on.
        if (stored) task_.keep_as(FastColumns{});
        stored = false;
        for (; done < piece.count; ++done) rows.state[piece.place(done)] += step * piece.value(done);
      });
    } else {
      column.for_each_piece([&](const auto& piece) { columns.move(piece, rows, step); });
    }
  }

  bool chosen_;
};

}  // namespace

Plan Primal::plan(const Problem& problem, const SolveOptions& options, const Context& context) const {
  return plan_columns({.bytes_per_weight = 0}, problem, options, context);
}

std::unique_ptr<Solver> Primal::make(const Setup& setup) const {
  return std::make_unique<ColumnSolver<PrimalDescent>>(
      setup, order, [&](const Task& task, const ColumnRows& shared, const RowFacts& facts, Solution& solution) {
        return PrimalDescent(setup.problem, task, shared, facts, solution, setup.context.stop, exponential);
      });
}

}  // namespace linblock
