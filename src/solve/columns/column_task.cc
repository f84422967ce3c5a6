#include "solve/columns/column_task.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>

#include "base/error.h"
#include "objective/scaled_dual.h"

namespace linblock {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The products w.x themselves.
AnyColumns first_columns(const AnyLoss& loss) {
  return std::visit(
      []<class L>(const L& chosen) -> AnyColumns {
        if constexpr (SmoothLoss<L>)
          return PlainColumns<L>{chosen};
        else
          throw std::logic_error(fmt::format("the {} loss has no curvature", L::kName));
      },
      loss);
}

template <class L, class Kind>
void take_kind(const L& loss, uint64_t number, std::optional<AnyColumns>& columns) {
  Kind kind;
  kind.loss = loss;
  const AnyColumns candidate = kind;
  if (candidate.index() == number) columns = candidate;
}

template <class L, class... Kind>
void take_kinds([[maybe_unused]] const L& loss, [[maybe_unused]] uint64_t number,
                std::type_identity<std::tuple<Kind...>>, [[maybe_unused]] std::optional<AnyColumns>& columns) {
  (take_kind<L, Kind>(loss, number, columns), ...);
}

// The kind with this number, with the loss as it is; nothing where the loss has no such kind.
std::optional<AnyColumns> columns_of(const AnyLoss& loss, uint64_t number) {
  std::optional<AnyColumns> columns;
  std::visit(
      [&]<class L>(const L& chosen) {
        take_kinds(chosen, number, std::type_identity<typename ColumnKinds<L>::Kinds>{}, columns);
      },
      loss);
  return columns;
}

}  // namespace

ColumnRows::ColumnRows(const Problem& problem, const RowFacts& facts) : weights(facts.weights) {
  if (problem.classes() > kMostClasses)
    fail(ErrorKind::input, {use("solver", "dual")},
         "'{}' has {} labels, and methods that go over columns know {} at most", problem.store->path(),
         problem.classes(), kMostClasses);
  const ClassNumbers numbers(problem.store->info());
  // A removed row may have a label that no other has; what it is does not matter.
  const size_t last = problem.classes() - 1;
  classes.reserve(facts.labels.size());
  for (const int32_t label : facts.labels) classes.push_back(static_cast<uint16_t>(std::min(numbers[label], last)));
}

ColumnTask::ColumnTask(const Problem& problem, const Task& task, const ColumnRows& shared, const RowFacts& facts,
                       Solution& solution)
    : problem_(problem),
      shared_(shared),
      features_(problem.store->features()),
      solution_(solution),
      columns_(first_columns(problem.loss)),
      weights_(problem.weights(), 0),
      states_(shared.classes.size(), 0) {
  const RowCost costs(problem, task);
  for (const auto& [label, rows] : problem.store->info().labels) {
    const Row row{.label = label};
    sides_.push_back({.sign = costs.sign(row), .cost = costs.cost_of_learned(row)});
  }
  for (size_t place = 0; place < states_.size(); ++place)
    if (task.held_out.holds(facts.ids[place]) || rows().cost_at(place) == 0)
      states_[place] = rows().side(place).sign * kInfinity;
}

void ColumnTask::keep_as(const AnyColumns& columns) {
  if (columns.index() == columns_.index()) return;
  const auto convert = [&](const auto& from, const auto& to) {
    for (double& state : states_) state = to.state_of(from.product_of(state));
  };
  std::visit(convert, columns_, columns);
  columns_ = columns;
}

bool ColumnTask::can_be_stored() const {
  const double most = std::log(StoredColumns::kMost);
  return std::all_of(states_.begin(), states_.end(),
                     [&](double product) { return std::abs(product) < most || std::isinf(product); });
}

double ColumnTask::squared_weights() const {
  double sum = 0;
  for (const double weight : weights_) sum += weight * weight;
  return sum;
}

LossSum ColumnTask::sum_of_losses() const {
  return std::visit(
      [&](const auto& columns) {
        const TaskRows rows = readable_rows();
        LossSum sum;
        for (size_t place = 0; place < rows.count; ++place) {
          const double margin = rows.side(place).sign * columns.product_of(rows.state[place]);
          if (is_seen(margin)) sum.add(columns.loss, rows.cost_at(place), margin, 0, 0);
        }
        return sum;
      },
      columns_);
}

void ColumnTask::begin_from(std::span<const float> weights) {
  if (problem_.has_bias()) weights_.back() = double{weights.back()};
}

void ColumnTask::take_weights(const Block& block, const ColumnVisits& visits, std::span<const float> weights) {
  for (size_t i = 0; i < visits.size(); ++i) {
    if (visits[i].is_bias()) continue;
    const auto feature = static_cast<uint32_t>(block.chunks[visits[i].chunk]->id(visits[i].row));
    weights_[feature] = double{weights[features_.number(feature)]};
  }
}

void ColumnTask::give_weights() const {
  solution_.weights.resize(weights_.size());
  const size_t features = problem_.store->info().feature_numbers();
  for (uint32_t index = 0; index < features; ++index)
    solution_.weights[features_.number(index)] = static_cast<float>(weights_[index]);
  if (problem_.has_bias()) solution_.weights.back() = static_cast<float>(weights_.back());
}

void ColumnTask::round_weights() {
  for (double& weight : weights_) weight = double{static_cast<float>(weight)};
  give_weights();
}

// Until end_products() the states are products, whatever they are otherwise.
void ColumnTask::begin_products() {
  const double first = problem_.has_bias() ? problem_.bias * weights_.back() : 0;
  std::visit(
      [&](const auto& columns) {
        for (double& state : states_) {
          const double product = columns.product_of(state);
          state = std::isinf(product) ? product : first;
        }
      },
      columns_);
}

void ColumnTask::add_products(const Block& block, const ColumnVisits& visits) {
  RowBuffer buffer;
  for (size_t i = 0; i < visits.size(); ++i) {
    if (visits[i].is_bias()) continue;  // it was the first
    const ColumnView column = view(block, visits[i], buffer);
    const double weight = weights_[column.feature()];
    if (weight == 0) continue;
    column.for_each_piece([&](const auto& piece) {
      for (size_t k = 0; k < piece.count; ++k) states_[piece.place(k)] += weight * piece.value(k);
    });
  }
}

void ColumnTask::end_products() {
  const AnyColumns wanted = columns_;
  columns_ = first_columns(problem_.loss);
  losses_ = sum_of_losses();
  if (std::holds_alternative<StoredColumns>(wanted) && !can_be_stored())
    keep_as(FastColumns{});
  else
    keep_as(wanted);
}

void ColumnTask::add_gradient(const Block& block, const ColumnVisits& visits) {
  RowBuffer buffer;
  std::visit(
      [&](const auto& columns) {
        for (size_t i = 0; i < visits.size(); ++i) {
          ColumnDerivatives sums;
          view(block, visits[i], buffer).for_each_piece([&](const auto& piece) {
            columns.add_derivatives(piece, rows(), sums);
          });
          v2_.add(sums.gradient * sums.gradient);  // the gradient is w - v
          lengths2_ += sums.bound;
        }
      },
      columns_);
}

// The duals are the very ones that add_derivatives saw, so that what a fast exponential lacks cannot make the bound
// untrue. How long rows are is known from columns only as the sum of cost |x|^2, which bounds sums of alpha |x|
// (Cauchy).
Certificate ColumnTask::certificate() const {
  const SquaredNorm w2 = squared_norm_of(std::span<const float>(solution_.weights));
  return std::visit(
      [&](const auto& columns) {
        const TaskRows rows = readable_rows();
        const auto for_each_share = [&](const auto& add) {
          for (size_t place = 0; place < rows.count; ++place) {
            const Side& side = rows.side(place);
            if (is_seen(side.sign * columns.product_of(rows.state[place])))
              add(columns.share(rows.state[place], side.sign), rows.cost_at(place));
          }
        };
        double shares2 = 0;
        for_each_share([&](double share, double cost) { shares2 += cost * share * share; });
        const double lengths = std::sqrt(shares2 * lengths2_);  // at least the sum of alpha |x|
        const double wrong = sum_rounding(static_cast<double>(rows.count)) * lengths;
        const double v2 = v2_.value();
        const double dual = best_scaled_dual(
            columns.loss,
            {.v2 = v2,
             .v2_rounding = v2_.rounding() + kRoundingsPerTerm * kUnit * v2 + (2 * std::sqrt(v2) + wrong) * wrong},
            for_each_share);
        // Each margin is a sum over columns. Of the curvature half counts.
        LossSum losses = losses_;
        const double curved = std::max(2.0, columns.loss.most_curvature());
        const double margins = product_rounding(static_cast<double>(weights_.size())) * std::sqrt(w2.value);
        losses.add_rounding(1.01 * (margins * lengths + 0.5 * curved * margins * margins * lengths2_));
        const Certificate sums =
            certificate_of(w2, losses, {}, {});  // its dual is what rounding may have done, below 0
        return Certificate{.primal = sums.primal, .dual = std::max(dual, solution_.known_dual) + sums.dual};
      },
      columns_);
}

void ColumnTask::save(FieldWriter& to) const {
  to("weights", weights_);
  to("states", states_);
  to("states_are", uint64_t{columns_.index()});
  if (std::isfinite(solution_.known_dual)) to("known_dual", solution_.known_dual);
}

void ColumnTask::restore(FieldReader& from) {
  from("weights", std::span(weights_));
  from("states", std::span(states_));
  const std::optional<AnyColumns> kind = columns_of(problem_.loss, from.take<uint64_t>("states_are"));
  if (!kind) from.refuse_value("states_are");
  columns_ = *kind;
  if (from.has("known_dual")) from("known_dual", solution_.known_dual);
  give_weights();
}

}  // namespace linblock
