#include "store/core/remove.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <numeric>
#include <optional>
#include <tuple>

#include "base/error.h"

namespace linblock {

namespace {

// Rows that cannot be removed; the first in the list is the one to be told of.
class Refusal {
 public:
  explicit Refusal(const RowList& rows) : rows_(rows) {}

  void add(size_t place, const std::string& why) {
    add(rows_.lines.empty() ? place : rows_.lines[place], !rows_.lines.empty(),
        fmt::format("row {} {}", rows_.ids[place], why));
  }
  void add(const RowRange& range, const std::string& why) {
    add(range.line, range.line > 0, fmt::format("rows {}-{} {}", range.first, range.last, why));
  }
  void raise() const {
    if (why_.empty()) return;
    fail(ErrorKind::input, "{}; nothing was removed", why_);
  }

 private:
  void add(uint64_t order, bool is_line, const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (!why_.empty() && order >= order_) return;
    order_ = order;
    why_ = is_line ? fmt::format("{}:{}:1: {}", rows_.name, order, why) : why;
  }

  const RowList& rows_;
  std::mutex mutex_;
  uint64_t order_ = 0;
  std::string why_;
};

// Ranges by their first row. Those that lie over each other are refused.
std::vector<RowRange> sorted(std::vector<RowRange> ranges, Refusal& refusal) {
  std::sort(ranges.begin(), ranges.end(),
            [](const RowRange& a, const RowRange& b) { return std::tie(a.first, a.line) < std::tie(b.first, b.line); });
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first <= ranges[i - 1].last)
      refusal.add(std::max(ranges[i - 1], ranges[i], [](auto& a, auto& b) { return a.line < b.line; }),
                  "are listed twice in part");
  return ranges;
}

// The first of these that can hold `id` or a row after it.
std::vector<RowRange>::const_iterator range_from(const std::vector<RowRange>& ranges, uint64_t id) {
  return std::partition_point(ranges.begin(), ranges.end(), [&](const RowRange& range) { return range.last < id; });
}

bool is_in(const std::vector<RowRange>& ranges, uint64_t id) {
  const auto range = range_from(ranges, id);
  return range != ranges.end() && range->holds(id);
}

// Whether a row with an id from `first` to `last` may be in a range.
bool may_meet(const std::vector<RowRange>& ranges, uint64_t first, uint64_t last) {
  const auto range = range_from(ranges, first);
  return range != ranges.end() && range->first <= last;
}

// Chunks that can hold a row of these ranges.
std::vector<size_t> chunks_of(const Store& store, const std::vector<RowRange>& ranges) {
  std::vector<size_t> chunks;
  const std::span<const ChunkInfo> all = store.chunks();
  for (size_t i = 0; i < all.size(); ++i) {
    const bool ends = i + 1 == all.size() || all[i + 1].bucket != all[i].bucket;
    if (may_meet(ranges, all[i].first_row, ends ? UINT64_MAX : all[i + 1].first_row - 1)) chunks.push_back(i);
  }
  return chunks;
}

// Segments that have room for no other ids than those of a range leave as a whole.
void leave_segments(Removal& removal, const std::vector<RowRange>& ranges) {
  const StoreInfo& info = removal.store().info();
  for (size_t i = 0; i < info.segments.size(); ++i) {
    const uint64_t first = info.segments[i].first_row;
    const uint64_t last = (i + 1 == info.segments.size() ? info.next_row_id : info.segments[i + 1].first_row) - 1;
    const auto range = range_from(ranges, first);
    if (range != ranges.end() && range->holds(first) && range->holds(last)) removal.leave(i);
  }
}

// The rows of a chunk that a range holds, and how many of each range.
void choose_in(const std::vector<RowRange>& ranges, const Chunk& chunk, std::vector<size_t>& rows,
               std::vector<std::atomic<uint64_t>>* found) {
  if (chunk.rows() == 0) return;
  auto range = range_from(ranges, chunk.id(0));
  for (size_t row = 0; row < chunk.rows(); ++row) {
    while (range != ranges.end() && range->last < chunk.id(row)) ++range;
    if (range == ranges.end()) return;
    if (chunk.removed(row) || !range->holds(chunk.id(row))) continue;
    rows.push_back(row);
    if (found != nullptr) ++(*found)[static_cast<size_t>(range - ranges.begin())];
  }
}

// Single ids by chunk and by id, as they are met in reading.
class ListedIds {
 public:
  ListedIds(const Store& store, const RowList& rows, Refusal& refusal)
      : path_(store.path()), ids_(rows.ids), order_(ids_.size()), chunk_of_(ids_.size()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    for (size_t i = 0; i < ids_.size(); ++i) {
      const std::optional<size_t> chunk = store.chunk_with(ids_[i]);
      if (!chunk) refusal.add(i, "is not in '" + path_ + "'");
      chunk_of_[i] = chunk.value_or(0);
    }
    std::sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return std::tie(chunk_of_[a], ids_[a], a) < std::tie(chunk_of_[b], ids_[b], b);
    });
  }

  std::vector<size_t> chunks() const {
    std::vector<size_t> chunks;
    for (const size_t i : order_)
      if (chunks.empty() || chunks.back() != chunk_of_[i]) chunks.push_back(chunk_of_[i]);
    return chunks;
  }

  void choose(size_t number, const Chunk& chunk, std::vector<size_t>& rows, Refusal& refusal) const {
    const auto begin =
        std::partition_point(order_.begin(), order_.end(), [&](size_t i) { return chunk_of_[i] < number; });
    size_t row = 0;
    for (auto at = begin; at != order_.end() && chunk_of_[*at] == number; ++at) {
      const uint64_t id = ids_[*at];
      while (row < chunk.rows() && chunk.id(row) < id) ++row;
      if (row == chunk.rows() || chunk.id(row) != id)
        refusal.add(*at, "is not in '" + path_ + "'");
      else if (chunk.removed(row))
        refusal.add(*at, "was removed from '" + path_ + "' before");
      else if (at != begin && ids_[*(at - 1)] == id)
        refusal.add(*at, "is listed twice");
      else
        rows.push_back(row);
    }
  }

 private:
  const std::string& path_;
  const std::vector<uint64_t>& ids_;
  std::vector<size_t> order_;
  std::vector<size_t> chunk_of_;
};

}  // namespace

RemoveReport remove_rows(const std::string& path, const RowList& rows, const RemoveContext& context) {
  Removal removal(path);
  const Store& store = removal.store();
  Refusal refusal(rows);
  const ListedIds ids(store, rows, refusal);
  const std::vector<RowRange> ranges = sorted(rows.ranges, refusal);
  for (size_t i = 0; i < rows.ids.size(); ++i)
    if (is_in(ranges, rows.ids[i])) refusal.add(i, "is listed twice: it is in a range too");
  refusal.raise();
  const std::vector<size_t> of_ids = ids.chunks();
  const std::vector<size_t> of_ranges = chunks_of(store, ranges);
  std::vector<size_t> chunks;
  std::set_union(of_ids.begin(), of_ids.end(), of_ranges.begin(), of_ranges.end(), std::back_inserter(chunks));
  leave_segments(removal, ranges);
  std::vector<std::atomic<uint64_t>> found(ranges.size());
  removal.take(chunks, context, [&](const Chunk& chunk, size_t place, std::vector<size_t>& chosen) {
    ids.choose(chunks[place], chunk, chosen, refusal);
    choose_in(ranges, chunk, chosen, &found);
  });
  for (size_t i = 0; i < ranges.size(); ++i)
    if (found[i] == 0) refusal.add(ranges[i], "are not in '" + path + "'");
  refusal.raise();
  return removal.commit();
}

RemoveReport remove_segment(const std::string& path, uint64_t number, const RemoveContext& context) {
  Removal removal(path);
  const Store& store = removal.store();
  const std::vector<SegmentInfo>& segments = store.info().segments;
  const auto segment = std::find_if(segments.begin(), segments.end(),
                                    [&](const SegmentInfo& candidate) { return candidate.number == number; });
  if (segment == segments.end())
    fail(ErrorKind::input, {say("choose one of those that 'linblock info {}' lists", path)}, "'{}' has no segment {}",
         path, number);
  const auto position = static_cast<size_t>(segment - segments.begin());
  std::vector<size_t> chunks;
  for (size_t chunk = 0; chunk < store.chunks().size(); ++chunk)
    if (store.chunks()[chunk].segment == position) chunks.push_back(chunk);
  removal.leave(position);
  removal.take(chunks, context, [](const Chunk& chunk, size_t, std::vector<size_t>& rows) {
    for (size_t row = 0; row < chunk.rows(); ++row)
      if (!chunk.removed(row)) rows.push_back(row);
  });
  return removal.commit();
}

RemoveReport remove_tag(const std::string& path, const std::string& tag, const RemoveContext& context) {
  Removal removal(path);
  const TaggedRows& tagged = expect_tag(removal.store().info(), path, tag);
  const std::vector<RowRange> ranges = {{.first = tagged.first_row, .last = tagged.end() - 1}};
  leave_segments(removal, ranges);
  removal.take(chunks_of(removal.store(), ranges), context,
               [&](const Chunk& chunk, size_t, std::vector<size_t>& rows) { choose_in(ranges, chunk, rows, nullptr); });
  removal.expect_all_of(tagged);
  return removal.commit();
}

}  // namespace linblock
