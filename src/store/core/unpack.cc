#include "store/core/unpack.h"

#include <algorithm>
#include <charconv>
#include <queue>

#include "base/error.h"

namespace linblock {

namespace {

// The chunks of one bucket of one segment, one at a time and encoded: a bucket costs a chunk of memory.
class BucketCursor {
 public:
  BucketCursor(const Store& store, size_t begin, size_t end) : store_(store), next_(begin), end_(end) { advance(); }

  bool done() const { return row_ == chunk_.rows(); }
  uint64_t id() const { return chunk_.id(row_); }
  Row row(RowBuffer& buffer) const { return chunk_.row(row_, buffer); }
  // To the next row that was not removed.
  void advance() {
    do {
      if (loaded_ && ++row_ < chunk_.rows()) continue;
      if (next_ == end_) return;
      store_.read(next_++, chunk_);
      row_ = 0;
      loaded_ = true;
    } while (row_ == chunk_.rows() || chunk_.removed(row_));
  }

 private:
  const Store& store_;
  size_t next_;
  size_t end_;
  Chunk chunk_;
  size_t row_ = 0;
  bool loaded_ = false;
};

// The row's feature numbers become original indices again, and are put in order.
class OriginalOrder {
 public:
  explicit OriginalOrder(const FeatureMap& features) : features_(features) {}

  Row operator()(const Row& row) {
    pairs_.resize(row.index.size());
    for (size_t i = 0; i < row.index.size(); ++i) pairs_[i] = {features_.index(row.index[i]), row.value[i]};
    std::sort(pairs_.begin(), pairs_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    index_.resize(pairs_.size());
    value_.resize(pairs_.size());
    for (size_t i = 0; i < pairs_.size(); ++i) std::tie(index_[i], value_[i]) = pairs_[i];
    Row original = row;
    original.index = index_;
    original.value = value_;
    return original;
  }

 private:
  const FeatureMap& features_;
  std::vector<std::pair<uint32_t, float>> pairs_;
  std::vector<uint32_t> index_;
  std::vector<float> value_;
};

}  // namespace

void for_each_row_in_order(const Store& store, const std::function<void(const Row&)>& visit) {
  expect_rows(store.info(), store.path());
  OriginalOrder original(store.features());
  RowBuffer buffer;
  const std::span<const ChunkInfo> chunks = store.chunks();
  for (uint32_t segment = 0; segment < store.info().segments.size(); ++segment) {
    std::vector<std::unique_ptr<BucketCursor>> cursors;
    for (size_t begin = 0; begin < chunks.size();) {
      size_t end = begin + 1;
      while (end < chunks.size() && chunks[end].bucket == chunks[begin].bucket &&
             chunks[end].segment == chunks[begin].segment)
        ++end;
      if (chunks[begin].segment == segment) cursors.push_back(std::make_unique<BucketCursor>(store, begin, end));
      begin = end;
    }
    using Head = std::pair<uint64_t, size_t>;  // row id, cursor
    std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
    for (size_t i = 0; i < cursors.size(); ++i)
      if (!cursors[i]->done()) heads.emplace(cursors[i]->id(), i);
    while (!heads.empty()) {
      const size_t first = heads.top().second;
      heads.pop();
      visit(original(cursors[first]->row(buffer)));
      cursors[first]->advance();
      if (!cursors[first]->done()) heads.emplace(cursors[first]->id(), first);
    }
  }
}

void unpack(const Store& store, const TextSink& text, const TextSink& weights) {
  constexpr size_t kPiece = size_t{256} << 10;
  std::string lines;
  std::string weight_lines;
  const auto append_number = [](auto number, std::string& to) {
    std::array<char, 64> digits;
    const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
    to.append(digits.data(), end);
  };
  for_each_row_in_order(store, [&](const Row& row) {
    store.info().label_names.append(row.label, lines);
    for (size_t i = 0; i < row.index.size(); ++i) {
      lines += ' ';
      append_number(row.index[i], lines);
      lines += ':';
      append_number(row.value[i], lines);
    }
    lines += '\n';
    if (lines.size() >= kPiece) {
      text(lines);
      lines.clear();
    }
    if (!weights) return;
    append_number(row.weight, weight_lines);
    weight_lines += '\n';
    if (weight_lines.size() >= kPiece) {
      weights(weight_lines);
      weight_lines.clear();
    }
  });
  text(lines);
  if (weights) weights(weight_lines);
}

}  // namespace linblock
