#include "store/core/store.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <tuple>

#include "base/checksum.h"
#include "base/error.h"
#include "store/columns/row_facts.h"
#include "store/core/removed_rows.h"
#include "store/core/tags.h"
#include "store/index/metric_forest.h"

namespace linblock {

namespace {
// An index that reaches far takes a bit and a half a feature; 1 GiB covers every 32-bit index.
constexpr uint64_t kMapBytes = uint64_t{1} << 26;  // that a feature map may take whatever the features are

// What the manifest says must not contradict itself.
void check_sums(const StoreInfo& info, const std::string& path) {
  const auto refuse = [&](const char* why) {
    fail(ErrorKind::damaged, "'{}' is damaged: {}", manifest_path(path), why);
  };
  uint64_t rows = 0;
  uint64_t nonzeros = 0;
  uint64_t next_row = 0;
  uint64_t last_number = 0;
  const RemovedInfo& removed = info.removed;
  for (const SegmentInfo& segment : info.segments) {
    if (segment.number <= last_number || segment.first_row < next_row) refuse("its segments are out of order");
    last_number = segment.number;
    next_row = segment.first_row + segment.rows;
    rows += segment.rows;
    nonzeros += segment.nonzeros;
  }
  if (removed.rows > 0 ? removed.number == 0 : removed.nonzeros > 0 || removed.checksum > 0)
    refuse("its removed rows contradict themselves");
  if (removed.rows > rows || rows - removed.rows != info.rows || removed.nonzeros > nonzeros ||
      nonzeros - removed.nonzeros != info.nonzeros)
    refuse("its segments do not add up");
  // A column may stand in several pieces, each of which is a row here.
  if (info.axis == Axis::features ? info.columns > info.next_row_id || info.columns > rows
                                  : next_row > info.next_row_id)
    refuse("it has more ids than it says");
  if (const char* const why = wrong_tags(info)) refuse(why);
  if (info.axis != Axis::rows && removed.rows > 0) refuse("only a store of rows has removed ones");
  if (info.axis == Axis::forest) {
    const auto beside = [](const ForestInfo::Trees& trees, const SegmentInfo& segment) {
      return trees.number == segment.number;
    };
    if (!std::equal(info.forest.files.begin(), info.forest.files.end(), info.segments.begin(), info.segments.end(),
                    beside))
      refuse("its trees are not those of its segments");
    if (info.buckets != 1) refuse("an index has one bucket");
  }
  uint64_t labeled = 0;
  for (const auto& [label, count] : info.labels) {
    if (count == 0) refuse("it lists a label without rows");
    labeled += count;
  }
  if (labeled != info.rows) refuse("its labels do not add up to its rows");
}

}  // namespace

Store Store::open(const std::string& path) {
  constexpr int kMostAttempts = 100;
  for (int attempt = 1;; ++attempt) {
    Store store;
    store.path_ = path;
    store.info_ = read_manifest(path);
    try {
      store.read_files();
      return store;
    } catch (const Error&) {
      // A writer may have committed since, and deleted what this manifest names: then there is a newer one to try.
      if (!store.was_replaced()) throw;
      if (attempt == kMostAttempts || path_kind(manifest_path(path)) != PathKind::file) store.refuse_replaced();
    }
  }
}

bool Store::was_replaced() const {
  try {
    return path_kind(manifest_path(path_)) != PathKind::file || read_manifest(path_).id != info_.id;
  } catch (const Error&) {
    return false;  // whatever it is, it is not a newer state
  }
}

void Store::refuse_replaced() const {
  fail(ErrorKind::io,
       "'{}' was changed or replaced by another process while this command was reading it: run the command again",
       path_);
}

void Store::read_files() {
  read_features();  // only to see that it is whole
  check_sums(info_, path_);
  feature_names_ = FeatureNames::open(path_, info_);
  for (uint32_t segment = 0; segment < info_.segments.size(); ++segment) read_directory(segment);
  std::sort(chunks_.begin(), chunks_.end(), [](const ChunkInfo& a, const ChunkInfo& b) {
    return std::tie(a.bucket, a.segment, a.number) < std::tie(b.bucket, b.segment, b.number);
  });
  if (info_.removed.rows > 0) read_removed();
  if (info_.axis == Axis::features) expect_present(row_facts_path(path_, info_.row_facts.number));
  for (const ForestInfo::Trees& trees : info_.forest.files) expect_present(forest_path(path_, trees.number));
}

// Puts the removed ids in the order of the chunks. Whether a chunk has them is found out when it is read.
void Store::read_removed() {
  const std::vector<uint64_t> ids = linblock::read_removed(path_, info_);
  std::vector<uint32_t> chunk_of(ids.size());
  removed_begin_.assign(chunks_.size() + 1, 0);
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::optional<size_t> chunk = chunk_with(ids[i]);
    if (!chunk)
      fail(ErrorKind::damaged, "'{}' is damaged: it lists row {}, which no chunk can hold",
           removed_path(path_, info_.removed.number), ids[i]);
    chunk_of[i] = static_cast<uint32_t>(*chunk);
    ++removed_begin_[*chunk + 1];
  }
  for (size_t chunk = 0; chunk < chunks_.size(); ++chunk) removed_begin_[chunk + 1] += removed_begin_[chunk];
  std::vector<uint64_t> next(removed_begin_.begin(), removed_begin_.end() - 1);
  removed_.resize(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) removed_[next[chunk_of[i]]++] = ids[i];
}

std::span<const uint64_t> Store::removed_from(size_t chunk) const {
  if (removed_begin_.empty()) return {};
  return std::span(removed_).subspan(removed_begin_[chunk], removed_begin_[chunk + 1] - removed_begin_[chunk]);
}

std::vector<uint64_t> Store::removed_ids() const {
  std::vector<uint64_t> ids = removed_;
  std::sort(ids.begin(), ids.end());
  return ids;
}

const FeatureMap& Store::features() const {
  if (!features_) try {
      features_ = read_features();
    } catch (const Error&) {
      if (was_replaced()) refuse_replaced();
      throw;
    }
  return *features_;
}

FeatureMap Store::read_features() const {
  const std::string path = features_path(path_);
  expect_present(path);
  const uint64_t count = info_.frequent_features;
  const std::vector<unsigned char> bytes = read_whole_file(path, 16 + 4 * format::kMostFrequent);
  if (bytes.size() != 16 + 4 * count || checksum(bytes) != info_.features_checksum)
    fail(ErrorKind::damaged, "'{}' is damaged: its checksum does not match", path);
  std::vector<uint32_t> frequent(count);
  if (count > 0) std::memcpy(frequent.data(), bytes.data() + 16, 4 * count);
  if (bytes != encode_frequent(frequent)) fail(ErrorKind::damaged, "'{}' is not a feature map", path);
  // It takes two bits for each feature up to the last frequent one.
  const uint64_t most_bytes = std::max(kMapBytes, info_.feature_numbers() / 4);
  return FeatureMap::from_frequent(std::move(frequent), most_bytes, path);
}

void Store::read_directory(uint32_t segment) {
  const SegmentInfo& described = info_.segments[segment];
  const std::string path = directory_path(path_, described.number);
  expect_present(path);
  expect_present(segment_path(path_, described.number));
  const std::vector<unsigned char> bytes = read_whole_file(path, UINT32_MAX);
  if (bytes.size() != described.chunks * format::kDirectoryEntryBytes ||
      checksum(bytes) != described.directory_checksum)
    fail(ErrorKind::damaged, "'{}' is damaged: its checksum does not match", path);
  File file = File::open_read(segment_path(path_, described.number));
  if (file.size() != described.bytes)
    fail(ErrorKind::damaged, "'{}' is damaged: it has {} bytes instead of {}", file.path(), file.size(),
         described.bytes);
  const std::vector<unsigned char> expected = segment_header(info_.seal, described.number);
  std::vector<unsigned char> header(expected.size());
  file.read_exactly_at(header, 0);
  if (header != expected) fail(ErrorKind::damaged, "'{}' is damaged: its header is not this store's", file.path());
  uint64_t offset = format::kPageBytes;
  uint64_t rows = 0;
  uint64_t nonzeros = 0;
  for (uint64_t i = 0; i < described.chunks; ++i) {
    const unsigned char* entry = bytes.data() + i * format::kDirectoryEntryBytes;
    const ChunkInfo chunk{.segment = segment,
                          .bucket = load_le<uint32_t>(entry + 32),
                          .number = i,
                          .offset = offset,
                          .stored_bytes = load_le<uint32_t>(entry + 16),
                          .raw_bytes = load_le<uint32_t>(entry + 20),
                          .rows = load_le<uint32_t>(entry + 24),
                          .nonzeros = load_le<uint32_t>(entry + 28),
                          .first_row = load_le<uint64_t>(entry),
                          .checksum = load_le<uint64_t>(entry + 8)};
    checked_size(chunk.bucket, info_.buckets - 1, "'" + path + "': a chunk's bucket");
    checked_size(chunk.raw_bytes, 2 * format::kLargestChunkBytes, "'" + path + "': a chunk's size");
    // What the bytes can hold: a row may take none at all, a nonzero takes a bit or more.
    checked_size(chunk.rows, format::kMostChunkRows, "'" + path + "': a chunk's number of rows");
    checked_size(chunk.nonzeros, 8 * uint64_t{chunk.raw_bytes}, "'" + path + "': a chunk's number of nonzeros");
    checked_size(chunk.first_row, UINT64_MAX / 2, "'" + path + "': a chunk's first row");
    offset += chunk.extent();
    rows += chunk.rows;
    nonzeros += chunk.nonzeros;
    chunks_.push_back(chunk);
  }
  if (offset != described.bytes || rows != described.rows || nonzeros != described.nonzeros)
    fail(ErrorKind::damaged, "'{}' is damaged: its chunks do not add up to the segment", path);
  segments_.push_back(std::move(file));
}

std::string Store::name_of(const ChunkInfo& chunk) const {
  return fmt::format("'{}', chunk {} at offset {}", segments_[chunk.segment].path(), chunk.number, chunk.offset);
}

void Store::read(size_t number, Chunk& into) const {
  const ChunkInfo& chunk = chunks_[number];
  const SegmentInfo& segment = info_.segments[chunk.segment];
  const bool compressed = info_.codec != Codec::none;
  thread_local Buffer compressed_bytes;
  Buffer& stored = compressed ? compressed_bytes : into.raw();
  stored.resize(chunk.extent());
  segments_[chunk.segment].read_exactly_at(stored.span(), chunk.offset);
  if (checksum(stored.span(), chunk_seed(info_.seal, segment.number, chunk.number)) != chunk.checksum)
    fail(ErrorKind::damaged, "{}: its checksum does not match; restore the store from a copy or pack the data again",
         name_of(chunk));
  if (compressed)
    decompress(info_.codec, {stored.data(), chunk.stored_bytes}, chunk.raw_bytes, into.raw(), name_of(chunk));
  else
    into.raw().resize(chunk.raw_bytes);
  into.parse(info_.feature_numbers(), name_of(chunk));
  if (into.rows() != chunk.rows || into.nonzeros() != chunk.nonzeros || into.width_set() != info_.width_set ||
      (into.rows() > 0 && into.id(0) != chunk.first_row))
    fail(ErrorKind::damaged, "{}: it does not hold what its directory says", name_of(chunk));
  if (!into.mark_removed(removed_from(number)))
    fail(ErrorKind::damaged, "'{}' is damaged: it lists a row that is not in {}",
         removed_path(path_, info_.removed.number), name_of(chunk));
}

std::optional<size_t> Store::chunk_with(uint64_t row_id) const {
  const uint32_t bucket = bucket_of(info_.seed, row_id, info_.buckets);
  const auto after =
      std::upper_bound(chunks_.begin(), chunks_.end(), std::tie(bucket, row_id),
                       [](const std::tuple<const uint32_t&, const uint64_t&>& wanted, const ChunkInfo& chunk) {
                         return wanted < std::tie(chunk.bucket, chunk.first_row);
                       });
  if (after == chunks_.begin() || (after - 1)->bucket != bucket) return {};
  return static_cast<size_t>(after - chunks_.begin()) - 1;
}

void Store::gather(std::span<const uint64_t> row_ids, RowBlock& into) const {
  std::map<size_t, std::vector<uint64_t>> wanted;
  for (const uint64_t id : row_ids) {
    const std::optional<size_t> chunk = chunk_with(id);
    if (!chunk) fail(ErrorKind::input, "row {} is not in '{}'", id, path_);
    wanted[*chunk].push_back(id);
  }
  into.release();
  // Rows of one chunk at a time, as they stand; then one chunk in the order of the ids holds them all.
  std::vector<Chunk> sources(wanted.size());
  struct RowPlace {
    uint64_t id;
    size_t source;
    size_t row;
  };
  std::vector<RowPlace> places;
  size_t source = 0;
  RowBuffer buffer;
  for (const auto& [number, ids] : wanted) {
    Chunk whole;
    read(number, whole);
    ChunkBuilder kept;
    std::vector<uint64_t> sorted = ids;
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    size_t row = 0;
    for (const uint64_t id : sorted) {
      while (row < whole.rows() && whole.id(row) < id) ++row;
      if (row == whole.rows() || whole.id(row) != id) fail(ErrorKind::input, "row {} is not in '{}'", id, path_);
      if (whole.removed(row)) fail(ErrorKind::input, "row {} was removed from '{}'", id, path_);
      places.push_back({id, source, kept.rows()});
      kept.add(id, whole.encoded(row, buffer));
    }
    kept.finish(whole.width_set(), sources[source].raw());
    sources[source].parse(info_.feature_numbers(), "rows gathered from '" + path_ + "'");
    ++source;
  }
  std::sort(places.begin(), places.end(), [](const RowPlace& a, const RowPlace& b) { return a.id < b.id; });
  ChunkBuilder builder;
  const auto flush = [&] {
    Chunk chunk;
    builder.finish(info_.width_set, chunk.raw());
    chunk.parse(info_.feature_numbers(), "rows gathered from '" + path_ + "'");
    into.add(std::move(chunk));
  };
  for (const RowPlace& place : places) {
    const EncodedRow row = sources[place.source].encoded(place.row, buffer);
    if (!builder.has_room_for(row, info_.chunk_bytes)) flush();
    builder.add(place.id, row);
  }
  if (!builder.empty()) flush();
}

namespace {

// Where a chunk begins and ends: a row's id, and for a column the place of its first or last entry.
struct ChunkEnds {
  uint64_t first_id = 0;
  uint64_t last_id = 0;
  uint32_t first_index = 0;
  uint32_t last_index = 0;
};

ChunkEnds ends_of(const Chunk& chunk, RowBuffer& buffer) {
  if (chunk.rows() == 0) return {};
  const Row last = chunk.row(chunk.rows() - 1, buffer);
  ChunkEnds ends{.last_id = last.id, .last_index = last.index.empty() ? 0 : last.index.back()};
  const Row first = chunk.row(0, buffer);
  ends.first_id = first.id;
  ends.first_index = first.index.empty() ? 0 : first.index.front();
  return ends;
}

// Ids increase from chunk to chunk of a bucket; only a column may go on, and then so do its entries. Returns how often
// one does.
uint64_t check_order(const Store& store, const std::vector<ChunkEnds>& ends) {
  uint64_t continued = 0;
  for (size_t i = 1; i < ends.size(); ++i) {
    if (store.chunks()[i].bucket != store.chunks()[i - 1].bucket) continue;
    const ChunkEnds& before = ends[i - 1];
    const bool continues = store.info().axis == Axis::features && ends[i].first_id == before.last_id &&
                           ends[i].first_index > before.last_index;
    if (!continues && ends[i].first_id <= before.last_id)
      fail(ErrorKind::damaged, "{}: it does not continue the chunk before it", store.name_of(store.chunks()[i]));
    if (continues) ++continued;
  }
  return continued;
}

}  // namespace

std::vector<uint64_t> row_begins(const Store& store) {
  std::vector<uint64_t> begins(store.chunks().size() + 1, 0);
  for (size_t chunk = 0; chunk < store.chunks().size(); ++chunk)
    begins[chunk + 1] = begins[chunk] + store.chunks()[chunk].rows;
  return begins;
}

VerifyReport verify(const Store& store, const Team& team, const std::function<void(uint64_t)>& observer) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  uint64_t rows = 0;
  uint64_t nonzeros = 0;
  uint64_t bytes = 0;
  std::map<int32_t, uint64_t> labels;
  const StoreInfo& info = store.info();
  TagCounts tagged(info.tags);
  std::vector<ChunkEnds> ends(store.chunks().size());
  team.run_loops(
      team.size(),
      [&] {
        Chunk chunk;
        RowBuffer buffer;
        for (size_t number = next++; number < store.chunks().size(); number = next++) {
          store.read(number, chunk);
          chunk.decode();
          ends[number] = ends_of(chunk, buffer);
          for (size_t row = 0; row < chunk.rows(); ++row)
            if (bucket_of(info.seed, chunk.id(row), info.buckets) != store.chunks()[number].bucket ||
                chunk.id(row) >= info.next_row_id)
              fail(ErrorKind::damaged, "{}: row {} does not belong there", store.name_of(store.chunks()[number]),
                   chunk.id(row));
          const std::lock_guard lock(mutex);
          for (size_t row = 0; row < chunk.rows(); ++row) {
            if (chunk.removed(row)) continue;
            ++labels[chunk.label(row)];
            tagged.add(chunk.id(row));
            ++rows;
            nonzeros += chunk.nonzeros(row);
          }
          bytes += store.chunks()[number].extent();
          observer(bytes);
        }
      },
      [&] { next = store.chunks().size(); });
  if (rows != info.rows)
    fail(ErrorKind::damaged, "'{}' is damaged: {} rows are there instead of {}", store.path(), rows, info.rows);
  if (nonzeros != info.nonzeros)
    fail(ErrorKind::damaged, "'{}' is damaged: the rows have {} nonzeros instead of {}", manifest_path(store.path()),
         nonzeros, info.nonzeros);
  if (labels != info.labels)
    fail(ErrorKind::damaged, "'{}' is damaged: the rows have other labels than it says", manifest_path(store.path()));
  for (size_t i = 0; i < info.tags.size(); ++i)
    if (tagged.rows()[i] != info.tags[i].rows)
      fail(ErrorKind::damaged, "'{}' is damaged: {} rows have the tag '{}' instead of {}", manifest_path(store.path()),
           tagged.rows()[i], info.tags[i].tag, info.tags[i].rows);
  store.feature_names().check();
  if (info.axis == Axis::forest) {
    check_forest(MetricForest::open_pages(Store::open(store.path())));
    return {.chunks = store.chunks().size(), .rows = rows, .bytes = store.bytes()};
  }
  const uint64_t continued = check_order(store, ends);
  if (info.axis == Axis::features) {
    if (rows - continued != info.columns)
      fail(ErrorKind::damaged, "'{}' is damaged: {} columns are there instead of {}", manifest_path(store.path()),
           rows - continued, info.columns);
    check_row_facts(store.path(), info);
  }
  return {.chunks = store.chunks().size(), .rows = rows, .bytes = store.bytes()};
}

}  // namespace linblock
