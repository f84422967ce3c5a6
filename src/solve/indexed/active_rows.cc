#include "solve/indexed/active_rows.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace linblock {

namespace {

constexpr uint64_t kSegments = 16;  // in a full memory
constexpr uint64_t kLeastSegmentBytes = uint64_t{16} << 10;
constexpr uint64_t kLargestSegmentBytes = uint64_t{4} << 20;

}  // namespace

ActiveRows::ActiveRows(const Store& store, uint64_t bytes, std::string files)
    : store_(store),
      capacity_(bytes),
      segment_bytes_(std::clamp(bytes / kSegments, kLeastSegmentBytes, kLargestSegmentBytes)),
      files_(std::move(files)) {}

std::string ActiveRows::path_of(uint64_t file) const { return fmt::format("{}{}", files_, file); }

size_t ActiveRows::segment_of(size_t number) const {
  const auto after = std::upper_bound(segments_.begin(), segments_.end(), number,
                                      [](size_t value, const RowSegment& segment) { return value < segment.first; });
  return static_cast<size_t>(after - segments_.begin()) - 1;
}

uint64_t ActiveRows::bytes() const {
  uint64_t sum = 0;
  for (const RowSegment& segment : segments_) sum += segment.bytes;
  return sum;
}

Row ActiveRows::row(size_t number, RowBuffer& buffer) const {
  const RowSegment& segment = segments_[segment_of(number)];
  return segment.cache->row(number - segment.first, buffer);
}

RowCache::Origin ActiveRows::origin(size_t number) const {
  const RowSegment& segment = segments_[segment_of(number)];
  return segment.cache->origin(number - segment.first);
}

void ActiveRows::add(RowCache::Origin origin, const EncodedRow& row) {
  if (segments_.empty() || !segments_.back().cache->add(origin, row)) {
    RowSegment segment{.first = size()};
    segment.cache = std::make_unique<RowCache>(store_, segment_bytes_);
    const uint64_t needed = segment.cache->bytes_of(row);
    if (needed > segment_bytes_) segment.cache = std::make_unique<RowCache>(store_, needed);
    segment.room = std::max(needed, segment_bytes_);
    // Whole segments are made room for: this one will be full soon.
    if (!make_room(segment.room, segments_.size(), segments_.size(), segments_.size()))
      fail(ErrorKind::memory, {say("give more `memory`")},
           "the rows near the margin need more than the {} that `memory` leaves for them{}", human_bytes(capacity_),
           files_.empty() ? ", and there is no checkpoint to keep some beside" : "");
    segment.cache->add(origin, row);
    segments_.push_back(std::move(segment));
  }
  RowSegment& segment = segments_.back();
  here_ += segment.cache->used() - segment.bytes;
  segment.bytes = segment.cache->used();
  ++segment.rows;
  alphas_.push_back(0);
  out_.push_back(0);
}

bool ActiveRows::make_room(uint64_t bytes, const std::function<bool(size_t)>& may_go, size_t first) {
  // The turn goes round: what lies just before the rows in work is needed last.
  const size_t count = segments_.size();
  for (size_t back = 1; here_ + bytes > capacity_ && back <= count; ++back) {
    const size_t segment = (first + count - back % std::max<size_t>(1, count)) % std::max<size_t>(1, count);
    if (segment + 1 != count && segments_[segment].cache && may_go(segment)) put_away(segment);
  }
  return here_ + bytes <= capacity_;
}

bool ActiveRows::make_room(uint64_t bytes, size_t first, size_t last, size_t pinned) {
  return make_room(
      bytes, [&](size_t segment) { return (segment < first || segment >= last) && segment < pinned; }, first);
}

void ActiveRows::walk(const std::function<void(const Ranges&)>& work) {
  std::vector<uint8_t> passed(segments_.size());
  Ranges group;
  const auto take = [&](size_t number) {
    passed[number] = 1;
    group.emplace_back(segments_[number].first, segments_[number].first + segments_[number].rows);
  };
  for (size_t number = 0; number < segments_.size(); ++number)
    if (segments_[number].cache) take(number);
  if (!group.empty()) work(group);
  for (size_t next = 0; next < segments_.size();) {
    group.clear();
    const std::vector<uint8_t> may_go = passed;
    for (; next < segments_.size(); ++next) {
      if (passed[next] != 0) continue;
      const bool fits = make_room(
          segments_[next].bytes, [&](size_t segment) { return may_go[segment] != 0; }, next);
      // The first is brought in any case: a run must go on.
      if (!fits && !group.empty()) break;
      load(next);
      take(next);
    }
    if (!group.empty()) work(group);
  }
}

void ActiveRows::put_away(size_t number) {
  RowSegment& segment = segments_[number];
  if (segment.file == 0) {
    if (files_.empty()) return;
    SnapshotWriter file(path_of(++files_written_));
    FieldWriter to(file);
    segment.cache->save(to);
    file.commit();
    segment.file = files_written_;
  }
  here_ -= segment.bytes;
  segment.cache.reset();
}

void ActiveRows::load(size_t number) {
  RowSegment& segment = segments_[number];
  auto cache = std::make_unique<RowCache>(store_, segment.room);
  FieldReader from(path_of(segment.file));
  cache->restore(from);
  from.finish();
  if (cache->size() != segment.rows || cache->used() != segment.bytes) from.refuse("is not what was written there");
  segment.cache = std::move(cache);
  here_ += segment.bytes;
  read_ += segment.bytes;
}

size_t ActiveRows::bring(size_t first, size_t count, size_t pinned) {
  if (count == 0 || first >= size()) return 0;
  const size_t end = std::min(size(), first + count);
  const size_t first_segment = segment_of(first);
  const size_t pinned_segment = pinned == 0 ? segments_.size() : segment_of(size() - pinned);
  for (size_t segment = first_segment; segment < segments_.size() && segments_[segment].first < end; ++segment) {
    if (segments_[segment].cache) continue;
    // The first is brought in any case: a run must go on.
    if (!make_room(segments_[segment].bytes, first_segment, segment, pinned_segment) && segment > first_segment)
      return segments_[segment].first - first;
    load(segment);
  }
  return end - first;
}

void ActiveRows::keep(const std::vector<uint8_t>& keep) {
  size_t kept = 0;
  for (size_t number = 0; number < segments_.size(); ++number) {
    RowSegment& segment = segments_[number];
    const std::vector<uint8_t> kept_rows(keep.begin() + static_cast<ptrdiff_t>(segment.first),
                                         keep.begin() + static_cast<ptrdiff_t>(segment.first + segment.rows));
    const size_t first = segment.first;
    segment.first = kept;
    for (size_t i = 0; i < kept_rows.size(); ++i) {
      if (kept_rows[i] == 0) continue;
      alphas_[kept] = alphas_[first + i];
      out_[kept] = out_[first + i];
      ++kept;
    }
    if (kept - segment.first == segment.rows) continue;
    if (!segment.cache) {
      make_room(segment.bytes, number, number, segments_.size());
      load(number);
    }
    segment.cache->keep(kept_rows);
    segment.cache->shrink();
    segment.room = segment.cache->capacity();
    segment.rows = segment.cache->size();
    segment.file = 0;
    here_ -= segment.bytes - segment.cache->used();
    segment.bytes = segment.cache->used();
  }
  alphas_.resize(kept);
  out_.resize(kept);
  // Those in the middle are not filled up again; empty ones would not be found.
  std::erase_if(segments_, [](const RowSegment& segment) { return segment.rows == 0; });
}

void ActiveRows::save(FieldWriter& to) const {
  std::vector<SavedSegment> saved;
  for (const RowSegment& segment : segments_)
    saved.push_back({segment.rows, segment.bytes, segment.room, segment.file, segment.cache != nullptr});
  to("segments", saved);
  to("files", files_written_);
  to("alphas", alphas_);
  to("out", out_);
  for (size_t i = 0; i < segments_.size(); ++i)
    if (segments_[i].cache) to(numbered("segment", i), *segments_[i].cache);
}

void ActiveRows::restore(FieldReader& from) {
  const auto saved = from.take<std::vector<SavedSegment>>("segments");
  from("files", files_written_);
  segments_.clear();
  here_ = 0;
  size_t first = 0;
  for (size_t i = 0; i < saved.size(); ++i) {
    RowSegment segment{.first = first, .rows = saved[i].rows, .bytes = saved[i].bytes, .file = saved[i].file};
    segment.room = checked_size(saved[i].room, capacity_, "a segment of the checkpoint");
    first += segment.rows;
    if (saved[i].here) {
      segment.cache = std::make_unique<RowCache>(store_, segment.room);
      from(numbered("segment", i), *segment.cache);
      here_ += segment.bytes;
    }
    segments_.push_back(std::move(segment));
  }
  from("alphas", alphas_);
  from("out", out_);
  bool whole = alphas_.size() == first && out_.size() == first;
  for (const RowSegment& segment : segments_)
    whole = whole && (!segment.cache || segment.cache->size() == segment.rows);
  if (!whole) from.refuse("has active rows that do not fit together");
}

}  // namespace linblock
