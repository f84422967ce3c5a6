#include "solve/newton/evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "objective/double_weights.h"
#include "objective/scaled_dual.h"

namespace linblock {

namespace {

constexpr double kShares = 65535;                          // a centre is one of so many shares of the cost
constexpr double kPerLeverage = 30;                        // rows of the sample for each unit of leverage
constexpr double kWeightUnknown = 0.1;                     // of every row, before a diagonal is known
constexpr uint64_t kAccumulatorBytes = uint64_t{1} << 20;  // of all of a task
constexpr size_t kMostAccumulators = 16;

uint16_t share_of(double alpha, double cost) {
  return static_cast<uint16_t>(std::lround(kShares * std::clamp(alpha / cost, 0.0, 1.0)));
}
double of_share(uint16_t share, double cost) { return share / kShares * cost; }

}  // namespace

size_t NewtonEvaluation::accumulators(uint64_t weights) {
  return std::clamp<size_t>(kAccumulatorBytes / (kBytesPerAccumulatedWeight * std::max<uint64_t>(1, weights)), 1,
                            kMostAccumulators);
}

NewtonEvaluation::NewtonEvaluation(const Problem& problem, const Task& task, size_t accumulators, uint64_t seed)
    : problem_(problem),
      costs_(problem, task),
      seed_(seed),
      begin_(row_begins(*problem.store)),
      accumulators_(accumulators) {
  if (std::visit([]<class L>(const L&) { return kHasCentres<L>; }, problem.loss)) {
    centres_.resize(begin_.back(), 0);
    next_centres_.resize(begin_.back(), 0);
  }
  for (Accumulator& accumulator : accumulators_) {
    accumulator.v.resize(problem.weights());
    accumulator.diagonal.resize(problem.weights());
    if (problem.free_bias) accumulator.negative_v.resize(problem.weights());
  }
}

void NewtonEvaluation::move_centres() { centres_ = next_centres_; }

void NewtonEvaluation::begin(std::span<const double> weights, std::span<const float> rarely, const Reading& reading) {
  at_ = weights;
  norm_ = std::sqrt(squared_norm_of(weights).value);
  rarely_ = rarely;
  reading_ = reading;
  bound_ = reading.samples ? std::numeric_limits<double>::infinity() : 0;
  for (Accumulator& accumulator : accumulators_) {
    std::fill(accumulator.v.begin(), accumulator.v.end(), 0.0);
    std::fill(accumulator.diagonal.begin(), accumulator.diagonal.end(), 0.0F);
    std::fill(accumulator.negative_v.begin(), accumulator.negative_v.end(), 0.0);
    accumulator.sums = {};
    accumulator.balance = {};
  }
}

// A bound of the row's leverage: the part of the diagonal, along its features, that it makes.
double NewtonEvaluation::weight_of(const Row& row, double curvature) const {
  if (rarely_.empty()) return kWeightUnknown;
  double sum = problem_.has_bias() ? problem_.bias * problem_.bias * double{rarely_.back()} : 0;
  for (size_t k = 0; k < row.index.size(); ++k) {
    const double x = row.value[k];
    sum += x * x * double{rarely_[row.index[k]]};
  }
  return std::max(double{RowSample::kLeastWeight}, kPerLeverage * curvature * sum);
}

template <Loss L>
void NewtonEvaluation::Sums::add_dual(const L& loss, double alpha, double cost) {
  if constexpr (QuadraticDual<L>) {
    alphas.add(loss.dual_linear(alpha, cost));
    squares.add(loss.dual_square(alpha, cost));
  } else {
    alphas.add(loss.dual_value(alpha, cost));
  }
  if constexpr (!GeneralDual<L>) largest = std::max(largest, alpha / loss.largest_alpha(cost));
}

template <Loss L>
void NewtonEvaluation::add_chunk(const L& loss, const Chunk& chunk, uint32_t number, uint32_t in_block,
                                 Accumulator& accumulator) {
  Sums& sums = accumulator.sums;
  double* const v = accumulator.v.data();
  float* const diagonal = accumulator.diagonal.data();
  for (size_t i = 0; i < chunk.rows(); ++i) {
    const Row row = chunk.row(i, accumulator.buffer);
    const double cost = costs_.cost(row);
    if (cost == 0) continue;
    const double sign = costs_.sign(row);
    const double margin = sign * score_of(row, problem_.bias, at_);
    const double norm = std::sqrt(squared_norm(row, problem_.bias));
    double centre = 0;
    if constexpr (kHasCentres<L>) {
      uint16_t& share = centres_[begin_[number] + i];
      if (reading_.guesses_centres) share = margin < 1 ? static_cast<uint16_t>(kShares) : uint16_t{0};
      centre = of_share(share, cost);
    }
    const RowTerm term = term_of(loss, margin, cost, penalty_, centre);
    const double alpha = term.alpha;
    // How wrong the margin is by rounding, and the loss with it: losses are convex, and not steeper than this there.
    const double wrong = product_rounding(static_cast<double>(row.index.size())) * norm_ * norm;
    const double value = cost * loss.value(margin);
    double slope = 0;
    if constexpr (kHasCentres<L>)
      slope = cost * -loss.derivative(margin - wrong);
    else
      slope = alpha + cost * loss.most_curvature() * wrong;
    sums.losses.add(value, slope * wrong + kRoundingsPerTerm * kUnit * value);
    sums.smoothed += term.value;
    double next_centre = 0;
    if constexpr (kHasCentres<L>) {
      const double slack = 1 - margin;
      sums.linear += alpha * slack;
      sums.complementarity += slack > 0 ? (cost - alpha) * slack : -alpha * slack;
      const uint16_t share = share_of(alpha, cost);
      next_centres_[begin_[number] + i] = share;
      next_centre = of_share(share, cost);
    }
    if (problem_.free_bias) accumulator.balance.add(loss, sign, alpha, cost, norm);
    if (alpha != 0) {
      if (!problem_.free_bias)
        sums.add_dual(loss, alpha, cost);
      else if (sign < 0)
        add_row(row, problem_.bias, -alpha, accumulator.negative_v);
      const double scale = sign * alpha;
      for (size_t k = 0; k < row.index.size(); ++k) v[row.index[k]] += scale * double{row.value[k]};
      if (problem_.has_bias()) v[problem_.weights() - 1] += scale * problem_.bias;
      sums.lengths += alpha * norm;
      ++sums.rows;
    }
    if (term.curvature > 0) {
      for (size_t k = 0; k < row.index.size(); ++k) {
        const double x = row.value[k];
        diagonal[row.index[k]] += static_cast<float>(term.curvature * x * x);
      }
      if (problem_.has_bias())
        diagonal[problem_.weights() - 1] += static_cast<float>(term.curvature * problem_.bias * problem_.bias);
    }
    if (!reading_.samples) continue;
    if (!may_move(loss, margin, cost, penalty_, centre, zone_) &&
        !(kHasCentres<L> && may_move(loss, margin, cost, 2 * penalty_, next_centre, zone_)))
      continue;
    const double weight = weight_of(row, typical_curvature_of(loss, cost, penalty_, term));
    const double draw = static_cast<double>(mix64(mix64(seed_, reading_.number), row.id) >> 11) * 0x1p-53;
    const double rarity = RowSample::rarity(draw, weight);
    if (!(rarity < bound_)) continue;
    accumulator.found.push_back({.chunk = in_block,
                                 .row = static_cast<uint32_t>(i),
                                 .known = {.margin = margin,
                                           .alpha = alpha,
                                           .centre = centre,
                                           .centre_if_moved = next_centre,
                                           .cost = cost,
                                           .sign = static_cast<float>(sign),
                                           .rarity = static_cast<float>(rarity),
                                           .weight = static_cast<float>(weight)}});
  }
}

void NewtonEvaluation::add(const Block& block, size_t accumulator) {
  for (size_t i = 0; i < block.chunks.size(); ++i) {
    const uint32_t number = block.numbers[i];
    if (number % accumulators_.size() != accumulator) continue;
    std::visit(
        [&](const auto& loss) {
          add_chunk(loss, *block.chunks[i], number, static_cast<uint32_t>(i), accumulators_[accumulator]);
        },
        problem_.loss);
  }
}

void NewtonEvaluation::collect(const Block& block, RowSample& sample) {
  // Chunk by chunk, as one thread would have met them.
  std::vector<size_t> next(accumulators_.size(), 0);
  for (size_t i = 0; i < block.chunks.size(); ++i) {
    const size_t which = block.numbers[i] % accumulators_.size();
    Accumulator& accumulator = accumulators_[which];
    for (size_t& at = next[which]; at < accumulator.found.size() && accumulator.found[at].chunk == i; ++at) {
      const Found& found = accumulator.found[at];
      sample.add(*block.chunks[i], block.numbers[i], found.row, found.known, accumulator.buffer);
    }
  }
  for (Accumulator& accumulator : accumulators_) accumulator.found.clear();
  bound_ = sample.bound();
}

void NewtonEvaluation::Sums::add(const Sums& other) {
  losses.add(other.losses);
  smoothed += other.smoothed;
  linear += other.linear;
  complementarity += other.complementarity;
  alphas.add(other.alphas);
  squares.add(other.squares);
  largest = std::max(largest, other.largest);
  lengths += other.lengths;
  rows += other.rows;
}

NewtonEvaluation::Sums NewtonEvaluation::sums() const {
  Sums all;
  for (const Accumulator& accumulator : accumulators_) all.add(accumulator.sums);
  return all;
}

double NewtonEvaluation::v(size_t weight) const {
  double sum = 0;
  for (const Accumulator& accumulator : accumulators_) sum += accumulator.v[weight];
  return sum;
}

double NewtonEvaluation::diagonal(size_t weight) const {
  double sum = 0;
  for (const Accumulator& accumulator : accumulators_) sum += double{accumulator.diagonal[weight]};
  return sum;
}

BalancedDual NewtonEvaluation::balanced() const {
  BalancedDual all;
  for (const Accumulator& accumulator : accumulators_) all.add(accumulator.balance);
  return all;
}

double NewtonEvaluation::balanced_v(size_t weight, const BalancingShares& shares) const {
  double negative = 0;
  for (const Accumulator& accumulator : accumulators_) negative += accumulator.negative_v[weight];
  return shares.v(v(weight), negative);
}

Certificate NewtonEvaluation::certificate(const Sums& sums, const SquaredNorm& w2, const SquaredNorm& v2) const {
  Certificate certificate = certificate_of(w2, sums.losses, {}, {});  // its dual is what rounding may do to the primal
  if (problem_.free_bias) {
    const BalancedDual dual = balanced();
    const auto parts = static_cast<double>(accumulators_.size());
    certificate.dual +=
        std::visit([&](const auto& loss) { return dual.bound(loss, dual.shares(), v2, parts); }, problem_.loss);
    return certificate;
  }
  const double wrong = sum_rounding(sums.rows + static_cast<double>(accumulators_.size())) * sums.lengths;
  const ScaledDual dual{.v2 = v2.value, .v2_rounding = v2.rounding + (2 * std::sqrt(v2.value) + wrong) * wrong};
  const bool general = std::visit([]<class L>(const L&) { return GeneralDual<L>; }, problem_.loss);
  certificate.dual += general ? dual.of_values(sums.alphas, 1)
                              : dual.of_parabola(sums.alphas, sums.squares, largest_scale(sums.largest));
  return certificate;
}

void NewtonEvaluation::save(FieldWriter& to) const { visit_fields(*this, to); }

void NewtonEvaluation::restore(FieldReader& from, std::span<const double> weights, std::span<const float> rarely) {
  at_ = weights;
  norm_ = std::sqrt(squared_norm_of(weights).value);
  rarely_ = rarely;
  visit_fields(*this, from);
  if (!(penalty_ > 0) || !std::isfinite(penalty_)) from.refuse_value("penalty");
}

}  // namespace linblock
