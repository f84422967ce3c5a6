#include "objective/class_certificate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/dot.h"
#include "objective/double_weights.h"

namespace linblock {

namespace {

struct Sum {
  double all = 0;
  double share = 1;  // of each dual that is counted: rounding may have brought the sum above the cost
};

Sum sum_of(std::span<const double> duals, double cost) {
  Sum sum;
  for (const double dual : duals) sum.all += dual;
  if (sum.all > cost) sum.share = cost / sum.all;
  return sum;
}

}  // namespace

void exact_scores(const Row& row, double bias, std::span<const float> weights, std::span<double> scores) {
  exact_dot_each(row.index, row.value, weights.data(), scores.size(), scores.data());
  if (bias < 0) return;
  const std::span<const float> last = weights.last(scores.size());
  for (size_t m = 0; m < scores.size(); ++m) scores[m] += bias * double{last[m]};
}

ClassCertifier::ClassCertifier(const Problem& problem, const Task& task, size_t weights_at_once)
    : problem_(problem),
      costs_(problem, task),
      numbers_(problem.store->info()),
      classes_(problem.classes()),
      features_at_once_(std::clamp<size_t>(weights_at_once / classes_, 1, std::max<size_t>(1, problem.weights()))),
      passes_(std::max<size_t>(1, (problem.weights() + features_at_once_ - 1) / features_at_once_)),
      scores_(classes_) {}

void ClassCertifier::begin_pass(size_t pass) {
  begin_ = pass * features_at_once_;
  v_.assign(std::min(features_at_once_, problem_.weights() - begin_) * classes_, 0.0);
}

void ClassCertifier::add_losses(const Chunk& chunk, const SparseDuals::Page& duals, std::span<const float> weights) {
  if (norm_ < 0) norm_ = std::sqrt(squared_norm_of(weights).value);
  size_t pair = 0;
  for (size_t i = 0; i < chunk.rows(); ++i) {
    const size_t first = pair;
    if (!duals.counts.empty()) pair += duals.counts[i];
    const Row row = chunk.row(i, losses_buffer_);
    const double cost = costs_.cost(row);
    if (cost == 0) continue;
    exact_scores(row, problem_.bias, weights, scores_);
    const double true_score = std::exchange(scores_[numbers_[row.label]], -std::numeric_limits<double>::infinity());
    const double length = std::sqrt(squared_norm(row, problem_.bias));
    // A hinge of the margin between two scores, each of which can be wrong.
    losses_.add(Hinge(), cost, true_score - *std::max_element(scores_.begin(), scores_.end()), 2 * norm_ * length,
                row.index.size());
    if (pair == first) continue;
    const Sum sum = sum_of(duals.duals.subspan(first, pair - first), cost);
    // x is added to v of its own class by the sum of its duals, and taken from the others' by the same sum at most.
    duals_.add(sum.share * sum.all, sum.share * sum.all, 2 * length);
  }
}

void ClassCertifier::add_duals(const Chunk& chunk, const SparseDuals::Page& duals) {
  const size_t end = begin_ + v_.size() / classes_;
  size_t pair = 0;
  for (size_t i = 0; i < chunk.rows(); ++i) {
    const size_t first = pair;
    pair += duals.counts[i];
    if (pair == first) continue;
    const Row row = chunk.row(i, duals_buffer_);
    const double cost = costs_.cost(row);
    if (cost == 0) continue;
    const Sum sum = sum_of(duals.duals.subspan(first, pair - first), cost);
    const size_t true_class = numbers_[row.label];
    const auto add = [&](size_t feature, double value) {
      double* const v = v_.data() + (feature - begin_) * classes_;
      v[true_class] += sum.share * sum.all * value;
      for (size_t p = first; p < pair; ++p) v[duals.classes[p]] -= sum.share * duals.duals[p] * value;
    };
    const Row part = passes_ > 1 ? part_of(row, begin_, end) : row;
    for (size_t k = 0; k < part.index.size(); ++k) add(part.index[k], double{part.value[k]});
    if (problem_.has_bias() && end == problem_.weights()) add(end - 1, problem_.bias);
  }
}

void ClassCertifier::end_pass(std::span<const float> weights) {
  const std::span<const float> range = weights.subspan(begin_ * classes_, v_.size());
  v2_ += squared_norm_of(std::span<const double>(v_));
  for (size_t i = 0; i < v_.size(); ++i) {
    const double away = v_[i] - double{range[i]};
    drift_ += away * away;
  }
}

}  // namespace linblock
