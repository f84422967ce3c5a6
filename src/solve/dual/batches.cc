#include "solve/dual/batches.h"

#include "base/bytes.h"

namespace linblock {

namespace {

constexpr double kCostOfLine = 3;
constexpr size_t kNonzerosAhead = 384;
constexpr size_t kBytesPerNonzero = sizeof(uint32_t) + sizeof(float);

}  // namespace

uint64_t Batches::memory_bytes() {
  const uint64_t per_row =
      3 * (sizeof(Item) + sizeof(Batch::Place) + sizeof(Batch::Step) + sizeof(uint32_t) * (kMostOwners + 2)) +
      2 * sizeof(double) * kMostOwners;
  return kMostRows * per_row + 3 * kMostNonzeros * kBytesPerNonzero;
}

Batches::Batches(const Problem& problem, std::vector<float>& weights, const Team& team, size_t head,
                 size_t rows_to_remember)
    : bias_(problem.bias),
      weights_(weights),
      team_(team),
      head_(std::min(head, weights.size() - (problem.has_bias() ? 1 : 0))),
      owners_(team.owners()),
      norms_(rows_to_remember),
      all_cuts_(rows_to_remember * (owners_ + 1)),
      margins_(owners_ * kMostRows),
      later_(owners_ * kMostRows) {
  for (Batch& batch : batches_) {
    batch.items.resize(kMostRows);
    batch.places.resize(kMostRows);
    batch.steps.resize(kMostRows);
    batch.offsets.resize(kMostRows);
    batch.cuts.resize(kMostRows * (owners_ + 1));
    batch.head_before.resize(head_ + 1);
  }
}

// A row of the batch: where its ranges begin, and, if it is held encoded, the row itself.
void Batches::take(const RowBuffer& buffer, size_t row_number, size_t number, Batch& batch) {
  Item& item = batch.items[number];
  const Row row = item.row;
  const size_t count = row.index.size();
  if (count > 0 && row.index.data() == buffer.index.data()) {
    uint32_t* const to = batch.index.data() + batch.offsets[number];
    std::copy_n(row.index.data(), count, to);
    item.row.index = {to, count};
  }
  if (count > 0 && row.value.data() == buffer.value.data()) {
    float* const to = batch.value.data() + batch.offsets[number];
    std::copy_n(row.value.data(), count, to);
    item.row.value = {to, count};
  }
  const size_t ranges = owners_ + 1;
  std::array<uint32_t, kMostOwners + 1> cuts;
  if (!norms_.empty() && norms_[row_number] != 0) {
    item.norm2 = norms_[row_number];
    std::copy_n(all_cuts_.begin() + static_cast<ptrdiff_t>(row_number * ranges), ranges, cuts.begin());
  } else {
    find_cuts(item.row, cuts);
    item.norm2 = squared_norm(item.row.value);
    if (!norms_.empty()) {
      norms_[row_number] = item.norm2;
      std::copy_n(cuts.begin(), ranges, all_cuts_.begin() + static_cast<ptrdiff_t>(row_number * ranges));
    }
  }
  for (size_t owner = 0; owner < ranges; ++owner) batch.cuts[owner * kMostRows + number] = cuts[owner];
  if (bias_ >= 0) item.norm2 += bias_ * bias_;
  batch.places[number] = {item.row.index.data(), item.row.value.data()};
  batch.steps[number] = {.exponent = (exponent_above(item.norm2) + 1) >> 1};
}

void Batches::find_cuts(const Row& row, std::array<uint32_t, kMostOwners + 1>& cuts) const {
  const uint32_t* const begin = row.index.data();
  const uint32_t* const end = begin + row.index.size();
  const uint32_t* from = begin;
  while (from != end && *from < head_) ++from;  // few, and in one or two cache lines
  cuts[0] = static_cast<uint32_t>(from - begin);
  for (size_t owner = 1; owner < owners_; ++owner) {
    from = std::lower_bound(from, end, bounds_[owner]);
    cuts[owner] = static_cast<uint32_t>(from - begin);
  }
  cuts[owners_] = static_cast<uint32_t>(end - begin);
}

// Ranges that cost about as much each, by the features of about one batch: a nonzero costs 1, and a cache line of
// weights that was not touched before in the batch kCostOfLine more. They do not show in the bits.
void Batches::set_bounds(std::vector<uint32_t> seen) {
  constexpr uint32_t kFeaturesPerLine = 16;
  std::sort(seen.begin(), seen.end());
  std::vector<double> costs(seen.size());
  double all = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    const bool new_line = i == 0 || seen[i] / kFeaturesPerLine != seen[i - 1] / kFeaturesPerLine;
    costs[i] = all += new_line ? 1 + kCostOfLine : 1;
  }
  bounds_.assign(1, static_cast<uint32_t>(head_));
  for (size_t owner = 1; owner < owners_; ++owner) {
    const double share = all * static_cast<double>(owner) / static_cast<double>(owners_);
    const auto place = std::lower_bound(costs.begin(), costs.end(), share) - costs.begin();
    const uint32_t bound = seen.empty() ? UINT32_MAX - kFeaturesPerLine : seen[static_cast<size_t>(place)];
    bounds_.push_back(std::max(bounds_.back(), round_up(bound, kFeaturesPerLine)));  // no line has two owners
  }
}

void Batches::add_steps(const Batch& batch, size_t owner) {
  double* const later = later_.data() + owner * kMostRows;
  const uint32_t* const begins = batch.cuts.data() + owner * kMostRows;
  const uint32_t* const ends = begins + kMostRows;
  for (size_t i = 0; i < batch.size; ++i) {
    const auto [change, exponent] = batch.steps[i];
    if (change == 0) {
      later[i] = 0;
      continue;
    }
    const size_t count = ends[i] - begins[i];
    later[i] = grid_dot_and_add({batch.places[i].index + begins[i], count}, {batch.places[i].value + begins[i], count},
                                change, weights_.data(), SumGrid(exponent + exponent_));
  }
}

void Batches::make_margins(const Batch& batch, size_t owner) {
  double* const margins = margins_.data() + owner * kMostRows;
  const uint32_t* const begins = batch.cuts.data() + owner * kMostRows;
  const uint32_t* const ends = begins + kMostRows;
  // The shorter its part of a row is, the more rows are on their way to its cache.
  const size_t rows_ahead =
      std::clamp<size_t>(kNonzerosAhead * batch.size * owners_ / std::max<size_t>(1, batch.nonzeros), 2, 16);
  for (size_t i = 0; i < batch.size; ++i) {
    const size_t ahead = i + rows_ahead;
    if (ahead < batch.size) prefetch(batch.places[ahead], begins[ahead], ends[ahead]);
    const size_t count = ends[i] - begins[i];
    margins[i] = grid_dot({batch.places[i].index + begins[i], count}, {batch.places[i].value + begins[i], count},
                          weights_.data(), SumGrid(batch.steps[i].exponent + exponent_));
  }
}

void Batches::on_ranges(const Batch* steps, const Batch* margins) {
  const auto work = [&](size_t owner) {
    if (steps != nullptr) add_steps(*steps, owner);
    if (margins != nullptr) make_margins(*margins, owner);
  };
  const size_t nonzeros = (steps != nullptr ? steps->nonzeros : 0) + (margins != nullptr ? margins->nonzeros : 0);
  if (nonzeros >= kNonzerosForThreads) return team_.for_each_owned(owners_, work);
  for (size_t owner = 0; owner < owners_; ++owner) work(owner);
}

double Batches::sum_of(const std::vector<double>& parts, size_t number) const {
  double sum = 0;
  for (size_t owner = 0; owner < owners_; ++owner) sum += parts[owner * kMostRows + number];
  return sum;
}

double Batches::head_product(const Batch& batch, size_t number) const {
  const Row& row = batch.items[number].row;
  const size_t count = batch.cuts[number];
  const double sum = bias_ >= 0 ? bias_ * double{weights_.back()} : 0;
  return count == 0 ? sum : sum + double{dot(row.index.first(count), row.value.first(count), weights_.data())};
}

void Batches::move_head(const Batch& batch, size_t number) {
  const Item& item = batch.items[number];
  const size_t count = batch.cuts[number];
  const float change = batch.steps[number].change;
  add_scaled(item.row.index.first(count), item.row.value.first(count), change, weights_.data());
  if (bias_ >= 0) weights_.back() += change * static_cast<float>(bias_);
}

double Batches::squared_head(const Batch& batch, size_t number) const {
  return squared_norm(batch.items[number].row.value.first(batch.cuts[number])) + (bias_ >= 0 ? bias_ * bias_ : 0);
}

double Batches::squared_head_change(const Batch& batch) const {
  double sum = 0;
  const auto add = [&](float now, float before) { sum += std::pow(double{now} - double{before}, 2); };
  for (size_t j = 0; j < head_; ++j) add(weights_[j], batch.head_before[j]);
  if (bias_ >= 0) add(weights_.back(), batch.head_before[head_]);
  return sum;
}

}  // namespace linblock
