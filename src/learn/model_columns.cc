#include "learn/model_columns.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/file.h"
#include "base/team.h"

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

void ModelColumns::add(const Store& store, std::vector<std::vector<float>> group, const Team& team) {
  store.features();  // read before several threads ask for it
  team.for_each(group.size(), [&](size_t i) { sort_by_index(store, group[i]); });
  if (path_.empty()) {
    std::move(group.begin(), group.end(), std::back_inserter(columns_));
    return;
  }
  SnapshotWriter file(next_file());
  FieldWriter to(file);
  to("count", uint64_t{group.size()});
  for (size_t i = 0; i < group.size(); ++i) to(numbered("column", i), group[i]);
  file.commit();
  group.clear();
  add_from_file();
}

void ModelColumns::add_from_file() {
  files_.push_back(std::make_unique<FieldReader>(next_file()));
  FieldReader& from = *files_.back();
  const auto count = from.take<uint64_t>("count");
  for (uint64_t i = 0; i < count; ++i) {
    const std::string name = numbered("column", i);
    places_.push_back({.file = &from, .name = name, .rows = from.count<float>(name)});
    if (places_.back().rows != places_.front().rows) from.refuse_value(name);
  }
  from.finish();
}

uint64_t ModelColumns::rows() const {
  if (!columns_.empty()) return columns_.front().size();
  return places_.empty() ? 0 : places_.front().rows;
}

void ModelColumns::read(size_t column, uint64_t first, std::span<float> out) const {
  if (!places_.empty()) return places_[column].file->take_part(places_[column].name, first, out);
  std::copy_n(columns_[column].begin() + static_cast<ptrdiff_t>(first), out.size(), out.begin());
}

}  // namespace linblock
