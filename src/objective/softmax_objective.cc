#include "objective/softmax_objective.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/random.h"
#include "objective/double_weights.h"

namespace linblock {

namespace {

constexpr float kOwnClass = -1;
constexpr uint64_t kSampleSeed = 0x736f66746d6178ULL;  // a sample makes steps shorter to compute, and no answer
constexpr size_t kPieces = 64;  // of the rows, in a sweep over what is kept of them: their sums are added in order

constexpr size_t kLanes = 2;
using Reals = double __attribute__((vector_size(kLanes * sizeof(double))));
using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));

Reals load(const double* from) {
  Reals reals;
  std::memcpy(&reals, from, sizeof(reals));
  return reals;
}
Reals load(const float* from) {
  Floats floats;
  std::memcpy(&floats, from, sizeof(floats));
  return __builtin_convertvector(floats, Reals);
}

// sums[c] = sum of weights[index * width + c] * value, for some classes at once: their sums stay in registers.
template <size_t kVectors, typename Weight>
void score_some(const Row& row, const Weight* weights, size_t width, double* sums) {
  Reals all[kVectors] = {};
  for (size_t k = 0; k < row.index.size(); ++k) {
    const Weight* const at = weights + size_t{row.index[k]} * width;
    const double x = row.value[k];
    for (size_t i = 0; i < kVectors; ++i) all[i] += load(at + i * kLanes) * x;
  }
  std::memcpy(sums, all, sizeof(all));
}

template <typename Weight>
void score_each(const Row& row, const Weight* weights, size_t width, double* sums) {
  size_t c = 0;
  for (; c + 5 * kLanes <= width; c += 5 * kLanes) score_some<5>(row, weights + c, width, sums + c);
  for (; c + 2 * kLanes <= width; c += 2 * kLanes) score_some<2>(row, weights + c, width, sums + c);
  for (; c + kLanes <= width; c += kLanes) score_some<1>(row, weights + c, width, sums + c);
  // There are two classes at least: one of them once more, rather than another loop.
  if (c < width) score_some<1>(row, weights + width - kLanes, width, sums + width - kLanes);
}

// sums[index * width + c] += scales[c] * value.
void add_each(const Row& row, const double* scales, size_t width, double* sums) {
  for (size_t k = 0; k < row.index.size(); ++k) {
    double* const at = sums + size_t{row.index[k]} * width;
    const double x = row.value[k];
    size_t c = 0;
    for (; c + kLanes <= width; c += kLanes) {
      const Reals sum = load(at + c) + load(scales + c) * x;
      std::memcpy(at + c, &sum, sizeof(sum));
    }
    for (; c < width; ++c) at[c] += scales[c] * x;
  }
}

// So that several add up to no more than they should.
float rounded_down(double share) {
  const auto rounded = static_cast<float>(share);
  return double{rounded} > share ? std::nextafter(rounded, 0.0F) : rounded;
}

// 1 minus the others, which may be above 1 by rounding.
struct Shares {
  double others = 0;
  double own() const { return std::max(0.0, 1 - others); }
};
Shares shares_of(std::span<const float> shares) {
  Shares sum;
  for (const float share : shares)
    if (share > 0) sum.others += double{share};
  return sum;
}

// A row's scores as a distribution.
struct Softmax {
  size_t largest = 0;
  double rest = 0;  // sum of exp(score - largest score) over the other classes
  double away = 0;  // sum of (largest score - score) exp(score - largest score)
  double total() const { return 1 + rest; }
  double log_total() const { return std::log1p(rest); }
  double entropy() const { return log_total() + away / total(); }
};

// Scores become exp(score - the largest).
Softmax exponentiate(std::span<double> scores) {
  Softmax row;
  row.largest = static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
  const double most = scores[row.largest];
  for (size_t c = 0; c < scores.size(); ++c) {
    const double below = most - scores[c];
    scores[c] = std::exp(-below);
    if (c == row.largest) continue;
    row.rest += scores[c];
    if (scores[c] > 0) row.away += below * scores[c];
  }
  return row;
}

}  // namespace

SoftmaxObjective::SoftmaxObjective(const Problem& problem, const Task& task, size_t accumulators, bool keeps_rows)
    : problem_(problem),
      costs_(problem, task),
      numbers_(problem.store->info()),
      classes_(problem.classes()),
      keeps_rows_(keeps_rows),
      begin_(row_begins(*problem.store)),
      accumulators_(accumulators) {
  if (keeps_rows_) {
    row_costs_.resize(begin_.back());
    shares_.resize(begin_.back() * classes_);
  }
  for (Accumulator& accumulator : accumulators_) {
    accumulator.sums.resize(problem.weights() * classes_);
    accumulator.diagonal.resize(problem.weights() * classes_);
    accumulator.class_costs.resize(classes_);
    accumulator.curvatures.resize(classes_);
    accumulator.excess.resize(classes_);
    accumulator.scores.resize(classes_);
    accumulator.scales.resize(classes_);
    accumulator.shares.resize(classes_);
  }
}

void SoftmaxObjective::begin(Pass pass) {
  pass_ = pass;
  for (Accumulator& accumulator : accumulators_) {
    std::fill(accumulator.sums.begin(), accumulator.sums.end(), 0.0);
    std::fill(accumulator.class_costs.begin(), accumulator.class_costs.end(), LongSum());
    std::fill(accumulator.curvatures.begin(), accumulator.curvatures.end(), 0.0);
    std::fill(accumulator.excess.begin(), accumulator.excess.end(), LongSum());
    accumulator.totals = {};
  }
}

void SoftmaxObjective::begin_class_sums() { begin(Pass::class_sums); }

void SoftmaxObjective::begin_evaluation(std::span<const double> weights, double norm, std::span<const double> rates) {
  begin(Pass::evaluation);
  at_ = weights;
  norm_ = norm;
  rates_ = rates;
  for (Accumulator& accumulator : accumulators_)
    std::fill(accumulator.diagonal.begin(), accumulator.diagonal.end(), 0.0F);
}

void SoftmaxObjective::begin_product(std::span<const double> weights, std::span<const float> direction) {
  begin(Pass::product);
  at_ = weights;
  direction_ = direction;
}

void SoftmaxObjective::find_scores(const Row& row, std::span<double> scores) const {
  score_each(row, at_.data(), classes_, scores.data());
  if (!problem_.has_bias()) return;
  const std::span<const double> last = at_.last(classes_);
  for (size_t c = 0; c < classes_; ++c) scores[c] += problem_.bias * last[c];
}

void SoftmaxObjective::add_scaled_row(const Row& row, std::span<const double> scales, std::span<double> sums) const {
  add_each(row, scales.data(), classes_, sums.data());
  if (!problem_.has_bias()) return;
  const std::span<double> last = sums.last(classes_);
  for (size_t c = 0; c < classes_; ++c) last[c] += problem_.bias * scales[c];
}

void SoftmaxObjective::add_class_sums(const Chunk& chunk, Accumulator& accumulator) const {
  for (size_t i = 0; i < chunk.rows(); ++i) {
    const Row row = chunk.row(i, accumulator.buffer);
    const double cost = costs_.cost(row);
    if (cost == 0) continue;
    const size_t own = numbers_[row.label];
    accumulator.class_costs[own].add(cost);
    for (size_t k = 0; k < row.index.size(); ++k)
      accumulator.sums[size_t{row.index[k]} * classes_ + own] += cost * double{row.value[k]};
    if (problem_.has_bias()) accumulator.sums[accumulator.sums.size() - classes_ + own] += cost * problem_.bias;
    accumulator.totals.lengths += cost * std::sqrt(squared_norm(row, problem_.bias));
    ++accumulator.totals.rows;
  }
}

void SoftmaxObjective::evaluate(const Chunk& chunk, uint32_t in_block, uint64_t first_row, Accumulator& accumulator) {
  const std::span<double> scores = accumulator.scores;
  const std::span<double> scales = accumulator.scales;
  Totals& totals = accumulator.totals;
  // Of the exponentials' sum, beside those of every term.
  const double roundings = kRoundingsPerTerm + static_cast<double>(classes_);
  for (size_t i = 0; i < chunk.rows(); ++i) {
    const Row row = chunk.row(i, accumulator.buffer);
    const double cost = costs_.cost(row);
    const std::span<float> kept =
        keeps_rows_ ? std::span(shares_).subspan((first_row + i) * classes_, classes_) : std::span<float>();
    if (keeps_rows_) row_costs_[first_row + i] = cost;
    if (cost == 0) {
      std::fill(kept.begin(), kept.end(), 0.0F);
      continue;
    }
    const size_t own = numbers_[row.label];
    find_scores(row, scores);
    const double own_score = scores[own];
    const double largest_score = *std::max_element(scores.begin(), scores.end());
    const Softmax softmax = exponentiate(scores);
    const double loss = softmax.log_total() + (largest_score - own_score);
    // The alphas are cost * p; v takes cost * ([own] - p), of which the own is the sum of the others.
    double others = 0;
    for (size_t c = 0; c < classes_; ++c) {
      double share = scores[c] / softmax.total();
      if (c != own && has_free_bias()) share = double{rounded_down(share)};  // that of the dual is what is kept
      scores[c] = share;
      if (c != own) others += share;
      if (keeps_rows_) kept[c] = c == own ? kOwnClass : static_cast<float>(share);
    }
    for (size_t c = 0; c < classes_; ++c) scales[c] = cost * (c == own ? others : -scores[c]);
    const double norm2 = squared_norm(row, problem_.bias);
    // How wrong a score is by rounding, and the loss with it: its slope is |p - e| <= 2 others in all, and within this
    // distance no exponential grows by more than this factor.
    const double wrong = product_rounding(static_cast<double>(row.index.size()) + 4) * norm_ * std::sqrt(norm2);
    const double slope = std::min(2.0, 2 * others * std::exp(std::min(4 * wrong, 1.0)) + 4 * wrong);
    totals.losses.add(cost * loss, cost * (slope * wrong + roundings * kUnit * loss));
    totals.entropies.add(cost * softmax.entropy());
    totals.lengths += 2 * cost * others * std::sqrt(norm2);
    ++totals.rows;
    if (has_free_bias())
      for (size_t c = 0; c < classes_; ++c) accumulator.excess[c].add(-scales[c]);
    add_scaled_row(row, scales, accumulator.sums);
    for (size_t c = 0; c < classes_; ++c) accumulator.curvatures[c] += scales[c] = cost * scores[c] * (1 - scores[c]);
    for (size_t c = 0; c < rates_.size(); ++c) {
      const double chance = rates_[c] * scales[c];
      if (chance < static_cast<double>(mix64(mix64(kSampleSeed, c), row.id) >> 11) * 0x1p-53) continue;
      if (!(chance > 0) || accumulator.samples.size() >= accumulator.most_samples) continue;
      accumulator.samples.push_back({.chunk = in_block,
                                     .row = static_cast<uint32_t>(i),
                                     .of_class = static_cast<uint32_t>(c),
                                     .share = static_cast<float>(scales[c] / std::min(1.0, chance))});
    }
    for (size_t k = 0; k < row.index.size(); ++k) {
      const double x2 = double{row.value[k]} * double{row.value[k]};
      float* const diagonal = accumulator.diagonal.data() + size_t{row.index[k]} * classes_;
      for (size_t c = 0; c < classes_; ++c) diagonal[c] += static_cast<float>(scales[c] * x2);
    }
    if (!problem_.has_bias()) continue;
    float* const diagonal = accumulator.diagonal.data() + accumulator.diagonal.size() - classes_;
    for (size_t c = 0; c < classes_; ++c) diagonal[c] += static_cast<float>(scales[c] * problem_.bias * problem_.bias);
  }
}

void SoftmaxObjective::multiply(const Chunk& chunk, uint64_t first_row, Accumulator& accumulator) const {
  const std::span<double> turned = accumulator.scores;  // t
  const std::span<double> scales = accumulator.scales;
  for (size_t i = 0; i < chunk.rows(); ++i) {
    if (keeps_rows_ && row_costs_[first_row + i] == 0) continue;
    const Row row = chunk.row(i, accumulator.buffer);
    double cost = 0;
    std::span<const float> shares;
    if (keeps_rows_) {
      cost = row_costs_[first_row + i];
      shares = std::span(shares_).subspan((first_row + i) * classes_, classes_);
    } else {
      cost = costs_.cost(row);
      if (cost == 0) continue;
      const std::span<double> scores = accumulator.scores;
      find_scores(row, scores);
      const double total = exponentiate(scores).total();
      const size_t own = numbers_[row.label];
      for (size_t c = 0; c < classes_; ++c)
        accumulator.shares[c] = c == own ? kOwnClass : static_cast<float>(scores[c] / total);
      shares = accumulator.shares;
    }
    score_each(row, direction_.data(), classes_, turned.data());
    if (problem_.has_bias())
      for (size_t c = 0; c < classes_; ++c)
        turned[c] += problem_.bias * double{direction_[direction_.size() - classes_ + c]};
    const double own_share = shares_of(shares).own();
    double mean = 0;  // p.t
    for (size_t c = 0; c < classes_; ++c) {
      scales[c] = cost * (shares[c] < 0 ? own_share : double{shares[c]});
      mean += scales[c] * turned[c];
    }
    mean /= cost;
    for (size_t c = 0; c < classes_; ++c) scales[c] *= turned[c] - mean;
    add_scaled_row(row, scales, accumulator.sums);
  }
}

void SoftmaxObjective::add(const Block& block, size_t accumulator) {
  if (pass_ == Pass::evaluation && !rates_.empty()) {
    Accumulator& own = accumulators_[accumulator];
    own.most_samples = 0;
    for (size_t i = 0; i < block.chunks.size(); ++i)
      if (block.numbers[i] % accumulators_.size() == accumulator)
        own.most_samples += kSamplesPerRow * block.chunks[i]->rows();
    own.samples.reserve(own.most_samples);
  }
  for (size_t i = 0; i < block.chunks.size(); ++i) {
    const uint32_t number = block.numbers[i];
    if (number % accumulators_.size() != accumulator) continue;
    const Chunk& chunk = *block.chunks[i];
    switch (pass_) {
      case Pass::class_sums: add_class_sums(chunk, accumulators_[accumulator]); break;
      case Pass::evaluation:
        evaluate(chunk, static_cast<uint32_t>(i), begin_[number], accumulators_[accumulator]);
        break;
      case Pass::product: multiply(chunk, begin_[number], accumulators_[accumulator]); break;
    }
  }
}

void SoftmaxObjective::add_samples(const Block& block, size_t of_class, std::span<double> matrix) const {
  RowBuffer buffer;
  const size_t size = problem_.weights();
  for (size_t i = 0; i < block.chunks.size(); ++i) {
    for (const Sampled& sampled : accumulators_[block.numbers[i] % accumulators_.size()].samples) {
      if (sampled.of_class != of_class || sampled.chunk != i) continue;
      const Row row = block.chunks[i]->row(sampled.row, buffer);
      const double share = sampled.share;
      for (size_t a = 0; a < row.index.size(); ++a) {
        const double scale = share * double{row.value[a]};
        double* const column = matrix.data() + size_t{row.index[a]} * size;
        for (size_t b = a; b < row.index.size(); ++b) column[row.index[b]] += scale * double{row.value[b]};
        if (problem_.has_bias()) column[size - 1] += scale * problem_.bias;
      }
      if (problem_.has_bias()) matrix.back() += share * problem_.bias * problem_.bias;
    }
  }
}

void SoftmaxObjective::clear_samples() {
  for (Accumulator& accumulator : accumulators_) accumulator.samples.clear();
}

std::vector<double> SoftmaxObjective::curvatures() const {
  std::vector<double> sums(classes_, 0);
  for (const Accumulator& accumulator : accumulators_)
    for (size_t c = 0; c < classes_; ++c) sums[c] += accumulator.curvatures[c];
  return sums;
}

std::vector<double> SoftmaxObjective::class_costs() const {
  std::vector<double> costs(classes_, 0);
  for (size_t c = 0; c < classes_; ++c) {
    LongSum sum;
    for (const Accumulator& accumulator : accumulators_) sum.add(accumulator.class_costs[c]);
    costs[c] = sum.value();
  }
  return costs;
}

LossSum SoftmaxObjective::losses() const {
  LossSum sum;
  for (const Accumulator& accumulator : accumulators_) sum.add(accumulator.totals.losses);
  return sum;
}

double SoftmaxObjective::v_rounding() const {
  double lengths = 0;
  double terms = static_cast<double>(accumulators_.size() + classes_);
  for (const Accumulator& accumulator : accumulators_) {
    lengths += accumulator.totals.lengths;
    terms += accumulator.totals.rows;
  }
  return sum_rounding(terms) * lengths;
}

DualSum SoftmaxObjective::dual_values() const {
  LongSum entropies;
  for (const Accumulator& accumulator : accumulators_) entropies.add(accumulator.totals.entropies);
  DualSum sum;
  // The sum of the exponentials has a rounding for each class: the alpha here is what accounts for it.
  const double sizes = std::abs(entropies.value()) + entropies.rounding();
  sum.add(sizes * static_cast<double>(classes_) / kRoundingsPerTerm, entropies.value() - entropies.rounding(), 0);
  return sum;
}

SoftmaxObjective::Mixture SoftmaxObjective::mixture(std::span<const double> class_costs, const Team& team) const {
  Mixture mixture;
  mixture.constant.resize(classes_, 0);
  double all = 0;
  for (const double cost : class_costs) all += cost;
  const double rows = static_cast<double>(row_costs_.size());
  std::vector<double> excess(classes_);
  double wrong = 0;  // of each
  for (size_t c = 0; c < classes_; ++c) {
    LongSum sum;
    for (const Accumulator& accumulator : accumulators_) sum.add(accumulator.excess[c]);
    excess[c] = sum.value();
    wrong = std::max(wrong, sum.rounding());
  }
  wrong += 2 * (static_cast<double>(classes_) + kRoundingsPerTerm) * kUnit * all + sum_rounding(rows) * kUnit * all;
  for (size_t c = 0; c < classes_; ++c) {
    if (class_costs[c] == 0 && excess[c] <= 0) continue;
    mixture.theta = std::max(mixture.theta, (excess[c] + 2 * wrong) / (class_costs[c] + excess[c] + 2 * wrong));
  }
  mixture.theta = std::clamp(mixture.theta, 0.0, 1.0);
  const double theta = mixture.theta;
  double total = 0;
  for (size_t c = 0; c < classes_ && theta > 0; ++c) {
    mixture.constant[c] = std::max(0.0, (theta * class_costs[c] - (1 - theta) * excess[c]) / (theta * all));
    total += mixture.constant[c];
  }
  for (double& share : mixture.constant) share /= theta > 0 ? total : 1;
  std::vector<DualSum> parts(kPieces);
  team.for_each(kPieces, [&](size_t piece) {
    const size_t end = row_costs_.size() * (piece + 1) / kPieces;
    for (size_t i = row_costs_.size() * piece / kPieces; i < end; ++i) {
      const double cost = row_costs_[i];
      if (cost == 0) continue;
      const std::span<const float> shares = std::span(shares_).subspan(i * classes_, classes_);
      const double own = shares_of(shares).own();
      double entropy = 0;
      for (size_t c = 0; c < classes_; ++c) {
        const double share = (1 - theta) * (shares[c] < 0 ? own : double{shares[c]}) + theta * mixture.constant[c];
        if (share > 0) entropy -= share * std::log(share);
      }
      // A logarithm near 1 is as wrong as the share is: that is what the alpha here accounts for.
      parts[piece].add(cost * (static_cast<double>(classes_) / kRoundingsPerTerm + 1), cost * entropy, 0);
    }
  });
  for (const DualSum& part : parts) mixture.values.add(part);
  // The theta g that makes the sums exact is away from this one by less than this; -m log m changes by no more than d
  // - d log d where m changes by d.
  mixture.g_rounding = all > 0 ? 4 * static_cast<double>(classes_) * wrong / all : 0;
  if (mixture.g_rounding > 0)
    mixture.rounding = all * static_cast<double>(classes_) * mixture.g_rounding * (1 - std::log(mixture.g_rounding));
  return mixture;
}

void SoftmaxObjective::restore(FieldReader& from, std::span<const double> weights, double norm,
                               std::span<const double> rates, std::span<const float> direction) {
  at_ = weights;
  norm_ = norm;
  rates_ = rates;
  direction_ = direction;
  visit_fields(*this, from);
}

}  // namespace linblock
