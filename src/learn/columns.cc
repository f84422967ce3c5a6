#include "learn/columns.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"

namespace linblock {

// The map permutes the feature numbers: each of its cycles is followed once.
void sort_by_index(const Store& store, std::vector<float>& weights, size_t width) {
  const FeatureMap& features = store.features();
  const uint64_t count = store.info().feature_numbers();
  const auto at = [&](uint64_t place) { return weights.begin() + static_cast<ptrdiff_t>(place * width); };
  std::vector<float> first(width);
  std::vector<bool> placed(count, false);
  for (uint32_t start = 0; start < count; ++start) {
    if (placed[start]) continue;
    std::copy_n(at(start), width, first.begin());
    uint32_t index = start;
    while (true) {
      placed[index] = true;
      const uint32_t number = features.number(index);
      if (number == start) break;
      std::copy_n(at(number), width, at(index));
      index = number;
    }
    std::copy_n(first.begin(), width, at(index));
  }
  // Feature 0, where indices begin with 1, is none.
  if (count > 0) weights.erase(weights.begin(), at(static_cast<uint64_t>(store.info().index_base)));
}

std::string Columns::file_of(size_t column) const { return fmt::format("{}-{}", path_, column); }

void Columns::add(const Store& store, std::vector<float> weights) {
  sort_by_index(store, weights);
  if (path_.empty()) {
    columns_.push_back(std::move(weights));
    return;
  }
  SnapshotWriter writer(file_of(size()));
  writer.put("weights", std::span<const float>(weights));
  writer.commit();
  add_from_file();
}

void Columns::add_from_file() { files_.push_back(std::make_unique<SnapshotReader>(file_of(size()))); }

uint64_t Columns::rows() const {
  if (!columns_.empty()) return columns_.front().size();
  return files_.empty() ? 0 : files_.front()->count<float>("weights");
}

void Columns::read(size_t column, uint64_t first, std::span<float> out) const {
  if (!files_.empty()) return files_[column]->take_part("weights", first, out);
  std::copy_n(columns_[column].begin() + static_cast<ptrdiff_t>(first), out.size(), out.begin());
}

}  // namespace linblock
