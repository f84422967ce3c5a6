// RapidCheck generators of rows that are hard on a store: any label, indices up to the largest, values of every kind.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "store/chunk/format.h"
#include "support/rows.h"

namespace linblock::test {

inline rc::Gen<float> finite_float() {
  return rc::gen::map(rc::gen::arbitrary<uint32_t>(), [](uint32_t bits) {
    float value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    return std::isfinite(value) ? value : 1e38F;
  });
}

// Four features in five from a few hundred, so that some are frequent; the rest from anywhere.
inline rc::Gen<uint32_t> feature_index(uint32_t smallest) {
  return rc::gen::weightedOneOf<uint32_t>({{8, rc::gen::inRange<uint32_t>(smallest, 300)},
                                           {1, rc::gen::inRange<uint32_t>(300, 70000)},
                                           {1, rc::gen::inRange<uint32_t>(70000, format::kLargestIndex)},
                                           {1, rc::gen::just(format::kLargestIndex)}});
}

inline rc::Gen<std::vector<float>> values_of_a_kind(size_t count) {
  const auto repeat = [count](float value) { return std::vector<float>(count, value); };
  return rc::gen::oneOf(
      rc::gen::just(std::vector<float>(count, 1.0F)), rc::gen::map(finite_float(), repeat),
      rc::gen::container<std::vector<float>>(count, rc::gen::element(0.0F, -0.0F, 1.0F, 2.5F, -1e-45F)),
      rc::gen::container<std::vector<float>>(count, finite_float()));
}

inline rc::Gen<OwnedRow> arbitrary_row(uint32_t smallest_index, bool weighted) {
  const auto labels = rc::gen::weightedOneOf<int32_t>(
      {{6, rc::gen::element(-1, 1)},
       {2, rc::gen::inRange(-5, 300)},
       {1, rc::gen::inRange(-std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::max())}});
  const auto weights = weighted
                           ? rc::gen::oneOf(rc::gen::element(0.0F, 1.0F, 0.5F),
                                            rc::gen::map(finite_float(), [](float value) { return std::abs(value); }))
                           : rc::gen::just(1.0F);
  const auto indices = rc::gen::container<std::set<uint32_t>>(feature_index(smallest_index));
  return rc::gen::mapcat(indices, [=](const std::set<uint32_t>& index) {
    return rc::gen::map(rc::gen::tuple(labels, weights, values_of_a_kind(index.size())), [index](const auto& parts) {
      return OwnedRow{0, std::get<0>(parts), std::get<1>(parts), {index.begin(), index.end()}, std::get<2>(parts)};
    });
  });
}

// At least one row, numbered from 0.
inline rc::Gen<std::vector<OwnedRow>> arbitrary_rows(uint32_t smallest_index = 1, bool weighted = false) {
  return rc::gen::map(
      rc::gen::nonEmpty(rc::gen::container<std::vector<OwnedRow>>(arbitrary_row(smallest_index, weighted))),
      [](std::vector<OwnedRow> rows) {
        for (size_t i = 0; i < rows.size(); ++i) rows[i].id = i;
        return rows;
      });
}

// Equal bit for bit, so that 0 and -0 are two values.
inline bool same_rows(const std::vector<OwnedRow>& a, const std::vector<OwnedRow>& b) {
  const auto same_bits = [](const std::vector<float>& x, const std::vector<float>& y) {
    return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0);
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const OwnedRow& x, const OwnedRow& y) {
    return x.id == y.id && x.label == y.label && x.weight == y.weight && x.index == y.index &&
           same_bits(x.value, y.value);
  });
}

// For RapidCheck's reports: a failing case is small by then.
inline void showValue(const std::vector<OwnedRow>& rows, std::ostream& out) {
  out << rows.size() << " rows";
  for (size_t i = 0; i < rows.size() && i < 10; ++i) out << "\n  " << rows[i] << " (weight " << rows[i].weight << ")";
}

}  // namespace linblock::test
