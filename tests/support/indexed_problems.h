// Problems for indexed block descent: a store with an index of many small pages; orders of pages that are as bad as can
// be; and what truncated losses come to, worked out apart from everything in src.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "solve/indexed/indexed_task.h"
#include "solve/solve.h"
#include "store/index/build_forest.h"
#include "support/memory_folder.h"
#include "support/small_problems.h"

namespace linblock::test {

inline void build_index(const Store& store, double bias = -1, uint64_t tree_rows = 100, uint32_t branch = 4) {
  ForestOptions options;
  options.tree_rows = tree_rows;
  options.branch = branch;
  options.bias = bias;
  options.page_bytes = format::kSmallestChunkBytes;
  build_forest(store, options);
}

// Rows in a few tight clusters, which an index can tell apart; a tenth of them with the wrong label.
inline Data make_clusters(size_t rows, uint32_t features, uint32_t seed, double noise = 0.1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<double> unit;
  constexpr size_t kClusters = 6;
  std::vector<std::vector<float>> centers(kClusters, std::vector<float>(features));
  for (auto& center : centers)
    for (float& x : center) x = 1.5F * normal(random);
  Data data;
  data.features = features;
  for (size_t i = 0; i < rows; ++i) {
    const size_t cluster = random() % kClusters;
    OwnedRow row;
    row.label = (cluster % 2 == 0) == (unit(random) > noise) ? 1 : -1;
    for (uint32_t j = 0; j < features; ++j) {
      row.index.push_back(j + 1);
      row.value.push_back(centers[cluster][j] + 0.4F * normal(random));
    }
    data.rows.push_back(row);
  }
  data.rows[0].label = 1;
  data.rows[1].label = -1;
  return data;
}

inline double margin_at(const DenseRow& row, const std::vector<double>& weights) {
  double sum = 0;
  for (size_t j = 0; j < row.x.size(); ++j) sum += row.x[j] * weights[j];
  return row.y * sum;
}

// The weights of the features as dense() numbers them, with the bias last.
inline std::vector<double> dense_weights(const std::vector<float>& weights) {
  if (weights.empty()) return {};  // no row has a feature
  return {weights.begin() + 1, weights.end()};
}

inline double objective_at(const std::string& loss, const std::vector<DenseRow>& rows,
                           const std::vector<double>& weights, double most = 1e300) {
  double sum = 0;
  for (const double w : weights) sum += 0.5 * w * w;
  for (const DenseRow& row : rows) sum += row.cost * std::min(most, reference_loss(loss, margin_at(row, weights)));
  return sum;
}

// Those that are no outliers.
inline Data insiders(const Data& data, const std::string& loss, const std::vector<DenseRow>& rows,
                     const std::vector<double>& weights, double s) {
  Data inside{.rows = {}, .features = data.features};
  for (size_t i = 0; i < rows.size(); ++i)
    if (reference_loss(loss, margin_at(rows[i], weights)) <= 1 + s) inside.rows.push_back(data.rows[i]);
  return inside;
}

// The pages in an order that has nothing to do with the query, or the very opposite of what would be right.
class StubbornSearch : public PageSearch {
 public:
  enum class Order { random, backward };
  StubbornSearch(size_t pages, Order order) : order_(order), pages_(static_cast<uint32_t>(pages)) {}
  void begin(const PageQuery& query) override {
    query_ = query;
    left_.clear();
    for (uint32_t page = 0; page < pages_; ++page)
      if (query.is_due(page)) left_.push_back(page);
    std::mt19937 random(static_cast<uint32_t>(query.turn));
    if (order_ == Order::random) std::shuffle(left_.begin(), left_.end(), random);
    // Those with the fewest finds come first again and again.
    if (order_ == Order::backward)
      std::stable_sort(left_.begin(), left_.end(), [&](uint32_t a, uint32_t b) { return finds_[a] < finds_[b]; });
    std::reverse(left_.begin(), left_.end());
  }
  std::optional<uint32_t> next() override {
    if (left_.empty()) return std::nullopt;
    last_ = left_.back();
    left_.pop_back();
    return last_;
  }
  void saw(size_t rows) override { finds_[last_] += rows; }

 private:
  Order order_;
  uint32_t pages_;
  uint32_t last_ = 0;
  PageQuery query_;
  std::vector<uint32_t> left_;
  std::map<uint32_t, size_t> finds_;
};

}  // namespace linblock::test
