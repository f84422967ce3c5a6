#include "solve/indexed/page_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/dot.h"

namespace linblock {

namespace {

// A tree's best pages come first: after so many without a find it is left, and another one tried; at least so many, and
// more of a large tree, since two pages can be bad luck.
constexpr size_t kBarrenPages = 2;
constexpr size_t kBarrenShare = 50;  // one in so many of its pages
constexpr double kWidestBand = 1;    // of squared cosines

}  // namespace

void ForestSearch::begin(const PageQuery& query) {
  query_ = query;
  weights2_ = 0;
  for (const double weight : query.weights) weights2_ += weight * weight;
  trees_.resize(forest_.trees().size());
  std::iota(trees_.begin(), trees_.end(), 0U);
  Random random(seed_, query.turn);
  for (size_t i = trees_.size(); i > 1; --i) std::swap(trees_[i - 1], trees_[random.below(i)]);
  tree_ = nullptr;
  bins_ = {};
}

bool ForestSearch::enter_next_tree() {
  bins_ = {};
  barren_ = 0;
  while (!trees_.empty()) {
    tree_ = &forest_.trees()[trees_.back()];
    trees_.pop_back();
    due_nodes_.assign(tree_->last_node - tree_->first_node, 0);
    for (uint32_t page = tree_->first_page; page < tree_->last_page; ++page) {
      if (!query_.is_due(page)) continue;
      for (uint32_t node = forest_.parent_of_page(page);
           node != MetricForest::kNone && due_nodes_[node - tree_->first_node] == 0;
           node = forest_.parent_of_node(node))
        due_nodes_[node - tree_->first_node] = 1;
    }
    if (due_nodes_[tree_->root - tree_->first_node] == 0) continue;
    patience_ = std::max<size_t>(kBarrenPages, (tree_->last_page - tree_->first_page) / kBarrenShare);
    open(tree_->root, -kWidestBand);
    return true;
  }
  return false;
}

std::optional<uint32_t> ForestSearch::next() {
  for (;;) {
    if (bins_.empty() || (!query_.thorough && barren_ >= patience_)) {
      if (!enter_next_tree()) return std::nullopt;
      continue;
    }
    const Bin bin = bins_.top();
    bins_.pop();
    if (bin.is_page) return bin.number;
    open(bin.number, bin.rank);
  }
}

// With unit vectors, and V the embedding in which V(a).V(b) = (a.b)^2: the distance of the query -V(w) from the
// hyperplane half-way between pivots k and q is ((w.q)^2 - (w.k)^2) / |V(k) - V(q)|, negative on k's far side.
void ForestSearch::open(uint32_t number, double rank) {
  const std::shared_ptr<const MetricForest::Node> node = cache_.node(number);
  const size_t count = node->children.size();
  std::vector<double> scores(count);
  std::vector<double> cosines2(count);
  size_t closest = 0;
  for (size_t k = 0; k < count; ++k) {
    const double product = exact_dot(node->pivot_index(k), node->pivot_value(k), query_.weights.data());
    const double score = query_.bias >= 0 ? product + query_.bias * query_.weights.back() : product;
    scores[k] = score;
    const double norms2 = weights2_ * node->norm2[k];
    cosines2[k] = norms2 > 0 ? score * score / norms2 : 0;
    if (cosines2[k] < cosines2[closest]) closest = k;
  }
  for (size_t k = 0; k < count; ++k) {
    const MetricForest::Child& child = node->children[k];
    if (child.is_page ? !query_.is_due(child.number) || query_.can_be_left(child.number, child, scores[k])
                      : due_nodes_[child.number - tree_->first_node] == 0)
      continue;
    const double cosine = double{node->cosine(k, closest)};
    const double apart = std::sqrt(std::max(1e-12, 2 - 2 * cosine * cosine));
    double child_rank = k == closest ? 0 : (cosines2[k] - cosines2[closest]) / apart;
    // Short rows are within the margin at a larger angle: the band is as wide as for the shortest.
    const double bias2 = query_.bias >= 0 ? query_.bias * query_.bias : 0;
    const double shortest2 = double{child.smallest_norm} * double{child.smallest_norm} + bias2;
    child_rank -= std::min(kWidestBand, 1 / std::max(1e-300, weights2_ * shortest2));
    bins_.push({std::max(rank, child_rank), child.number, child.is_page});
  }
}

void ScanSearch::begin(const PageQuery& query) {
  query_ = query;
  left_ = pages_;
}

std::optional<uint32_t> ScanSearch::next() {
  for (; left_ > 0; --left_) {
    const auto page = static_cast<uint32_t>(at_);
    if (!query_.is_due(page)) {
      at_ = (at_ + 1) % pages_;
      continue;
    }
    --left_;
    at_ = (at_ + 1) % pages_;
    return page;
  }
  return std::nullopt;
}

std::optional<uint32_t> RandomSearch::next() {
  constexpr int kTries = 100;  // where nearly none is due, none is drawn
  for (int i = 0; i < kTries; ++i)
    if (const auto page = static_cast<uint32_t>(random_.below(pages_)); query_.is_due(page)) return page;
  return std::nullopt;
}

}  // namespace linblock
