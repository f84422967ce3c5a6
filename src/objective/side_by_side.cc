#include "objective/side_by_side.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace linblock {

namespace {

constexpr size_t kFeaturesPerPiece = 4096;

std::vector<size_t> widths_of(size_t tasks, size_t columns, size_t parts) {
  const size_t copied = columns > 1 ? std::min(tasks, columns) : 0;
  std::vector<size_t> widths(copied / kMostSideBySide, kMostSideBySide);
  if (copied % kMostSideBySide > 0) widths.push_back(copied % kMostSideBySide);
  widths.insert(widths.end(), tasks - copied, 1);
  while (widths.size() < std::min(parts, tasks)) {
    // 8 in halves, 5 as 4 and 1.
    const auto largest = std::max_element(widths.begin(), widths.end());
    const size_t first = std::bit_floor(*largest - 1);
    *largest -= first;
    widths.insert(largest, first);
  }
  return widths;
}

}  // namespace

void WeightGroup::exact_products(const Row& row, double* out) const {
  exact_dot_side_by_side(row.index, row.value, weights_.data(), width_, out);
  if (bias_ < 0) return;
  for (size_t c = 0; c < width_; ++c) out[c] += bias_ * double{bias_weights()[c]};
}

void WeightGroup::products(const Row& row, double* out) const {
  std::array<float, kMostSideBySide> sums;
  dot_side_by_side(row.index, row.value, weights_.data(), width_, sums.data());
  float all = 0;
  for (size_t c = 0; c < width_; ++c) {
    out[c] = double{sums[c]};
    all += sums[c] - sums[c];  // 0 unless one of them is no number
  }
  if (all != 0) [[unlikely]] {
    std::array<double, kMostSideBySide> exact;
    exact_dot_side_by_side(row.index, row.value, weights_.data(), width_, exact.data());
    for (size_t c = 0; c < width_; ++c)
      if (!std::isfinite(sums[c])) out[c] = exact[c];
  }
  if (bias_ < 0) return;
  for (size_t c = 0; c < width_; ++c) out[c] += bias_ * double{bias_weights()[c]};
}

void WeightGroup::add(const Row& row, const float* scales) const {
  add_scaled_side_by_side(row.index, row.value, scales, weights_.data(), width_);
  if (bias_ < 0) return;
  const std::span<float> last = weights_.last(width_);
  for (size_t c = 0; c < width_; ++c) last[c] += scales[c] * static_cast<float>(bias_);
}

SideBySide::SideBySide(std::vector<std::span<float>> tasks, size_t columns, size_t parts, double bias)
    : tasks_(std::move(tasks)) {
  const size_t features = tasks_.empty() ? 0 : tasks_.front().size();
  const std::vector<size_t> widths = widths_of(tasks_.size(), columns, parts);
  size_t copied = 0;
  for (const size_t width : widths)
    if (width > 1) copied += width;
  if (copied > 0) copies_ = std::make_unique_for_overwrite<float[]>(copied * features);
  float* free = copies_.get();
  size_t first = 0;
  for (const size_t width : widths) {
    copy_of_.push_back(width > 1 ? free : nullptr);
    groups_.emplace_back(first, width, width > 1 ? std::span(free, width * features) : tasks_[first], bias);
    if (width > 1) free += width * features;
    first += width;
  }
}

bool SideBySide::is_of(std::span<const std::span<float>> tasks) const {
  return std::equal(tasks.begin(), tasks.end(), tasks_.begin(), tasks_.end(),
                    [](const auto& a, const auto& b) { return a.data() == b.data() && a.size() == b.size(); });
}

template <class Copy>
void SideBySide::for_each_copied(const Team& team, const Copy& copy) const {
  if (!copies_) return;
  team.for_ranges(tasks_.front().size(), kFeaturesPerPiece, [&](size_t begin, size_t end) {
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (copy_of_[i] == nullptr) continue;
      const size_t width = groups_[i].width();
      for (size_t c = 0; c < width; ++c) {
        float* const own = tasks_[groups_[i].first() + c].data();
        float* const column = copy_of_[i] + c;
        for (size_t j = begin; j < end; ++j) copy(own[j], column[j * width]);
      }
    }
  });
}

void SideBySide::load(const Team& team) const {
  for_each_copied(team, [](float own, float& beside) { beside = own + 0.0F; });
}

void SideBySide::make_zeros_positive() const {
  for (size_t i = 0; i < groups_.size(); ++i)
    if (copy_of_[i] == nullptr)
      for (float& weight : tasks_[groups_[i].first()]) weight += 0.0F;
}

void SideBySide::put_back(const Team& team) const {
  for_each_copied(team, [](float& own, float beside) { own = beside; });
}

}  // namespace linblock
