#include "store/core/removal.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "store/core/removed_rows.h"

namespace linblock {

void Removal::Sums::add(const Chunk& chunk, size_t row, RowBuffer& buffer) {
  ++rows;
  nonzeros += chunk.nonzeros(row);
  ++labels[chunk.label(row)];
  values.add(chunk.encoded(row, buffer));
}

Removal::Removal(const std::string& path)
    : path_(checked(path)),
      lock_(FileLock::acquire(path + "/" + format::kLockName, "removing rows")),
      store_(Store::open(path)),  // under the lock: another writer may have been at work until now
      info_(store_.info()),
      segments_(info_.segments.size()),
      tagged_(store_.info().tags) {
  remove_leftovers(path_, info_);
}

// A path that is no store is refused before a lock is put there.
const std::string& Removal::checked(const std::string& path) {
  expect_rows(read_manifest(path), path);
  return path;
}

void Removal::take(const std::vector<size_t>& chunks, const RemoveContext& context, const Choose& choose) {
  uint64_t total = 0;
  for (const size_t chunk : chunks) total += store_.chunks()[chunk].extent();
  // Squares are added up chunk by chunk in the end, so that rounding is the same for any number of threads.
  std::vector<double> squares(chunks.size(), 0);
  std::atomic<size_t> next = 0;
  uint64_t bytes = 0;
  context.team.run_loops(
      std::min(context.team.size(), chunks.size()),
      [&] {
        Chunk chunk;
        RowBuffer buffer;
        std::vector<size_t> rows;
        std::vector<uint64_t> ids;
        for (size_t place = next++; place < chunks.size(); place = next++) {
          if (context.stop != nullptr && *context.stop)
            fail(ErrorKind::interrupted, "interrupted: nothing was removed");
          store_.read(chunks[place], chunk);
          const ChunkInfo& where = store_.chunks()[chunks[place]];
          rows.clear();
          ids.clear();
          choose(chunk, place, rows);
          Sums sums;
          TagCounts tagged(store_.info().tags);
          for (const size_t row : rows) {
            sums.add(chunk, row, buffer);
            tagged.add(chunk.id(row));
            if (!segments_[where.segment].leaves) ids.push_back(chunk.id(row));
          }
          squares[place] = sums.values.squares;
          const std::lock_guard lock(mutex_);
          add(sums, where.segment, tagged, ids);
          bytes += where.extent();
          context.observer(bytes, total);
        }
      },
      [&] { next = chunks.size(); });
  gone_.values.squares += std::accumulate(squares.begin(), squares.end(), 0.0);
}

void Removal::add(const Sums& sums, uint32_t segment, const TagCounts& tagged, const std::vector<uint64_t>& ids) {
  gone_.rows += sums.rows;
  gone_.nonzeros += sums.nonzeros;
  gone_.values.content += sums.values.content;
  for (const auto& [label, count] : sums.labels) gone_.labels[label] += count;
  segments_[segment].rows += sums.rows;
  segments_[segment].nonzeros += sums.nonzeros;
  tagged_.add(tagged);
  ids_.insert(ids_.end(), ids.begin(), ids.end());
}

void Removal::expect_all_of(const TaggedRows& tagged) const {
  const uint64_t taken = tagged_.rows()[static_cast<size_t>(&tagged - store_.info().tags.data())];
  if (taken != tagged.rows)
    fail(ErrorKind::damaged, "'{}' is damaged: {} rows have the tag '{}' instead of {}", manifest_path(path_), taken,
         tagged.tag, tagged.rows);
}

RemoveReport Removal::commit() {
  if (gone_.rows == info_.rows)
    fail(ErrorKind::input,
         "these are all rows that '{}' has: a store needs one row at least; delete the folder instead", path_);
  RemoveReport report{.rows = gone_.rows, .nonzeros = gone_.nonzeros};
  find_segments_that_leave();
  info_.rows -= gone_.rows;
  info_.nonzeros -= gone_.nonzeros;
  if (info_.values && !info_.values->subtract(gone_.values)) info_.values.reset();
  for (const auto& [label, count] : gone_.labels)
    if ((info_.labels[label] -= count) == 0) info_.labels.erase(label);
  drop_tags(report);
  const uint64_t old_number = info_.removed.number;
  write_list();
  drop_segments(report);
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
  return report;
}

void Removal::find_segments_that_leave() {
  std::vector<uint64_t> before(segments_.size(), 0);
  for (size_t chunk = 0; chunk < store_.chunks().size(); ++chunk)
    before[store_.chunks()[chunk].segment] += store_.removed_from(chunk).size();
  for (size_t i = 0; i < segments_.size(); ++i) {
    const bool touched = segments_[i].rows > 0 || segments_[i].leaves;
    const bool all = touched && segments_[i].rows + before[i] == info_.segments[i].rows;
    if (segments_[i].leaves && !all)
      fail(ErrorKind::damaged, "'{}' is damaged: segment {} has rows that its place does not allow",
           manifest_path(path_), info_.segments[i].number);
    segments_[i].leaves = all;
  }
}

void Removal::drop_tags(RemoveReport& report) {
  for (size_t i = 0; i < info_.tags.size(); ++i) {
    TaggedRows& tagged = info_.tags[i];
    const uint64_t gone = tagged_.rows()[i];
    if (gone > tagged.rows)
      fail(ErrorKind::damaged, "'{}' is damaged: more than {} rows have the tag '{}'", manifest_path(path_),
           tagged.rows, tagged.tag);
    tagged.rows -= gone;
    if (tagged.rows == 0) report.tags.push_back(tagged.tag);
  }
  std::erase_if(info_.tags, [](const TaggedRows& tagged) { return tagged.rows == 0; });
}

// Of rows that stay in a segment's file, the new ones and those before.
std::vector<uint64_t> Removal::removed_ids() {
  std::vector<uint64_t> ids = std::move(ids_);
  for (size_t chunk = 0; chunk < store_.chunks().size(); ++chunk) {
    if (segments_[store_.chunks()[chunk].segment].leaves) continue;
    const std::span<const uint64_t> before = store_.removed_from(chunk);
    ids.insert(ids.end(), before.begin(), before.end());
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

void Removal::write_list() {
  // The ids of a segment may have been remembered before it was known to leave.
  std::erase_if(ids_, [&](uint64_t id) { return segments_[store_.chunks()[*store_.chunk_with(id)].segment].leaves; });
  const bool more = !ids_.empty();
  const std::vector<uint64_t> ids = removed_ids();
  for (size_t i = 0; i < segments_.size(); ++i) {
    const Loss& loss = segments_[i];
    // What a segment has beside the rows that go now was removed before.
    if (loss.leaves)
      info_.removed.nonzeros -= info_.segments[i].nonzeros - loss.nonzeros;
    else
      info_.removed.nonzeros += loss.nonzeros;
  }
  if (!more && ids.size() == info_.removed.rows) return;
  const uint64_t old_number = info_.removed.number;
  if (ids.empty()) {
    info_.removed = {.number = old_number};
    return;
  }
  try {
    write_removed(path_, info_, ids);
  } catch (...) {
    discard(old_number + 1);
    throw;
  }
}

void Removal::drop_segments(RemoveReport& report) {
  const uint64_t next_segment = info_.new_segment_number();
  std::vector<SegmentInfo> left;
  for (size_t i = 0; i < segments_.size(); ++i)
    if (segments_[i].leaves)
      report.segments.push_back(info_.segments[i].number);
    else
      left.push_back(info_.segments[i]);
  info_.segments = std::move(left);
  if (report.segments.empty()) return;
  info_.next_segment = 0;
  if (info_.new_segment_number() != next_segment) info_.next_segment = next_segment;
}

// Best effort, as the next writer would do it too.
void Removal::discard(uint64_t number) noexcept {
  try {
    remove_own_file(path_, store_directory(), removed_path(path_, number).substr(path_.size() + 1));
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
}

}  // namespace linblock
