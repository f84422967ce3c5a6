#include "store/index/tree_builder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/random.h"

namespace linblock {

namespace {

constexpr size_t kSampleStep = 16;  // of the rows whose angles to the root pivots are measured
constexpr double kSlack = 1e-12;    // what sums of a million squares can be off by
constexpr unsigned kMostStuck = 3;  // splits in a row that hardly part their rows

constexpr float kMostFloat = std::numeric_limits<float>::max();

float rounded_up(double value) {
  if (value > kMostFloat) return std::numeric_limits<float>::infinity();
  const auto near = static_cast<float>(value);
  return static_cast<double>(near) < value ? std::nextafter(near, std::numeric_limits<float>::infinity()) : near;
}
float rounded_down(double value) {
  if (value > kMostFloat) return kMostFloat;
  const auto near = static_cast<float>(value);
  return static_cast<double>(near) > value ? std::nextafter(near, 0.0F) : near;
}

double square_sum(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return sum;
}

// Both sums over two rows' entries, in order: nothing cancels, so equal rows are at distance 0.
template <typename Pair, typename Single>
void merge(const Row& a, const Row& b, Pair&& pair, Single&& single) {
  size_t i = 0;
  size_t j = 0;
  while (i < a.index.size() && j < b.index.size()) {
    if (a.index[i] == b.index[j])
      pair(static_cast<double>(a.value[i++]), static_cast<double>(b.value[j++]));
    else if (a.index[i] < b.index[j])
      single(static_cast<double>(a.value[i++]));
    else
      single(static_cast<double>(b.value[j++]));
  }
  for (; i < a.index.size(); ++i) single(static_cast<double>(a.value[i]));
  for (; j < b.index.size(); ++j) single(static_cast<double>(b.value[j]));
}

double distance2(const Row& a, const Row& b) {
  double sum = 0;
  merge(
      a, b, [&](double x, double y) { sum += (x - y) * (x - y); }, [&](double x) { sum += x * x; });
  return sum;
}

double product(const Row& a, const Row& b) {
  double sum = 0;
  merge(
      a, b, [&](double x, double y) { sum += x * y; }, [](double) {});
  return sum;
}

// Rows order_[begin, end) that belong together, and the row that stands for them.
struct Group {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t pivot = 0;  // among rows_
  ChunkBuilder::Size size = {};

  uint32_t rows() const { return end - begin; }
};

class TreeBuilding {
 public:
  TreeBuilding(const std::vector<Chunk>& chunks, const TreeOptions& options, const std::function<void()>& tick)
      : chunks_(chunks),
        options_(options),
        tick_(tick),
        bias2_(options.bias > 0 ? options.bias * options.bias : 0),
        products_(options.features, options.branch, options.dense_bytes) {
    for (uint32_t chunk = 0; chunk < chunks.size(); ++chunk)
      for (uint32_t row = 0; row < chunks[chunk].rows(); ++row)
        if (!chunks[chunk].removed(row)) rows_.push_back({chunk, row});
    norm2_.reserve(rows_.size());
    for (uint32_t row = 0; row < rows_.size(); ++row) norm2_.push_back(square_sum(view(row).value));
    order_.resize(rows_.size());
    std::iota(order_.begin(), order_.end(), 0);
    child_of_.resize(rows_.size());
    scratch_.resize(rows_.size());
  }

  TreeDraft run() {
    draft_.page_begin.push_back(0);
    draft_.nodes.emplace_back();
    draft_.node_parents.push_back(kNoNode);
    const auto all = static_cast<uint32_t>(order_.size());
    work_.push_back({.node = 0, .rows = {.end = all, .size = size_of(0, all)}});
    while (!work_.empty()) {
      tick_();
      const Work next = work_.back();
      work_.pop_back();
      split(next);
    }
    put_in_place();
    return std::move(draft_);
  }

 private:
  struct Work {
    uint32_t node = 0;
    Group rows;
    unsigned stuck = 0;
  };

  Row view(uint32_t row) const { return chunks_[rows_[row].chunk].row(rows_[row].row, buffer_); }
  uint64_t id(uint32_t row) const { return chunks_[rows_[row].chunk].id(rows_[row].row); }
  int32_t label(uint32_t row) const { return chunks_[rows_[row].chunk].label(rows_[row].row); }
  ChunkBuilder::Size size_of(uint32_t row) const { return chunks_[rows_[row].chunk].size_of(rows_[row].row); }
  ChunkBuilder::Size size_of(uint32_t begin, uint32_t end) const {
    ChunkBuilder::Size size;
    for (uint32_t i = begin; i < end; ++i) size += size_of(order_[i]);
    return size;
  }
  bool is_page(const Group& group) const { return group.size.fits(options_.page_bytes); }

  void split(const Work& work) {
    const Group& rows = work.rows;
    if (is_page(rows)) {  // of a whole tree only: a root has a child at least
      finish(work, {{rows.begin, rows.end, order_[rows.begin], rows.size}}, 0);
      return;
    }
    const std::vector<uint32_t> pivots = draw_pivots(rows, work.node);
    assign(rows, pivots, work.node == 0);
    std::vector<Group> groups = gather(rows, pivots);
    const uint32_t largest = std::max_element(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
                               return a.rows() < b.rows();
                             })->rows();
    const bool stuck = largest > rows.rows() - rows.rows() / 8;
    if (groups.size() == 1 || (stuck && work.stuck == kMostStuck)) return cut_by_id(work);
    groups = join(std::move(groups));
    if (groups.size() == 1) return cut_by_id(work);
    finish(work, groups, stuck ? work.stuck + 1 : 0);
  }

  // Distinct rows, which come to stand first; fewer where there are few pages to be made.
  std::vector<uint32_t> draw_pivots(const Group& rows, uint32_t node) {
    const uint64_t pages = (rows.size.bytes() + options_.page_bytes - 1) / options_.page_bytes;
    const auto count =
        static_cast<uint32_t>(std::min<uint64_t>({options_.branch, std::max<uint64_t>(2, 2 * pages), rows.rows()}));
    Random random(options_.seed, node);
    std::vector<uint32_t> pivots;
    for (uint32_t i = 0; i < count; ++i) {
      std::swap(order_[rows.begin + i], order_[rows.begin + i + random.below(rows.rows() - i)]);
      pivots.push_back(order_[rows.begin + i]);
    }
    return pivots;
  }

  // Each row to the pivot with the largest cos^2, the first of equals. Pivots have unit length here, so the row's own
  // does not matter, unless it is so large or small that floats cannot hold the products.
  void assign(const Group& rows, const std::vector<uint32_t>& pivots, bool root) {
    std::vector<Row> views;
    std::vector<double> scales;
    std::vector<double> bias(pivots.size());
    for (size_t k = 0; k < pivots.size(); ++k) {
      const double norm2 = norm2_[pivots[k]] + bias2_;
      views.push_back(view(pivots[k]));
      scales.push_back(norm2 > 0 ? 1 / std::sqrt(norm2) : 0);
      bias[k] = bias2_ * scales[k];
    }
    products_.set(views, scales);
    for (uint32_t i = rows.begin; i < rows.end; ++i) {
      const uint32_t row = order_[i];
      const double norm2 = norm2_[row] + bias2_;
      const bool extreme = norm2 > 1e36 || (norm2 > 0 && norm2 < 1e-30);
      const double scale = extreme ? 1 / std::sqrt(norm2) : 1;
      products_.of(view(row), scale, cosines_);
      uint16_t best = 0;
      for (size_t k = 0; k < pivots.size(); ++k) {
        cosines_[k] = std::abs(cosines_[k] + static_cast<float>(bias[k] * scale));
        if (cosines_[k] > cosines_[best]) best = static_cast<uint16_t>(k);
      }
      child_of_[i] = best;
      if (root && i % kSampleStep == 0 && norm2 > 0) measure(pivots.size(), 1 / (std::sqrt(norm2) * scale), best);
    }
  }

  // Angles of a row to the root pivots; `unit` makes cosines of the products.
  void measure(size_t pivots, double unit, size_t best) {
    double sum = 0;
    for (size_t k = 0; k < pivots; ++k) {
      const double cosine = std::min(1.0, cosines_[k] * unit);
      const double angle = std::acos(cosine * cosine);
      sum += angle;
      if (k == best) draft_.nearest_angle += angle;
    }
    draft_.mean_angle += sum / static_cast<double>(pivots);
  }

  // Puts the rows of each pivot side by side; pivots without rows go.
  std::vector<Group> gather(const Group& rows, const std::vector<uint32_t>& pivots) {
    std::vector<uint32_t> begins(pivots.size() + 1, 0);
    for (uint32_t i = rows.begin; i < rows.end; ++i) ++begins[child_of_[i] + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    std::vector<uint32_t> next(begins.begin(), begins.end() - 1);
    for (uint32_t i = rows.begin; i < rows.end; ++i) scratch_[rows.begin + next[child_of_[i]]++] = order_[i];
    std::copy(scratch_.begin() + rows.begin, scratch_.begin() + rows.end, order_.begin() + rows.begin);
    std::vector<Group> groups;
    for (size_t k = 0; k < pivots.size(); ++k)
      if (begins[k + 1] > begins[k])
        groups.push_back({rows.begin + begins[k], rows.begin + begins[k + 1], pivots[k],
                          size_of(rows.begin + begins[k], rows.begin + begins[k + 1])});
    return groups;
  }

  // Groups of less than half a page share one: with the largest, those nearest to it that still fit.
  std::vector<Group> join(std::vector<Group> groups) {
    const auto small = [&](const Group& group) {
      return is_page(group) && 2 * group.size.bytes() < options_.page_bytes;
    };
    const auto first_small =
        std::stable_partition(groups.begin(), groups.end(), [&](const Group& g) { return !small(g); });
    std::stable_sort(first_small, groups.end(), [](const Group& a, const Group& b) { return a.rows() > b.rows(); });
    std::vector<Group> joined(groups.begin(), first_small);
    std::vector<Group> left(first_small, groups.end());
    // Rows are moved into a new order at the end; until then a joined group is a list of its parts.
    std::vector<std::vector<Group>> parts;
    parts.reserve(groups.size());
    for (const Group& group : joined) parts.push_back({group});
    while (!left.empty()) {
      Group leader = left.front();
      parts.push_back({leader});
      std::vector<std::pair<double, size_t>> near;
      for (size_t i = 1; i < left.size(); ++i) near.emplace_back(-cosine2(leader.pivot, left[i].pivot), i);
      std::sort(near.begin(), near.end());
      std::vector<uint8_t> taken(left.size(), 0);
      taken[0] = 1;
      for (const auto& [unused, i] : near) {
        ChunkBuilder::Size together = leader.size;
        together += left[i].size;
        if (!together.fits(options_.page_bytes)) continue;
        leader.size = together;
        parts.back().push_back(left[i]);
        taken[i] = 1;
      }
      joined.push_back(leader);
      std::vector<Group> rest;
      for (size_t i = 0; i < left.size(); ++i)
        if (taken[i] == 0) rest.push_back(left[i]);
      left = std::move(rest);
    }
    uint32_t at = std::min_element(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
                    return a.begin < b.begin;
                  })->begin;
    const uint32_t begin = at;
    for (size_t i = 0; i < joined.size(); ++i) {
      joined[i].begin = at;
      for (const Group& part : parts[i]) {
        std::copy(order_.begin() + part.begin, order_.begin() + part.end, scratch_.begin() + at);
        at += part.rows();
      }
      joined[i].end = at;
    }
    std::copy(scratch_.begin() + begin, scratch_.begin() + at, order_.begin() + begin);
    return joined;
  }

  // Pivots do not part these rows, as when they are all equal: neighbors by id stay together.
  void cut_by_id(const Work& work) {
    const Group& rows = work.rows;
    const auto by_id = [this](uint32_t a, uint32_t b) { return id(a) < id(b); };
    std::sort(order_.begin() + rows.begin, order_.begin() + rows.end, by_id);
    std::vector<Group> groups;
    for (uint32_t i = rows.begin; i < rows.end; ++i) {
      ChunkBuilder::Size with = groups.empty() ? ChunkBuilder::Size() : groups.back().size;
      with += size_of(order_[i]);
      if (groups.empty() || !with.fits(options_.page_bytes)) {
        groups.push_back({i, i + 1, order_[i], size_of(order_[i])});
      } else {
        groups.back().end = i + 1;
        groups.back().size = with;
      }
    }
    const size_t pages = groups.size();
    if (pages > options_.branch) {
      std::vector<Group> parts;
      for (size_t part = 0; part < options_.branch; ++part) {
        Group whole = groups[part * pages / options_.branch];
        for (size_t i = part * pages / options_.branch + 1; i < (part + 1) * pages / options_.branch; ++i) {
          whole.end = groups[i].end;
          whole.size += groups[i].size;
        }
        parts.push_back(whole);
      }
      groups = std::move(parts);
    }
    finish(work, groups, 0);
  }

  // The groups become children: pages now, nodes to be split later.
  void finish(const Work& work, const std::vector<Group>& groups, unsigned stuck) {
    ForestNode node;
    const size_t count = groups.size();
    node.begin.push_back(0);
    for (const Group& group : groups) {
      const Row pivot = view(group.pivot);
      node.norm2.push_back(norm2_[group.pivot] + bias2_);
      node.index.insert(node.index.end(), pivot.index.begin(), pivot.index.end());
      node.value.insert(node.value.end(), pivot.value.begin(), pivot.value.end());
      node.begin.push_back(static_cast<uint32_t>(node.index.size()));
      node.children.push_back(child_of(group, work.node));
    }
    node.cosines.assign(count * count, 1.0F);
    for (size_t i = 0; i < count; ++i)
      for (size_t j = 0; j < i; ++j)
        node.cosines[i * count + j] = node.cosines[j * count + i] =
            static_cast<float>(cosine(groups[i].pivot, groups[j].pivot));
    for (size_t i = count; i-- > 0;)
      if (!node.children[i].is_page) work_.push_back({node.children[i].number, groups[i], stuck});
    draft_.nodes[work.node] = std::move(node);
  }

  ForestChild child_of(const Group& group, uint32_t parent) {
    ForestChild child{.is_page = is_page(group), .rows = group.rows()};
    double radius2 = 0;
    double least = std::numeric_limits<double>::infinity();
    double most = 0;
    const Row pivot = view(group.pivot);
    for (uint32_t i = group.begin; i < group.end; ++i) {
      const uint32_t row = order_[i];
      child.label_bits |= label_bit(label(row));
      radius2 = std::max(radius2, distance2(view(row), pivot));
      least = std::min(least, norm2_[row]);
      most = std::max(most, norm2_[row]);
    }
    child.radius = rounded_up(std::sqrt(radius2) * (1 + kSlack));
    child.smallest_norm = rounded_down(std::sqrt(least) * (1 - kSlack));
    child.largest_norm = rounded_up(std::sqrt(most) * (1 + kSlack));
    if (child.is_page) {
      child.number = static_cast<uint32_t>(draft_.page_parents.size());
      draft_.page_parents.push_back(parent);
      pages_.push_back({group.begin, group.end});
    } else {
      child.number = static_cast<uint32_t>(draft_.nodes.size());
      draft_.nodes.emplace_back();
      draft_.node_parents.push_back(parent);
    }
    return child;
  }

  double cosine(uint32_t a, uint32_t b) const {
    const double norms = std::sqrt((norm2_[a] + bias2_)) * std::sqrt(norm2_[b] + bias2_);
    return norms > 0 ? std::clamp((product(view(a), view(b)) + bias2_) / norms, -1.0, 1.0) : 0;
  }
  double cosine2(uint32_t a, uint32_t b) const { return cosine(a, b) * cosine(a, b); }

  void put_in_place() {
    draft_.rows.reserve(rows_.size());
    const auto by_id = [this](uint32_t a, uint32_t b) { return id(a) < id(b); };
    for (const auto& [begin, end] : pages_) {
      std::sort(order_.begin() + begin, order_.begin() + end, by_id);
      for (uint32_t i = begin; i < end; ++i) draft_.rows.push_back(rows_[order_[i]]);
      draft_.page_begin.push_back(static_cast<uint32_t>(draft_.rows.size()));
    }
  }

  const std::vector<Chunk>& chunks_;
  const TreeOptions& options_;
  const std::function<void()>& tick_;
  const double bias2_;
  PivotProducts products_;
  std::vector<TreeRow> rows_;
  std::vector<double> norm2_;  // without the bias
  std::vector<uint32_t> order_;
  std::vector<uint16_t> child_of_;  // by place in order_
  std::vector<uint32_t> scratch_;
  std::vector<float> cosines_;
  std::vector<Work> work_;
  std::vector<std::pair<uint32_t, uint32_t>> pages_;  // ranges of order_
  TreeDraft draft_;
  mutable RowBuffer buffer_;  // not used: the chunks are decoded
};

}  // namespace

TreeDraft build_tree(const std::vector<Chunk>& chunks, const TreeOptions& options, const std::function<void()>& tick) {
  return TreeBuilding(chunks, options, tick).run();
}

}  // namespace linblock
