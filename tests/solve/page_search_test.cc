// The order in which an index is searched, against the same worked out from the paper's definition without an index.
#include "solve/indexed/page_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "support/indexed_problems.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

using Vector = std::vector<double>;

// V(x) of a vector of length 1: all products of two of its parts.
Vector embedded(const Vector& x) {
  double length2 = 0;
  for (const double one : x) length2 += one * one;
  Vector result;
  for (const double a : x)
    for (const double b : x) result.push_back(length2 > 0 ? a * b / length2 : 0);
  return result;
}

double product(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Of the query -V(w) from the hyperplane half-way between two pivots, measured from `away` to `near`.
double beyond_boundary(const Vector& w, const Vector& near, const Vector& away) {
  const Vector query = embedded(w);
  const Vector a = embedded(near);
  const Vector b = embedded(away);
  Vector difference(a.size());
  for (size_t i = 0; i < a.size(); ++i) difference[i] = a[i] - b[i];
  const double length = std::sqrt(product(difference, difference));
  return length > 1e-6 ? -product(query, difference) / length : 0;
}

struct Case {
  uint32_t seed;
  double bias;
};
std::ostream& operator<<(std::ostream& out, const Case& one) { return out << one.seed << " bias " << one.bias; }

class SearchOrder : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override { build_index(store_, GetParam().bias, 10000, 4); }

  Vector weights(const Store& store) const {
    std::mt19937 random(GetParam().seed + 100);
    std::normal_distribution<double> normal;
    Vector w(problem_for(store, "hinge", 1, GetParam().bias).weights());
    for (double& one : w) one = normal(random);
    w[0] = 0;  // of no feature
    return w;
  }
  Vector pivot(const MetricForest::Node& node, size_t child, size_t size) const {
    Vector x(size);
    for (size_t i = 0; i < node.pivot_index(child).size(); ++i)
      x[node.pivot_index(child)[i]] = double{node.pivot_value(child)[i]};
    if (GetParam().bias >= 0) x.back() = GetParam().bias;
    return x;
  }
  // Of each page: the farthest boundary on the way to it. Best bin first is an order in which these never fall.
  void rank(const MetricForest& forest, const Vector& w, uint32_t number, double so_far,
            std::map<uint32_t, double>& ranks) const {
    const MetricForest::Node node = forest.read_node(number);
    std::vector<Vector> pivots;
    for (size_t k = 0; k < node.children.size(); ++k) pivots.push_back(pivot(node, k, w.size()));
    const auto angle = [&](size_t k) { return product(embedded(w), embedded(pivots[k])); };
    size_t closest = 0;
    for (size_t k = 1; k < pivots.size(); ++k)
      if (angle(k) < angle(closest)) closest = k;
    for (size_t k = 0; k < pivots.size(); ++k) {
      const MetricForest::Child& child = node.children[k];
      const double bias2 = std::max(0.0, GetParam().bias) * std::max(0.0, GetParam().bias);
      const double shortest2 = double{child.smallest_norm} * double{child.smallest_norm} + bias2;
      const double band = std::min(1.0, 1 / (product(w, w) * shortest2));
      const double own = k == closest ? 0 : beyond_boundary(w, pivots[closest], pivots[k]);
      const double farthest = std::max(so_far, own - band);
      if (child.is_page)
        ranks[child.number] = farthest;
      else
        rank(forest, w, child.number, farthest, ranks);
    }
  }
  std::map<uint32_t, double> ranks(const MetricForest& forest, const Vector& w) const {
    std::map<uint32_t, double> found;
    rank(forest, w, forest.trees()[0].root, -1, found);
    return found;
  }
  std::vector<uint32_t> searched(const MetricForest& forest, const Vector& w,
                                 const std::function<bool(uint32_t)>& is_due,
                                 const std::function<bool(uint32_t)>& can_be_left) const {
    PageCache cache(forest, uint64_t{1} << 20);
    ForestSearch search(forest, cache, 1);
    search.begin({.weights = w,
                  .bias = GetParam().bias,
                  .thorough = true,
                  .is_due = is_due,
                  .can_be_left = [&](uint32_t page, const MetricForest::Child&, double) { return can_be_left(page); }});
    std::vector<uint32_t> pages;
    while (const auto page = search.next()) {
      pages.push_back(*page);
      search.saw(0);
    }
    return pages;
  }
  static void expect_best_first(const std::vector<uint32_t>& pages, const std::map<uint32_t, double>& ranks) {
    // Angles between pivots are kept as floats.
    for (size_t i = 1; i < pages.size(); ++i)
      EXPECT_LE(ranks.at(pages[i - 1]), ranks.at(pages[i]) + 1e-4) << "page " << pages[i - 1] << " before " << pages[i];
  }

  const MemoryFolder folder_;
  const Store store_ = write_store(folder_, make_clusters(1200, 6, GetParam().seed), 100);
};

TEST_P(SearchOrder, IsBestBinFirstByTheNearestBoundary) {
  const MetricForest forest = MetricForest::open(store_);
  ASSERT_EQ(forest.trees().size(), 1U);
  ASSERT_GE(forest.pages().chunks().size(), 8U) << "too few pages to tell an order";
  const Vector w = weights(store_);
  const std::map<uint32_t, double> expected = ranks(forest, w);
  const auto pages = searched(
      forest, w, [](uint32_t) { return true; }, [](uint32_t) { return false; });
  EXPECT_EQ(std::set<uint32_t>(pages.begin(), pages.end()).size(), forest.pages().chunks().size());
  EXPECT_EQ(pages.size(), expected.size());
  expect_best_first(pages, expected);
  std::vector<uint32_t> others = pages;
  std::sort(others.begin(), others.end());
  EXPECT_NE(others, pages) << "the order in which they lie would do as well: a test of nothing";
}

TEST_P(SearchOrder, LeavesOutWhatIsNotDue) {
  const MetricForest forest = MetricForest::open(store_);
  const Vector w = weights(store_);
  const std::map<uint32_t, double> all = ranks(forest, w);
  auto pages = searched(
      forest, w, [](uint32_t page) { return page % 3 == 0; }, [](uint32_t page) { return page % 2 == 0; });
  expect_best_first(pages, all);
  std::vector<uint32_t> expected;
  for (const auto& [page, rank] : all)
    if (page % 3 == 0 && page % 2 != 0) expected.push_back(page);
  std::sort(pages.begin(), pages.end());
  EXPECT_EQ(pages, expected);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SearchOrder, testing::Values(Case{1, -1}, Case{2, -1}, Case{3, 1}, Case{4, 0.5}),
                         [](const auto& one) { return fmt::format("seed_{}", one.param.seed); });

}  // namespace
}  // namespace linblock
