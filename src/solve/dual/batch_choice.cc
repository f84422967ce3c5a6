#include "solve/dual/batch_choice.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/dot.h"
#include "base/random.h"
#include "solve/dual/batch_size.h"
#include "solve/dual/batches.h"

namespace linblock {

namespace {

constexpr size_t kMostEntries = 32768;
constexpr size_t kFewRows = 64;  // say nothing
constexpr int kPowerSteps = 8;
constexpr double kSafe = 3;          // over L
constexpr uint64_t kLeastRows = 16;  // a smaller batch gains nothing
constexpr double kMostHead = 0.5;    // of the nonzeros

// What a row costs with so many owners, in nanoseconds or so: a constant, since the choice must be the same everywhere.
// The head is walked by one thread, and the team meets twice for each batch.
double cost_of(uint64_t head, double head_nonzeros, double tail_nonzeros, uint64_t most_rows) {
  constexpr double kOwners = 16;
  const double rows = std::min(static_cast<double>(most_rows),
                               static_cast<double>(Batches::kMostNonzeros) / (head_nonzeros + tail_nonzeros + 1));
  return (head > 0 ? 20 + 1.5 * head_nonzeros : 0) + 6 * tail_nonzeros / kOwners + 3000 / rows;
}

}  // namespace

bool BatchSample::add(const Row& row) {
  if (ends_.size() == kMostRows || entries_.size() + row.index.size() > kMostEntries) return false;
  const double norm2 = squared_norm(row.value);
  if (!(norm2 > 0)) return true;
  const double scale = 1 / std::sqrt(norm2);
  for (size_t k = 0; k < row.index.size(); ++k)
    entries_.push_back({row.index[k], static_cast<float>(scale * double{row.value[k]})});
  ends_.push_back(entries_.size());
  return true;
}

std::vector<uint32_t> BatchSample::renumbered() const {
  const size_t slots = std::bit_ceil(2 * entries_.size() + 2);
  std::vector<uint32_t> feature_of(slots, UINT32_MAX);  // no feature has this number
  std::vector<uint32_t> number_of(slots);
  std::vector<uint32_t> numbers;
  numbers.reserve(entries_.size());
  uint32_t next = 0;
  for (const Entry& entry : entries_) {
    size_t slot = mix64(entry.feature, 0) & (slots - 1);
    while (feature_of[slot] != entry.feature && feature_of[slot] != UINT32_MAX) slot = (slot + 1) & (slots - 1);
    if (feature_of[slot] == UINT32_MAX) {
      feature_of[slot] = entry.feature;
      number_of[slot] = next++;
    }
    numbers.push_back(number_of[slot]);
  }
  return numbers;
}

double BatchSample::interference(uint64_t head, const std::vector<uint32_t>& numbers) const {
  const auto rows = static_cast<double>(ends_.size());
  std::vector<double> sums(entries_.size());
  std::vector<double> u(ends_.size());
  for (size_t i = 0; i < u.size(); ++i) u[i] = 1 + 0.5 * (static_cast<double>(mix64(i, 1) >> 11) * 0x1p-53);
  double diagonal = 0;
  for (const Entry& entry : entries_)
    if (entry.feature >= head) diagonal += double{entry.value} * double{entry.value};
  double largest = 0;
  for (int step = 0; step < kPowerSteps; ++step) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (size_t i = 0, k = 0; i < u.size(); ++i)
      for (; k < ends_[i]; ++k)
        if (entries_[k].feature >= head) sums[numbers[k]] += u[i] * double{entries_[k].value};
    double product = 0;
    double square = 0;
    double next_square = 0;
    for (size_t i = 0, k = 0; i < u.size(); ++i) {
      double next = 0;
      for (; k < ends_[i]; ++k)
        if (entries_[k].feature >= head) next += sums[numbers[k]] * double{entries_[k].value};
      product += u[i] * next;
      square += u[i] * u[i];
      next_square += next * next;
      u[i] = next;
    }
    if (!(next_square > 0) || !std::isfinite(next_square)) return 0;
    largest = product / square;
    const double scale = 1 / std::sqrt(next_square / rows);
    for (double& value : u) value *= scale;
  }
  return std::max(0.0, largest - diagonal / rows) / rows;
}

BatchChoice BatchSample::choose() const {
  if (ends_.size() < kFewRows) return {};
  const std::vector<uint32_t> numbers = renumbered();
  BatchChoice best;
  double least = 0;
  for (const uint64_t head : {0, 64, 256}) {
    const auto in_head = static_cast<double>(
        std::count_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.feature < head; }));
    const auto all = static_cast<double>(entries_.size());
    if (in_head > kMostHead * all) break;
    const double safe = kSafe / std::max(interference(head, numbers), 1e-6);
    const uint64_t rows = std::bit_floor(static_cast<uint64_t>(std::min(safe, static_cast<double>(BatchSize::kMost))));
    if (rows < kLeastRows) continue;
    const auto sampled = static_cast<double>(ends_.size());
    const double cost = cost_of(head, in_head / sampled, (all - in_head) / sampled, rows);
    if (best.rows > 1 && cost >= least) continue;
    best = {.rows = rows, .head = head};
    least = cost;
  }
  return best;
}

}  // namespace linblock
