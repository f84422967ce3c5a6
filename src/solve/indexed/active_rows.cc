#include "solve/indexed/active_rows.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace linblock {

namespace {

constexpr uint64_t kShelves = 16;  // in a full memory
constexpr uint64_t kLeastShelf = uint64_t{16} << 10;
constexpr uint64_t kLargestShelf = uint64_t{4} << 20;

}  // namespace

ActiveRows::ActiveRows(const Store& store, uint64_t bytes, std::string files)
    : store_(store),
      capacity_(bytes),
      shelf_bytes_(std::clamp(bytes / kShelves, kLeastShelf, kLargestShelf)),
      files_(std::move(files)) {}

std::string ActiveRows::path_of(uint64_t file) const { return fmt::format("{}{}", files_, file); }

size_t ActiveRows::shelf_of(size_t number) const {
  const auto after = std::upper_bound(segments_.begin(), segments_.end(), number,
                                      [](size_t value, const RowSegment& shelf) { return value < shelf.first; });
  return static_cast<size_t>(after - segments_.begin()) - 1;
}

uint64_t ActiveRows::bytes() const {
  uint64_t sum = 0;
  for (const RowSegment& shelf : segments_) sum += shelf.bytes;
  return sum;
}

Row ActiveRows::row(size_t number, RowBuffer& buffer) const {
  const RowSegment& shelf = segments_[shelf_of(number)];
  return shelf.cache->row(number - shelf.first, buffer);
}

RowCache::Origin ActiveRows::origin(size_t number) const {
  const RowSegment& shelf = segments_[shelf_of(number)];
  return shelf.cache->origin(number - shelf.first);
}

void ActiveRows::add(RowCache::Origin origin, const EncodedRow& row) {
  if (segments_.empty() || !segments_.back().cache->add(origin, row)) {
    RowSegment shelf{.first = size()};
    shelf.cache = std::make_unique<RowCache>(store_, shelf_bytes_);
    const uint64_t needed = shelf.cache->bytes_of(row);
    if (needed > shelf_bytes_) shelf.cache = std::make_unique<RowCache>(store_, needed);
    shelf.room = std::max(needed, shelf_bytes_);
    // Whole shelves are made room for: this one will be full soon.
    if (!make_room(shelf.room, segments_.size(), segments_.size(), segments_.size()))
      fail(ErrorKind::memory, {say("give more `memory`")},
           "the rows near the margin need more than the {} that `memory` leaves for them{}", human_bytes(capacity_),
           files_.empty() ? ", and there is no checkpoint to keep some beside" : "");
    shelf.cache->add(origin, row);
    segments_.push_back(std::move(shelf));
  }
  RowSegment& shelf = segments_.back();
  here_ += shelf.cache->used() - shelf.bytes;
  shelf.bytes = shelf.cache->used();
  ++shelf.rows;
  alphas_.push_back(0);
  out_.push_back(0);
}

bool ActiveRows::make_room(uint64_t bytes, const std::function<bool(size_t)>& may_go, size_t first) {
  // The turn goes round: what lies just before the rows in work is needed last.
  const size_t count = segments_.size();
  for (size_t back = 1; here_ + bytes > capacity_ && back <= count; ++back) {
    const size_t shelf = (first + count - back % std::max<size_t>(1, count)) % std::max<size_t>(1, count);
    if (shelf + 1 != count && segments_[shelf].cache && may_go(shelf)) put_away(shelf);
  }
  return here_ + bytes <= capacity_;
}

bool ActiveRows::make_room(uint64_t bytes, size_t first, size_t last, size_t pinned) {
  return make_room(
      bytes, [&](size_t shelf) { return (shelf < first || shelf >= last) && shelf < pinned; }, first);
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
          segments_[next].bytes, [&](size_t shelf) { return may_go[shelf] != 0; }, next);
      // The first is brought in any case: a run must go on.
      if (!fits && !group.empty()) break;
      load(next);
      take(next);
    }
    if (!group.empty()) work(group);
  }
}

void ActiveRows::put_away(size_t number) {
  RowSegment& shelf = segments_[number];
  if (shelf.file == 0) {
    if (files_.empty()) return;
    SnapshotWriter file(path_of(++files_written_));
    FieldWriter to(file);
    shelf.cache->save(to);
    file.commit();
    shelf.file = files_written_;
  }
  here_ -= shelf.bytes;
  shelf.cache.reset();
}

void ActiveRows::load(size_t number) {
  RowSegment& shelf = segments_[number];
  auto cache = std::make_unique<RowCache>(store_, shelf.room);
  FieldReader from(path_of(shelf.file));
  cache->restore(from);
  from.finish();
  if (cache->size() != shelf.rows || cache->used() != shelf.bytes) from.refuse("is not what was written there");
  shelf.cache = std::move(cache);
  here_ += shelf.bytes;
  read_ += shelf.bytes;
}

size_t ActiveRows::bring(size_t first, size_t count, size_t pinned) {
  if (count == 0 || first >= size()) return 0;
  const size_t end = std::min(size(), first + count);
  const size_t begin_shelf = shelf_of(first);
  const size_t pinned_shelf = pinned == 0 ? segments_.size() : shelf_of(size() - pinned);
  for (size_t shelf = begin_shelf; shelf < segments_.size() && segments_[shelf].first < end; ++shelf) {
    if (segments_[shelf].cache) continue;
    // The first is brought in any case: a run must go on.
    if (!make_room(segments_[shelf].bytes, begin_shelf, shelf, pinned_shelf) && shelf > begin_shelf)
      return segments_[shelf].first - first;
    load(shelf);
  }
  return end - first;
}

void ActiveRows::keep(const std::vector<uint8_t>& keep) {
  size_t kept = 0;
  for (size_t number = 0; number < segments_.size(); ++number) {
    RowSegment& shelf = segments_[number];
    const std::vector<uint8_t> kept_rows(keep.begin() + static_cast<ptrdiff_t>(shelf.first),
                                         keep.begin() + static_cast<ptrdiff_t>(shelf.first + shelf.rows));
    const size_t first = shelf.first;
    shelf.first = kept;
    for (size_t i = 0; i < kept_rows.size(); ++i) {
      if (kept_rows[i] == 0) continue;
      alphas_[kept] = alphas_[first + i];
      out_[kept] = out_[first + i];
      ++kept;
    }
    if (kept - shelf.first == shelf.rows) continue;
    if (!shelf.cache) {
      make_room(shelf.bytes, number, number, segments_.size());
      load(number);
    }
    shelf.cache->keep(kept_rows);
    shelf.cache->shrink();
    shelf.room = shelf.cache->capacity();
    shelf.rows = shelf.cache->size();
    shelf.file = 0;
    here_ -= shelf.bytes - shelf.cache->used();
    shelf.bytes = shelf.cache->used();
  }
  alphas_.resize(kept);
  out_.resize(kept);
  // Those in the middle are not filled up again; empty ones would not be found.
  std::erase_if(segments_, [](const RowSegment& shelf) { return shelf.rows == 0; });
}

void ActiveRows::save(FieldWriter& to) const {
  std::vector<SavedShelf> saved;
  for (const RowSegment& shelf : segments_)
    saved.push_back({shelf.rows, shelf.bytes, shelf.room, shelf.file, shelf.cache != nullptr});
  to("shelves", saved);
  to("files", files_written_);
  to("alphas", alphas_);
  to("out", out_);
  for (size_t i = 0; i < segments_.size(); ++i)
    if (segments_[i].cache) to(numbered("shelf", i), *segments_[i].cache);
}

void ActiveRows::restore(FieldReader& from) {
  const auto saved = from.take<std::vector<SavedShelf>>("shelves");
  from("files", files_written_);
  segments_.clear();
  here_ = 0;
  size_t first = 0;
  for (size_t i = 0; i < saved.size(); ++i) {
    RowSegment shelf{.first = first, .rows = saved[i].rows, .bytes = saved[i].bytes, .file = saved[i].file};
    shelf.room = checked_size(saved[i].room, capacity_, "a shelf of the checkpoint");
    first += shelf.rows;
    if (saved[i].here) {
      shelf.cache = std::make_unique<RowCache>(store_, shelf.room);
      from(numbered("shelf", i), *shelf.cache);
      here_ += shelf.bytes;
    }
    segments_.push_back(std::move(shelf));
  }
  from("alphas", alphas_);
  from("out", out_);
  bool whole = alphas_.size() == first && out_.size() == first;
  for (const RowSegment& shelf : segments_) whole = whole && (!shelf.cache || shelf.cache->size() == shelf.rows);
  if (!whole) from.refuse("has active rows that do not fit together");
}

}  // namespace linblock
