// Do weights interleaved by feature pay, where many tasks look at the same rows? Plain dual coordinate descent (squared
// hinge, cost 1, one thread, all rows in memory, no row ever left out) for the first classes of a store: each task with
// weights of its own, block by block; and all tasks together, with the weights of a feature side by side, so that one
// memory access serves them all.
//
//   interleaved STORE CLASSES PASSES
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/dot.h"
#include "base/random.h"
#include "store/block_source.h"
#include "store/schedule.h"

namespace linblock {
namespace {

constexpr size_t kLanes = 8;
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));

struct Visitor {
  Row row;
  size_t number = 0;  // among all rows
};

double next_alpha(double alpha, double margin, double norm2) {
  return std::max(0.0, alpha - (margin - 1 + alpha / 2) / (norm2 + 0.5));
}

// Blocks of decoded rows, the same for both ways.
std::vector<std::vector<Visitor>> read_blocks(const Store& store, BlockSource& source) {
  std::vector<size_t> begin(store.chunks().size() + 1, 0);
  for (size_t i = 0; i < store.chunks().size(); ++i) begin[i + 1] = begin[i] + store.chunks()[i].rows;
  std::vector<std::vector<Visitor>> blocks;
  static RowBuffer unused;
  source.for_each(BlockOrder::all(store, 8), [&](const Block& block, size_t) {
    blocks.emplace_back();
    for (size_t c = 0; c < block.chunks.size(); ++c)
      for (size_t row = 0; row < block.chunks[c]->rows(); ++row)
        blocks.back().push_back({block.chunks[c]->row(row, unused), begin[block.numbers[c]] + row});
    Random random(1, blocks.size());
    std::vector<Visitor>& rows = blocks.back();
    for (size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[random.below(i)]);
    return true;
  });
  return blocks;
}

double apart(const std::vector<std::vector<Visitor>>& blocks, const std::vector<int32_t>& labels, size_t weights,
             size_t rows, size_t passes, double& squared) {
  std::vector<std::vector<float>> w(labels.size(), std::vector<float>(weights, 0));
  std::vector<std::vector<double>> alphas(labels.size(), std::vector<double>(rows, 0));
  const Stopwatch clock;
  for (size_t pass = 0; pass < passes; ++pass)
    for (const std::vector<Visitor>& block : blocks)
      for (size_t t = 0; t < labels.size(); ++t)
        for (const Visitor& visitor : block) {
          const Row& row = visitor.row;
          const double sign = row.label == labels[t] ? 1 : -1;
          double& alpha = alphas[t][visitor.number];
          const double margin = sign * double{dot(row.index, row.value, w[t].data())};
          const double next = next_alpha(alpha, margin, squared_norm(row.value));
          if (next == alpha) continue;
          add_scaled(row.index, row.value, static_cast<float>(sign * (next - alpha)), w[t].data());
          alpha = next;
        }
  const double seconds = clock.seconds();
  squared = 0;
  for (const auto& one : w)
    for (const float x : one) squared += double{x} * double{x};
  return seconds;
}

// Groups of eight tasks, a vector each, side by side.
template <size_t Groups>
__attribute__((target("avx2"))) double together(const std::vector<std::vector<Visitor>>& blocks,
                                                const std::vector<int32_t>& labels, size_t weights, size_t rows,
                                                size_t passes, double& squared) {
  constexpr size_t kWidth = Groups * kLanes;
  std::vector<float> memory(weights * kWidth + kLanes, 0);
  float* const w = memory.data() + (8 - reinterpret_cast<uintptr_t>(memory.data()) / 4 % 8) % 8;
  std::vector<float> alphas(rows * kWidth, 0);
  const Stopwatch clock;
  for (size_t pass = 0; pass < passes; ++pass)
    for (const std::vector<Visitor>& block : blocks)
      for (const Visitor& visitor : block) {
        const Row& row = visitor.row;
        Lanes sums[Groups] = {};
        for (size_t k = 0; k < row.index.size(); ++k) {
          const auto* from = reinterpret_cast<const Lanes*>(w + size_t{row.index[k]} * kWidth);
          for (size_t g = 0; g < Groups; ++g) sums[g] += from[g] * row.value[k];
        }
        const double norm2 = squared_norm(row.value);
        Lanes changes[Groups] = {};
        bool any = false;
        for (size_t t = 0; t < labels.size(); ++t) {
          const double sign = row.label == labels[t] ? 1 : -1;
          float& alpha = alphas[visitor.number * kWidth + t];
          const double next = next_alpha(alpha, sign * double{sums[t / kLanes][t % kLanes]}, norm2);
          if (next == double{alpha}) continue;
          changes[t / kLanes][t % kLanes] = static_cast<float>(sign * (next - double{alpha}));
          alpha = static_cast<float>(next);
          any = true;
        }
        if (!any) continue;
        for (size_t k = 0; k < row.index.size(); ++k) {
          auto* to = reinterpret_cast<Lanes*>(w + size_t{row.index[k]} * kWidth);
          for (size_t g = 0; g < Groups; ++g) to[g] += changes[g] * row.value[k];
        }
      }
  const double seconds = clock.seconds();
  squared = 0;
  for (const float x : memory) squared += double{x} * double{x};
  return seconds;
}

}  // namespace
}  // namespace linblock

int main(int count, char** words) {
  using namespace linblock;
  if (count != 4) {
    fmt::print(stderr, "usage: interleaved STORE CLASSES PASSES\n");
    return 2;
  }
  const Store store = Store::open(words[1]);
  const size_t classes = std::min<size_t>({std::stoul(words[2]), store.info().labels.size(), 32});
  const size_t passes = std::stoul(words[3]);
  std::vector<int32_t> labels;
  for (const auto& [label, rows] : store.info().labels)
    if (labels.size() < classes) labels.push_back(label);
  BlockSource source(store, RowsHeld::decoded, 0, 2);
  const auto blocks = read_blocks(store, source);
  const size_t weights = store.info().feature_numbers();
  const size_t rows = store.info().physical_rows();
  double one = 0;
  double other = 0;
  const double separately = apart(blocks, labels, weights, rows, passes, one);
  const auto run = classes <= 8 ? together<1> : classes <= 16 ? together<2> : classes <= 24 ? together<3> : together<4>;
  const double side_by_side = run(blocks, labels, weights, rows, passes, other);
  const double work = static_cast<double>(store.info().nonzeros * classes * passes);
  fmt::print(
      "{} classes, {} passes: apart {:.3f} s ({:.2f} ns a nonzero and task), side by side {:.3f} s ({:.2f} ns), {:.2f} "
      "times; |w|^2 {:.6g} and {:.6g}\n",
      classes, passes, separately, 1e9 * separately / work, side_by_side, 1e9 * side_by_side / work,
      separately / side_by_side, one, other);
  return 0;
}
