#include "solve/indexed/active_descent.h"

#include <algorithm>
#include <limits>

#include "base/random.h"
#include "solve/indexed/sparse_loss.h"

namespace linblock {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNewtonExact = 0.01;
constexpr int kRounds = 10;          // over a block, as BLOCK-L-10
constexpr double kStillMoves = 0.1;  // of the tolerance: projected gradients no farther apart end a block

}  // namespace

ActiveDescent::ActiveDescent(const Problem& problem, const RowCost& costs, const Store& store,
                             const DescentSettings& settings)
    : problem_(problem),
      costs_(costs),
      settings_(settings),
      rows_(store, settings.bytes, settings.files),
      newton_(problem, costs_, rows_),
      w_(problem.weights()) {}

template <class Loss>
double ActiveDescent::visit(const Loss& loss, size_t number) {
  const Row row = rows_.row(number, buffer_);
  const double cost = costs_.cost_of_learned(row);
  double& alpha = rows_.alpha(number);
  const double margin_now = margin(row, w_);
  const double gradient = loss.dual_gradient(alpha, margin_now, cost);
  if (alpha == 0 && gradient > 0) return gradient;
  if (alpha == loss.largest_alpha(cost) && gradient < 0) return gradient;
  const double norm2 = std::max(squared_norm(row, problem_.bias), 1e-300);
  const double next = loss.dual_step(alpha, margin_now, norm2, cost);
  const double change = (next - alpha) * costs_.sign(row);
  alpha = next;
  if (change != 0) add_row(row, problem_.bias, change, w_);
  return gradient;
}

// Dual coordinate descent with LIBLINEAR's shrinking.
template <class Loss>
void ActiveDescent::descend(const Loss& loss, std::vector<uint32_t>& block, double tolerance) {
  Random random(settings_.seed, mix64(blocks_, block.size()));
  size_t left = block.size();
  double top = kInfinity;
  double bottom = -kInfinity;
  for (int round = 0; round < kRounds && !give_up(); ++round) {
    double highest = -kInfinity;
    double lowest = kInfinity;
    for (size_t i = left; i > 1; --i) std::swap(block[i - 1], block[random.below(i)]);
    for (size_t i = 0; i < left; ++i) {
      const size_t number = block[i];
      const double before = rows_.alpha(number);
      const double gradient = visit(loss, number);
      const bool at_zero = before == 0 && gradient > 0;
      const bool at_top = !at_zero && gradient < 0 && rows_.alpha(number) == before && before > 0;
      if ((at_zero && gradient > top) || (at_top && gradient < bottom)) {
        std::swap(block[i], block[--left]);
        --i;
        continue;
      }
      const double projected = at_zero || at_top ? 0 : gradient;
      highest = std::max(highest, projected);
      lowest = std::min(lowest, projected);
    }
    if (highest - lowest <= kStillMoves * tolerance) {
      if (left == block.size()) return;
      left = block.size();  // once more, with everything
      top = kInfinity;
      bottom = -kInfinity;
      continue;
    }
    top = highest > 0 ? highest : kInfinity;
    bottom = lowest < 0 ? lowest : -kInfinity;
  }
}

void ActiveDescent::solve_newest(size_t newest, uint64_t old_rows, double tolerance) {
  const size_t old = rows_.size() - newest;
  if (turn_ >= old) turn_ = 0;
  old_rows = std::min<uint64_t>(old_rows, old);
  std::vector<uint32_t> block;
  const auto add = [&](size_t first, size_t count) {
    for (size_t i = first; i < first + count; ++i)
      if (!rows_.is_out(i)) block.push_back(static_cast<uint32_t>(i));
  };
  const size_t fresh = rows_.bring(old, newest);
  add(old, fresh);
  // In turn, and from the beginning again; what the memory does not hold together waits for its turn.
  const size_t first = turn_;
  const size_t count = fresh < newest ? 0 : rows_.bring(first, std::min<size_t>(old_rows, old - first), newest);
  add(first, count);
  turn_ = first + count;
  if (count == old - first && first > 0 && !rows_.in_files()) {
    turn_ = std::min<size_t>(old_rows - count, first);
    add(0, turn_);
  }
  solve_block(block, tolerance);
}

void ActiveDescent::solve_block(std::vector<uint32_t>& block, double tolerance) {
  ++blocks_;
  if (block.empty()) return;
  if (settings_.newton) return newton_.solve(block, w_, kNewtonExact * std::min(1.0, tolerance), settings_.give_up);
  visit_sparse(problem_.loss, [&](const auto& loss) {
    descend(loss, block, tolerance);
    return 0;
  });
}

void ActiveDescent::refresh_weights() {
  std::fill(w_.begin(), w_.end(), 0.0);
  for_each([&](size_t i, const Row& row) {
    if (rows_.alpha(i) != 0) add_row(row, problem_.bias, rows_.alpha(i) * costs_.sign(row), w_);
  });
}

ActiveDescent::ActiveSums ActiveDescent::add_up(std::span<const double> weights, double most_loss,
                                                std::vector<double>* v) {
  ActiveSums sums;
  const double length = std::sqrt(squared(weights));
  visit_sparse(problem_.loss, [&](const auto& loss) {
    for_each([&](size_t i, const Row& row) {
      const double cost = costs_.cost_of_learned(row);
      const double alpha = rows_.alpha(i);
      const double margin_here = margin(row, weights);
      const double norm = std::sqrt(squared_norm(row, problem_.bias));
      if (rows_.is_out(i))
        sums.out_cost += cost;
      else
        sums.losses.add(loss, cost, margin_here, length * norm, row.index.size());
      sums.all_losses += cost * std::min(loss.value(margin_here), most_loss);
      if (alpha == 0) return;
      sums.duals.add(alpha, loss.dual_value(alpha, cost), norm);
      if (v != nullptr) add_row(row, problem_.bias, alpha * costs_.sign(row), *v);
    });
    return 0;
  });
  return sums;
}

ActiveDescent::ActiveSums ActiveDescent::sums_at(std::span<const double> weights, double most_loss) {
  return add_up(weights, most_loss, nullptr);
}

Certificate ActiveDescent::solve_to(double tolerance, int most_times) {
  for (int time = 0;; ++time) {
    // The sums are of w as it is, which differs from what it should be by the rounding of double: one pass for both.
    std::vector<double> v(w_.size());
    const ActiveSums sums = add_up(w_, kInfinity, &v);
    w_ = std::move(v);
    const SquaredNorm w2 = squared_norm_of(std::span<const double>(w_));
    const Certificate certificate = certificate_of(w2, sums.losses, sums.duals, w2);
    const double gap = relative_gap(certificate.primal, certificate.dual);
    if (gap <= tolerance || time == most_times || give_up()) return certificate;
    rows_.walk([&](const ActiveRows::Ranges& here) {
      std::vector<uint32_t> block;
      for (const auto& [first, end] : here)
        for (size_t i = first; i < end; ++i)
          if (!rows_.is_out(i)) block.push_back(static_cast<uint32_t>(i));
      solve_block(block, tolerance);
    });
  }
}

void ActiveDescent::keep(const std::vector<uint8_t>& keep) {
  rows_.keep(keep);
  turn_ = 0;
}

}  // namespace linblock
