#include "store/core/remove.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "store/core/removed_rows.h"
#include "store/core/store.h"
#include "store/text/line_reader.h"

namespace linblock {

namespace {

// What rows add up to.
struct RemovedSums {
  uint64_t rows = 0;
  uint64_t nonzeros = 0;
  std::map<int32_t, uint64_t> labels;
  ValueSums values;

  void add(const Chunk& chunk, size_t row, RowBuffer& buffer) {
    ++rows;
    nonzeros += chunk.nonzeros(row);
    ++labels[chunk.label(row)];
    values.add(chunk.encoded(row, buffer));
  }
  void add(const RemovedSums& other) {
    values.content += other.values.content;
    rows += other.rows;
    nonzeros += other.nonzeros;
    for (const auto& [label, count] : other.labels) labels[label] += count;
  }
};

// Of chunks that several threads look at. Squares are added up chunk by chunk in the end, so that rounding is the same
// for any number of threads.
class RemovedTotal {
 public:
  explicit RemovedTotal(size_t chunks) : squares_(chunks, 0) {}

  void add(size_t place, const RemovedSums& sums) {
    const std::lock_guard lock(mutex_);
    total_.add(sums);
    squares_[place] = sums.values.squares;
  }
  RemovedSums total() const {
    RemovedSums all = total_;
    all.values.squares = std::accumulate(squares_.begin(), squares_.end(), 0.0);
    return all;
  }

 private:
  std::mutex mutex_;
  RemovedSums total_;
  std::vector<double> squares_;
};

// Reads these chunks on all threads; `look` may be called by several at once, with a chunk's place in the list.
void for_each_chunk(const Store& store, const std::vector<size_t>& chunks, const RemoveContext& context,
                    const std::function<void(const Chunk&, size_t)>& look) {
  uint64_t total = 0;
  for (const size_t chunk : chunks) total += store.chunks()[chunk].extent();
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  uint64_t bytes = 0;
  context.team.run_loops(
      std::min(context.team.size(), chunks.size()),
      [&] {
        Chunk chunk;
        for (size_t place = next++; place < chunks.size(); place = next++) {
          if (context.stop != nullptr && *context.stop)
            fail(ErrorKind::interrupted, "interrupted: nothing was removed");
          store.read(chunks[place], chunk);
          look(chunk, place);
          const std::lock_guard lock(mutex);
          bytes += store.chunks()[chunks[place]].extent();
          context.observer(bytes, total);
        }
      },
      [&] { next = chunks.size(); });
}

// One writer's change of the manifest, and of the list of removed rows where it is another.
class Removal {
 public:
  explicit Removal(const std::string& path)
      : path_(checked(path)),
        lock_(FileLock::acquire(path + "/" + format::kLockName, "removing rows")),
        store_(Store::open(path)),  // under the lock: another writer may have been at work until now
        info_(store_.info()) {
    remove_leftovers(path_, info_);
  }

  const Store& store() const { return store_; }
  StoreInfo& info() { return info_; }

  RemoveReport commit(const RemovedSums& gone, const std::optional<std::vector<uint64_t>>& removed_ids) {
    if (gone.rows == info_.rows)
      fail(ErrorKind::input,
           "these are all rows that '{}' has: a store needs one row at least; delete the folder instead", path_);
    info_.rows -= gone.rows;
    info_.nonzeros -= gone.nonzeros;
    if (info_.values && !info_.values->subtract(gone.values)) info_.values.reset();
    for (const auto& [label, count] : gone.labels)
      if ((info_.labels[label] -= count) == 0) info_.labels.erase(label);
    const uint64_t old_number = info_.removed.number;
    try {
      if (removed_ids && removed_ids->empty())
        info_.removed = {.number = old_number};
      else if (removed_ids)
        write_removed(path_, info_, *removed_ids);
    } catch (...) {
      discard(old_number + 1);
      throw;
    }
    try {
      write_manifest(path_, info_);
    } catch (...) {
      if (info_.removed.number != old_number && !may_be_committed(path_, info_)) discard(info_.removed.number);
      throw;
    }
    // It is done; what cannot be deleted now is deleted by the next writer.
    try {
      remove_leftovers(path_, info_);
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    }
    return {.rows = gone.rows, .nonzeros = gone.nonzeros};
  }

 private:
  // A path that is no store is refused before a lock is put there.
  static const std::string& checked(const std::string& path) {
    expect_rows(read_manifest(path), path);
    return path;
  }
  // Best effort, as the next writer would do it too.
  void discard(uint64_t number) noexcept {
    try {
      remove_own_file(path_, store_directory(), removed_path(path_, number).substr(path_.size() + 1));
    } catch (...) {  // NOLINT(bugprone-empty-catch)
    }
  }

  std::string path_;
  FileLock lock_;
  Store store_;
  StoreInfo info_;
};

// Rows that cannot be removed; the first in the list is the one to be told of.
class Refusal {
 public:
  explicit Refusal(const RowList& rows) : rows_(rows) {}

  void add(size_t place, std::string why) {
    const std::lock_guard lock(mutex_);
    if (why_.empty() || place < place_) {
      place_ = place;
      why_ = std::move(why);
    }
  }
  void raise() const {
    if (why_.empty()) return;
    const std::string where = rows_.lines.empty() ? "" : fmt::format("{}:{}:1: ", rows_.name, rows_.lines[place_]);
    fail(ErrorKind::input, "{}row {} {}; nothing was removed", where, rows_.ids[place_], why_);
  }

 private:
  const RowList& rows_;
  std::mutex mutex_;
  size_t place_ = 0;
  std::string why_;
};

}  // namespace

RowList read_row_list(const std::string& path) {
  LineReader lines(path, "row id");
  RowList rows{.name = path};
  std::string_view line;
  while (lines.next(line)) {
    line = line.substr(0, line.find('#'));
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    if (line.empty()) continue;
    uint64_t id = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), id);
    if (error != std::errc() || end != line.data() + line.size())
      fail(ErrorKind::input, "{}:{}:1: '{}' is not a row id, a whole number from 0 up; nothing was removed", path,
           lines.number(), line.substr(0, 40));
    rows.ids.push_back(id);
    rows.lines.push_back(lines.number());
  }
  if (rows.ids.empty()) fail(ErrorKind::input, "'{}' lists no rows: one row id a line is expected", path);
  return rows;
}

RemoveReport remove_rows(const std::string& path, const RowList& rows, const RemoveContext& context) {
  Removal removal(path);
  const Store& store = removal.store();
  Refusal refusal(rows);
  // By chunk and by id, as they are met in reading.
  std::vector<size_t> order(rows.ids.size());
  std::vector<size_t> chunk_of(rows.ids.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = 0; i < rows.ids.size(); ++i) {
    const std::optional<size_t> chunk = store.chunk_with(rows.ids[i]);
    if (!chunk) refusal.add(i, "is not in '" + path + "'");
    chunk_of[i] = chunk.value_or(0);
  }
  refusal.raise();
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tie(chunk_of[a], rows.ids[a], a) < std::tie(chunk_of[b], rows.ids[b], b);
  });
  std::vector<size_t> chunks;
  std::vector<size_t> begin;  // in `order`, of each of `chunks`
  for (size_t i = 0; i < order.size(); ++i) {
    if (!chunks.empty() && chunks.back() == chunk_of[order[i]]) continue;
    chunks.push_back(chunk_of[order[i]]);
    begin.push_back(i);
  }
  begin.push_back(order.size());
  RemovedTotal gone(chunks.size());
  for_each_chunk(store, chunks, context, [&](const Chunk& chunk, size_t place) {
    RemovedSums sums;
    RowBuffer buffer;
    size_t row = 0;
    for (size_t i = begin[place]; i < begin[place + 1]; ++i) {
      const uint64_t id = rows.ids[order[i]];
      while (row < chunk.rows() && chunk.id(row) < id) ++row;
      if (row == chunk.rows() || chunk.id(row) != id)
        refusal.add(order[i], "is not in '" + path + "'");
      else if (chunk.removed(row))
        refusal.add(order[i], "was removed from '" + path + "' before");
      else if (i > begin[place] && rows.ids[order[i - 1]] == id)
        refusal.add(order[i], "is listed twice");
      else
        sums.add(chunk, row, buffer);
    }
    gone.add(place, sums);
  });
  refusal.raise();
  std::vector<uint64_t> removed = store.removed_ids();
  removed.insert(removed.end(), rows.ids.begin(), rows.ids.end());
  std::sort(removed.begin(), removed.end());
  const RemovedSums all = gone.total();
  removal.info().removed.nonzeros += all.nonzeros;
  return removal.commit(all, std::move(removed));
}

RemoveReport remove_segment(const std::string& path, uint64_t number, const RemoveContext& context) {
  Removal removal(path);
  const Store& store = removal.store();
  StoreInfo& info = removal.info();
  const auto segment = std::find_if(info.segments.begin(), info.segments.end(),
                                    [&](const SegmentInfo& candidate) { return candidate.number == number; });
  if (segment == info.segments.end())
    fail(ErrorKind::input, {say("choose one of those that 'linblock info {}' lists", path)}, "'{}' has no segment {}",
         path, number);
  const auto position = static_cast<uint32_t>(segment - info.segments.begin());
  std::vector<size_t> chunks;
  std::vector<uint64_t> still_removed;
  for (size_t chunk = 0; chunk < store.chunks().size(); ++chunk) {
    const std::span<const uint64_t> ids = store.removed_from(chunk);
    if (store.chunks()[chunk].segment == position)
      chunks.push_back(chunk);
    else
      still_removed.insert(still_removed.end(), ids.begin(), ids.end());
  }
  std::sort(still_removed.begin(), still_removed.end());
  RemovedTotal all_gone(chunks.size());
  RemovedTotal all_before(chunks.size());
  for_each_chunk(store, chunks, context, [&](const Chunk& chunk, size_t place) {
    RowBuffer buffer;
    RemovedSums now;
    RemovedSums before;
    for (size_t row = 0; row < chunk.rows(); ++row) (chunk.removed(row) ? before : now).add(chunk, row, buffer);
    all_gone.add(place, now);
    all_before.add(place, before);
  });
  const RemovedSums gone = all_gone.total();
  const RemovedSums gone_before = all_before.total();
  info.removed.nonzeros -= gone_before.nonzeros;
  const uint64_t next_segment = info.new_segment_number();
  info.segments.erase(segment);
  info.next_segment = info.new_segment_number() == next_segment ? 0 : next_segment;
  return removal.commit(gone, gone_before.rows == 0 ? std::nullopt : std::optional(std::move(still_removed)));
}

}  // namespace linblock
