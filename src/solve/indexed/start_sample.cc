#include "solve/indexed/start_sample.h"

#include <algorithm>
#include <numeric>

#include "base/clock.h"
#include "base/dot.h"
#include "objective/certificate.h"

namespace linblock {

namespace {

constexpr uint64_t kSalt = 0x57a27;     // apart from the seed's other uses
constexpr uint64_t kMostRows = 10'000;  // the paper's
constexpr uint64_t kLeastRows = 1'000;
constexpr uint64_t kShareOfRows = 50;  // one in so many
constexpr size_t kFewChunks = 16;      // of rows that were not shuffled, some from several places
constexpr int kMostRounds = 500;
constexpr int kRoundsToALook = 10;  // at the gap

// Numbers below `count` in random order.
std::vector<uint32_t> shuffled(size_t count, Random random) {
  std::vector<uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0U);
  for (size_t i = count; i > 1; --i) std::swap(numbers[i - 1], numbers[random.below(i)]);
  return numbers;
}

}  // namespace

size_t StartSample::usual_rows(const StoreInfo& info) {
  return std::min(info.rows, std::clamp(info.rows / kShareOfRows, kLeastRows, kMostRows));
}

StartSample::StartSample(const Problem& problem, size_t rows, uint64_t bytes, uint64_t seed)
    : problem_(problem), seed_(mix64(seed, kSalt)) {
  const Store& store = *problem.store;
  const std::vector<uint32_t> order = shuffled(store.chunks().size(), Random(seed_));
  const size_t chunk_share = store.info().buckets > 1 ? rows : (rows + kFewChunks - 1) / kFewChunks;
  Chunk chunk;
  const Stopwatch reading;
  // More chunks than a few, where those are too small.
  bool room = true;
  for (size_t i = 0; i < order.size() && rows_.size() < rows && room; ++i) {
    store.read(order[i], chunk);
    costs_.bytes += store.chunks()[order[i]].extent();
    const size_t missing = rows - rows_.size();
    const size_t chunks_left = order.size() - i;
    room = take(chunk, order[i], std::min(missing, std::max(chunk_share, (missing + chunks_left - 1) / chunks_left)),
                bytes);
  }
  costs_.read_seconds = costs_.wait_seconds = reading.seconds();
  std::sort(rows_.begin(), rows_.end(), [](const Sampled& a, const Sampled& b) {
    return a.origin.chunk != b.origin.chunk ? a.origin.chunk < b.origin.chunk : a.origin.row < b.origin.row;
  });
}

bool StartSample::take(const Chunk& chunk, uint32_t number, size_t count, uint64_t bytes) {
  RowBuffer buffer;
  for (const uint32_t at : shuffled(chunk.rows(), Random(seed_, uint64_t{number} + 1))) {
    if (count == 0) return true;
    const Row row = chunk.row(at, buffer);
    if (row.weight == 0) continue;
    const uint64_t held = (index_.size() + row.index.size()) * (sizeof(uint32_t) + sizeof(float)) +
                          (rows_.size() + 1) * (sizeof(Sampled) + sizeof(double) + sizeof(Support));
    if (2 * held > bytes && !rows_.empty()) return false;  // twice: vectors grow by copying
    rows_.push_back({.origin = {number, at},
                     .id = row.id,
                     .label = row.label,
                     .weight = row.weight,
                     .begin = index_.size(),
                     .end = index_.size() + row.index.size()});
    index_.insert(index_.end(), row.index.begin(), row.index.end());
    value_.insert(value_.end(), row.value.begin(), row.value.end());
    --count;
  }
  return true;
}

Row StartSample::row(size_t number) const {
  const Sampled& sampled = rows_[number];
  return {.id = sampled.id,
          .label = sampled.label,
          .weight = sampled.weight,
          .index = std::span(index_).subspan(sampled.begin, sampled.end - sampled.begin),
          .value = std::span(value_).subspan(sampled.begin, sampled.end - sampled.begin)};
}

StartSample::StartPoint StartSample::solve(const Task& task, double tolerance, const std::atomic<bool>* stop) const {
  return std::visit([&](const auto& loss) { return solve_with(loss, task, tolerance, stop); }, problem_.loss);
}

template <Loss L>
StartSample::StartPoint StartSample::solve_with(const L& loss, const Task& task, double tolerance,
                                                const std::atomic<bool>* stop) const {
  const RowCost costs(problem_, task);
  StartPoint start{.weights = std::vector<float>(problem_.weights(), 0.0F)};
  std::vector<float>& weights = start.weights;
  std::vector<double> alphas(rows_.size(), 0);
  const auto move = [&](const Row& row, double change) {
    add_scaled(row.index, row.value, static_cast<float>(change), weights.data());
    if (problem_.has_bias()) weights.back() += static_cast<float>(change * problem_.bias);
  };
  for (int round = 1; round <= kMostRounds && (stop == nullptr || !*stop); ++round) {
    for (const uint32_t i : shuffled(rows_.size(), Random(seed_, static_cast<uint64_t>(round)))) {
      const Row sampled_row = row(i);
      const double cost = costs.cost(sampled_row);
      if (cost == 0) continue;
      const double bias2 = problem_.has_bias() ? problem_.bias * problem_.bias : 0;
      const double margin = margin_of(sampled_row, costs.sign(sampled_row), problem_.bias, weights);
      const double from = alphas[i] == 0 ? loss.first_alpha(cost) : alphas[i];
      const double next = loss.dual_step(from, margin, std::max(squared_norm(sampled_row.value) + bias2, 1e-300), cost);
      if (next == alphas[i]) continue;
      move(sampled_row, costs.sign(sampled_row) * (next - alphas[i]));
      alphas[i] = next;
    }
    if (round % kRoundsToALook != 0) continue;
    double losses = 0;
    double values = 0;
    double w2 = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const Row sampled_row = row(i);
      const double cost = costs.cost(sampled_row);
      if (cost == 0) continue;
      losses += cost * loss.value(margin_of(sampled_row, costs.sign(sampled_row), problem_.bias, weights));
      if (alphas[i] != 0) values += loss.dual_value(alphas[i], cost);
    }
    for (const float weight : weights) w2 += double{weight} * double{weight};
    if (relative_gap(0.5 * w2 + losses, values - 0.5 * w2) <= tolerance) break;
  }
  // Anew, without what rounding has left on the way.
  std::fill(weights.begin(), weights.end(), 0.0F);
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (alphas[i] == 0) continue;
    const Row sampled_row = row(i);
    move(sampled_row, costs.sign(sampled_row) * alphas[i]);
    start.support.push_back({rows_[i].origin, sampled_row.id, alphas[i]});
  }
  return start;
}

}  // namespace linblock
