#include "solve/newton/local_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "objective/double_weights.h"
#include "objective/free_bias.h"

namespace linblock {

namespace {

constexpr int kMostSteps = 10;
constexpr double kInnerTolerance = 0.1;  // of the gradient, relative to the first
constexpr double kComplementary = 0.09;  // of the gradient's square, where centres decide (a third of what moves them)
constexpr double kLeastProducts = 3;     // before a factorization is thought of
constexpr size_t kMostProducts = 1000;
constexpr size_t kMostFactoredProducts = 50;
constexpr int kHalvings = 40;   // in a line search
constexpr double kFlat = 1e-3;  // of the slope at its beginning
constexpr uint64_t kNonzerosPerPart = uint64_t{1} << 15;
constexpr uint64_t kPartBytes = uint64_t{1} << 20;
constexpr size_t kPiece = 256;            // rows
constexpr double kRidge = 1e-12;          // of the Hessian's trace, for a weight without a penalty ...
constexpr double kRidgeOfNothing = 1e-3;  // ... or this, if no row is curved
constexpr double kBalanced = 1e-11;       // of the alphas: what both sides may differ by
constexpr int kBiasSteps = 60;
constexpr int kBiasReaches = 30;  // doublings in search of a bias that is too large

}  // namespace

FactorPool::FactorPool(size_t count, size_t weights) : mutexes_(count) {
  for (size_t i = 0; i < count; ++i) factors_.emplace_back(weights);
}

void FactorPool::with(size_t task, const std::function<void(Factor&)>& work) {
  const size_t which = task % factors_.size();
  const std::lock_guard lock(mutexes_[which]);
  work(factors_[which]);
}

size_t LocalModel::parts_of(uint64_t weights) {
  return std::clamp<size_t>(kPartBytes / (sizeof(double) * std::max<uint64_t>(1, weights)), 1, kMostParts);
}

// From the rows alone: it decides the order of sums.
size_t LocalModel::parts() const {
  return std::clamp<size_t>(rows_.nonzeros() / kNonzerosPerPart, 1, parts_of(problem_.weights()));
}

LocalModel::LocalModel(const Problem& problem, const RowSample& rows, const Team& team)
    : problem_(problem), rows_(rows), team_(team), free_(free_weight(problem)) {
  for (auto* vector :
       {&at_, &b_, &lacking_, &pulled_, &gradient_, &step_, &residual_, &direction_, &product_, &solved_, &diagonal_})
    vector->resize(problem.weights());
}

void LocalModel::sum_over(std::span<const uint32_t> rows, std::span<double> out,
                          const std::function<void(uint32_t, const Row&, std::span<double>)>& add) {
  const size_t count = parts();
  const auto add_part = [&](size_t part, std::span<double> to) {
    RowBuffer buffer;
    const size_t end = rows.size() * (part + 1) / count;
    for (size_t i = rows.size() * part / count; i < end; ++i) add(rows[i], rows_.row(rows[i], buffer), to);
  };
  if (count == 1) return add_part(0, out);
  sums_.assign(count * out.size(), 0);
  team_.for_each(count, [&](size_t part) { add_part(part, std::span(sums_).subspan(part * out.size(), out.size())); });
  for (size_t part = 0; part < count; ++part)
    for (size_t j = 0; j < out.size(); ++j) out[j] += sums_[part * out.size() + j];
}

void LocalModel::for_rows(std::span<const uint32_t> rows, const std::function<void(uint32_t, const Row&)>& work) {
  const auto do_some = [&](size_t begin, size_t end) {
    RowBuffer buffer;
    for (size_t i = begin; i < end; ++i) work(rows[i], rows_.row(rows[i], buffer));
  };
  if (parts() == 1) return do_some(0, rows.size());
  team_.for_ranges(rows.size(), kPiece, do_some);
}

// At the margins as they are: alphas, curvatures, and what the alphas pull at the weights.
void LocalModel::update_alphas() {
  curved_.clear();
  curved_nonzeros_ = 0;
  curved_squares_ = 0;
  std::visit(
      [&](const auto& loss) {
        const auto update = [&](size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) {
            const RowSample::Known& known = rows_.known(i);
            const double centre = start_.centres_moved ? known.centre_if_moved : known.centre;
            const RowTerm term = slope_of(loss, margin_[i], known.cost, start_.penalty, centre);
            alpha_[i] = term.alpha;
            curvature_[i] = static_cast<float>(rows_.scale(i) * term.curvature);
          }
        };
        if (parts() == 1)
          update(0, rows_.size());
        else
          team_.for_ranges(rows_.size(), kPiece, update);
      },
      problem_.loss);
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    if (!(curvature_[i] > 0)) continue;
    curved_.push_back(i);
    const auto nonzeros = static_cast<double>(rows_.nonzeros(i));
    curved_nonzeros_ += nonzeros;
    curved_squares_ += nonzeros * nonzeros;
  }
  std::fill(pulled_.begin(), pulled_.end(), 0.0);
  sum_over(all_, pulled_, [&](uint32_t i, const Row& row, std::span<double> out) {
    if (alpha_[i] != 0) add_row(row, problem_.bias, rows_.scale(i) * double{rows_.known(i).sign} * alpha_[i], out);
  });
}

double LocalModel::complementarity() const {
  double sum = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const double slack = 1 - margin_[i];
    sum += rows_.scale(i) * (slack > 0 ? (rows_.known(i).cost - alpha_[i]) * slack : -alpha_[i] * slack);
  }
  return sum;
}

void LocalModel::minimize(const Start& start, FactorPool& factors, size_t task, double& products,
                          const std::function<bool()>& stopped) {
  start_ = start;
  const size_t count = rows_.size();
  all_.resize(count);
  for (uint32_t i = 0; i < count; ++i) all_[i] = i;
  margin_.resize(count);
  alpha_.resize(count);
  curvature_.resize(count);
  change_.resize(count);
  for (size_t i = 0; i < count; ++i) margin_[i] = rows_.known(i).margin;
  std::copy(start.weights.begin(), start.weights.end(), at_.begin());
  // Outside of the sample the alphas stay as they were in the reading.
  std::fill(b_.begin(), b_.end(), 0.0);
  sum_over(all_, b_, [&](uint32_t i, const Row& row, std::span<double> out) {
    const RowSample::Known& known = rows_.known(i);
    if (known.alpha != 0) add_row(row, problem_.bias, rows_.scale(i) * double{known.sign} * known.alpha, out);
  });
  for (size_t j = 0; j < b_.size(); ++j) b_[j] -= start.v[j];
  update_alphas();
  rise_ = 0;
  if (start.centres_moved || start.penalty_changed) {
    for (size_t i = 0; i < count; ++i) {
      const RowSample::Known& known = rows_.known(i);
      // Centres that have moved are the alphas of the reading.
      const double before = start.centres_moved ? 0 : known.alpha - known.centre;
      const double moved = alpha_[i] - (start.centres_moved ? known.centre_if_moved : known.centre);
      rise_ += rows_.scale(i) *
               ((alpha_[i] - known.alpha) * (1 - margin_[i]) - (moved * moved - before * before) / (2 * start.penalty));
    }
  }
  std::fill(lacking_.begin(), lacking_.end(), 0.0);
  if (!rows_.complete()) {
    sum_over(curved_, lacking_, [&](uint32_t i, const Row& row, std::span<double> out) {
      const double curvature = curvature_[i];
      for (size_t k = 0; k < row.index.size(); ++k)
        out[row.index[k]] += curvature * double{row.value[k]} * double{row.value[k]};
      if (problem_.has_bias()) out.back() += curvature * problem_.bias * problem_.bias;
    });
    for (size_t j = 0; j < lacking_.size(); ++j) lacking_[j] = std::max(0.0, double{start.diagonal[j]} - lacking_[j]);
  }
  if (problem_.free_bias) {
    settle_bias();
    update_alphas();
  }
  const bool by_centres =
      rows_.complete() && std::visit([]<class L>(const L&) { return kHasCentres<L>; }, problem_.loss);
  double first = 0;
  for (int number = 0; number < kMostSteps && !stopped(); ++number) {
    double squares = 0;
    for (size_t j = 0; j < at_.size(); ++j) {
      gradient_[j] = (j == free_ ? 0 : at_[j]) + lacking_[j] * (at_[j] - start.weights[j]) + b_[j] - pulled_[j];
      squares += gradient_[j] * gradient_[j];
    }
    if (number == 0) first = squares;
    if (number > 0 && by_centres && 0.5 * squares <= kComplementary * complementarity()) break;
    if (number > 0 && !by_centres && squares <= kInnerTolerance * kInnerTolerance * first) break;
    if (!(squares > 0)) break;
    step(factors, task, products, stopped);
  }
}

// One Newton step on the model: H step = -gradient, nearly, and the best length along it.
void LocalModel::step(FactorPool& factors, size_t task, double& products, const std::function<bool()>& stopped) {
  for (size_t j = 0; j < diagonal_.size(); ++j) diagonal_[j] = 1 + lacking_[j];
  sum_over(curved_, diagonal_, [&](uint32_t i, const Row& row, std::span<double> out) {
    const double curvature = curvature_[i];
    for (size_t k = 0; k < row.index.size(); ++k)
      out[row.index[k]] += curvature * double{row.value[k]} * double{row.value[k]};
    if (problem_.has_bias()) out.back() += curvature * problem_.bias * problem_.bias;
  });
  if (problem_.free_bias) {
    ridge_ = 0;
    diagonal_[free_] -= 1;
    for (const double one : diagonal_) ridge_ += kRidge * one;
    if (curved_.empty()) ridge_ = kRidgeOfNothing;
    diagonal_[free_] += ridge_;
  }
  // By counts: a product looks at each nonzero twice; a factorization at pairs of them, and then at the matrix, eight
  // numbers at a time.
  const auto weights = static_cast<double>(problem_.weights());
  const double of_factor = 0.5 * curved_squares_ + weights * weights * weights / 24;
  const double worth = std::max(kLeastProducts, of_factor / (2 * curved_nonzeros_ + weights));
  const bool can_factor = !factors.empty();
  bool done = false;
  if (!can_factor || products <= worth) {
    double made = 0;
    const size_t most = can_factor ? static_cast<size_t>(std::min(2 * worth, 1.0 * kMostProducts)) : kMostProducts;
    done = conjugate_gradients(nullptr, most, made, stopped);
    products = done ? made : std::max(made, 2 * worth) + 1;
  }
  if (!done && can_factor && !stopped()) {
    factors.with(task, [&](Factor& factor) {
      if (!factorize(factor)) return;
      double made = 0;
      done = conjugate_gradients(&factor, kMostFactoredProducts, made, stopped);
    });
    products = std::max(0.9 * products, 0.0);  // with time, conjugate gradients are tried again
  }
  const double length = best_length();
  for (size_t j = 0; j < at_.size(); ++j) at_[j] += length * step_[j];
  for (size_t i = 0; i < rows_.size(); ++i) margin_[i] += length * change_[i];
  if (problem_.free_bias) settle_bias();
  update_alphas();
}

// True: the residual is small against the gradient.
bool LocalModel::conjugate_gradients(const Factor* factor, size_t most, double& made,
                                     const std::function<bool()>& stopped) {
  const size_t weights = step_.size();
  const auto precondition = [&] {
    if (factor == nullptr) {
      for (size_t j = 0; j < weights; ++j) solved_[j] = residual_[j] / diagonal_[j];
    } else {
      solved_ = residual_;
      factor->solve(solved_);
    }
  };
  std::fill(step_.begin(), step_.end(), 0.0);
  for (size_t j = 0; j < weights; ++j) residual_[j] = -gradient_[j];
  precondition();
  direction_ = solved_;
  double along = product_of(residual_, solved_);
  const double first = squared(residual_);
  made = 0;
  for (size_t number = 0; number < most && along > 0 && !stopped(); ++number) {
    for (size_t j = 0; j < weights; ++j) product_[j] = direction_[j] * ((j == free_ ? ridge_ : 1) + lacking_[j]);
    sum_over(curved_, product_, [&](uint32_t i, const Row& row, std::span<double> out) {
      add_row(row, problem_.bias, double{curvature_[i]} * score_of(row, problem_.bias, direction_), out);
    });
    ++made;
    const double curvature = product_of(direction_, product_);
    if (!(curvature > 0)) break;
    const double length = along / curvature;
    double left = 0;
    for (size_t j = 0; j < weights; ++j) {
      step_[j] += length * direction_[j];
      residual_[j] -= length * product_[j];
      left += residual_[j] * residual_[j];
    }
    if (left <= kInnerTolerance * kInnerTolerance * first) return true;
    precondition();
    const double next = product_of(residual_, solved_);
    for (size_t j = 0; j < weights; ++j) direction_[j] = solved_[j] + next / along * direction_[j];
    along = next;
  }
  return false;
}

// The model's Hessian, column by column.
bool LocalModel::factorize(Factor& factor) {
  const std::span<double> matrix = factor.matrix();
  const size_t weights = step_.size();
  std::fill(matrix.begin(), matrix.end(), 0.0);
  RowBuffer buffer;
  for (const uint32_t i : curved_) {
    const Row row = rows_.row(i, buffer);
    const double curvature = curvature_[i];
    const size_t count = row.index.size();
    for (size_t k = 0; k < count; ++k) {
      double* const column = matrix.data() + row.index[k] * weights;
      const double scaled = curvature * double{row.value[k]};
      for (size_t l = k; l < count; ++l) column[row.index[l]] += scaled * double{row.value[l]};
      if (problem_.has_bias()) column[weights - 1] += scaled * problem_.bias;
    }
    if (problem_.has_bias()) matrix.back() += curvature * problem_.bias * problem_.bias;
  }
  for (size_t j = 0; j < weights; ++j) matrix[j * weights + j] += (j == free_ ? ridge_ : 1) + lacking_[j];
  return factor.factorize();
}

// Of the model, along the step.
double LocalModel::slope_along(double length) const {
  double slope = 0;
  for (size_t j = 0; j < at_.size(); ++j) {
    const double at = at_[j] + length * step_[j];
    slope += step_[j] * ((j == free_ ? 0 : at) + lacking_[j] * (at - start_.weights[j]) + b_[j]);
  }
  std::visit(
      [&](const auto& loss) {
        for (size_t i = 0; i < rows_.size(); ++i) {
          const double change = change_[i];
          if (change == 0) continue;
          const RowSample::Known& known = rows_.known(i);
          const double centre = start_.centres_moved ? known.centre_if_moved : known.centre;
          const RowTerm term = slope_of(loss, margin_[i] + length * change, known.cost, start_.penalty, centre);
          slope -= rows_.scale(i) * term.alpha * change;
        }
      },
      problem_.loss);
  return slope;
}

// The bias alone, to where the model is smallest along it. Nothing but rows of both sides holds a bias without a
// penalty, and the bound of a reading is as good as their alphas balance. Newton steps along a line, kept between
// points where the slope is known to be too low and too high.
void LocalModel::settle_bias() {
  struct Slope {
    double value = 0;
    double rise = 0;  // its derivative
    double size = 0;  // of the alphas that it is the difference of
  };
  const double bias = problem_.bias;
  const auto slope_at = [&](double move) {
    const double lacking = lacking_[free_];
    Slope slope{.value = lacking * (at_[free_] + move - start_.weights[free_]) + b_[free_], .rise = lacking};
    std::visit(
        [&](const auto& loss) {
          for (size_t i = 0; i < rows_.size(); ++i) {
            const RowSample::Known& known = rows_.known(i);
            const double centre = start_.centres_moved ? known.centre_if_moved : known.centre;
            const double sign = known.sign;
            const RowTerm term = slope_of(loss, margin_[i] + sign * bias * move, known.cost, start_.penalty, centre);
            const double pull = rows_.scale(i) * bias * term.alpha;
            slope.value -= sign * pull;
            slope.rise += rows_.scale(i) * bias * bias * term.curvature;
            slope.size += pull;
          }
        },
        problem_.loss);
    return slope;
  };
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  double move = 0;
  double reach = 1 / bias;
  for (int i = 0, reaches = 0; i < kBiasSteps; ++i) {
    const Slope slope = slope_at(move);
    if (std::abs(slope.value) <= kBalanced * slope.size) break;
    (slope.value > 0 ? high : low) = move;
    double next = move - slope.value / slope.rise;
    if (std::isfinite(low) && std::isfinite(high)) {
      if (!(next > low && next < high) || i % 3 == 2) next = 0.5 * (low + high);
    } else if (!(std::abs(next - move) <= reach)) {
      if (++reaches > kBiasReaches) break;
      next = slope.value > 0 ? move - reach : move + reach;
      reach *= 2;
    }
    if (next == move) break;
    move = next;
  }
  at_[free_] += move;
  for (size_t i = 0; i < rows_.size(); ++i) margin_[i] += double{rows_.known(i).sign} * bias * move;
}

// The whole step, unless the model rises again before its end; then where it is smallest.
double LocalModel::best_length() {
  for_rows(all_, [&](uint32_t i, const Row& row) {
    change_[i] = double{rows_.known(i).sign} * score_of(row, problem_.bias, step_);
  });
  const double first = product_of(gradient_, step_);
  double low = 0;
  double high = 1;
  double slope_low = first;
  double slope_high = slope_along(1);
  if (!(slope_high > -kFlat * first)) return 1;
  for (int i = 0; i < kHalvings; ++i) {
    // By turns where the line through both ends says, and in the middle.
    double middle = 0.5 * (low + high);
    if (i % 3 != 2) {
      const double guess = low + (high - low) * (-slope_low) / (slope_high - slope_low);
      if (guess > low && guess < high) middle = guess;
    }
    const double slope = slope_along(middle);
    if (std::abs(slope) <= kFlat * std::abs(first)) return middle;
    (slope > 0 ? high : low) = middle;
    (slope > 0 ? slope_high : slope_low) = slope;
  }
  return low > 0 ? low : high;
}

}  // namespace linblock
