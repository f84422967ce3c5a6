// Rows that own their memory, to compare what went in with what came out.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "store/core/store.h"
#include "store/core/unpack.h"

namespace linblock::test {

// `index` holds original feature indices, increasing.
struct OwnedRow {
  uint64_t id = 0;
  int32_t label = 0;
  float weight = 1;
  std::vector<uint32_t> index = {};
  std::vector<float> value = {};

  bool operator==(const OwnedRow&) const = default;
  Row view() const { return {.id = id, .label = label, .weight = weight, .index = index, .value = value}; }
};

inline std::ostream& operator<<(std::ostream& out, const OwnedRow& row) {
  out << "#" << row.id << " " << row.label;
  for (size_t i = 0; i < row.index.size(); ++i) out << " " << row.index[i] << ":" << row.value[i];
  return out;
}

inline OwnedRow own(const Row& row) {
  return {row.id, row.label, row.weight, {row.index.begin(), row.index.end()}, {row.value.begin(), row.value.end()}};
}

// A row with the store's feature numbers, with its original indices again.
inline OwnedRow original(const Row& row, const FeatureMap& features) {
  std::vector<std::pair<uint32_t, float>> pairs;
  for (size_t i = 0; i < row.index.size(); ++i) pairs.emplace_back(features.index(row.index[i]), row.value[i]);
  std::sort(pairs.begin(), pairs.end());
  OwnedRow owned{row.id, row.label, row.weight, {}, {}};
  for (const auto& [index, value] : pairs) {
    owned.index.push_back(index);
    owned.value.push_back(value);
  }
  return owned;
}

inline std::vector<OwnedRow> rows_in_order(const Store& store) {
  std::vector<OwnedRow> rows;
  for_each_row_in_order(store, [&](const Row& row) { rows.push_back(own(row)); });
  return rows;
}

}  // namespace linblock::test
