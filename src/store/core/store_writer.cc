#include "store/core/store_writer.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "store/core/store.h"
#include "store/core/tags.h"

namespace linblock {

namespace {

constexpr uint64_t kWritebackBytes = uint64_t{1} << 20;

constexpr size_t kMostSealed = 8;                         // finished chunks that wait for an earlier one
constexpr uint64_t kDiskCheckBytes = uint64_t{32} << 20;  // how often free space is looked at
constexpr uint64_t kDiskReserve = uint64_t{4} << 20;      // left for the directory, the manifest and other people

std::span<const unsigned char> bytes_of(std::string_view text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

// A store with any other tag could not be read.
void expect_word(const std::string& tag) {
  if (!tag.empty() && !Tag::read(tag)) fail(ErrorKind::usage, "`tag` '{}' is not {}", tag, Tag::what());
}

[[noreturn]] void fail_with_too_many_labels() {
  fail(ErrorKind::input,
       "there are more than {} different labels: linblock trains classifiers; is this a "
       "regression target?",
       format::kMostLabels);
}

}  // namespace

StoreWriter::StoreWriter(const std::string& path)
    : path_(new_store_path(path)), folder_(partial_path(path_)), lock_(lock_partial(path_, "packing")) {}

std::unique_ptr<StoreWriter> StoreWriter::open_existing(const std::string& path, std::string_view purpose) {
  expect_rows(read_manifest(path), path);  // a path that is no store is refused before a lock is put there
  auto writer = std::unique_ptr<StoreWriter>(new StoreWriter());
  writer->path_ = path;
  writer->folder_ = path;
  writer->appending_ = true;
  writer->lock_.emplace(FileLock::acquire(path + "/" + format::kLockName, purpose));
  const Store store = Store::open(path);  // under the lock: another writer may have been at work until now
  writer->info_ = store.info();
  writer->features_ = store.features();
  remove_leftovers(path, writer->info_);
  return writer;
}

std::unique_ptr<StoreWriter> StoreWriter::append_to(const std::string& path, const std::string& tag) {
  expect_word(tag);
  std::unique_ptr<StoreWriter> writer = open_existing(path, "appending");
  if (!tag.empty()) expect_new_tag(writer->info_, path, tag);
  writer->tag_ = tag;
  writer->start_segment();
  return writer;
}

std::unique_ptr<StoreWriter> StoreWriter::rewrite(const std::string& path) {
  std::unique_ptr<StoreWriter> writer = open_existing(path, "compacting");
  writer->start_segment();
  StoreInfo& info = writer->info_;
  info.segments.clear();
  info.rows = 0;
  info.nonzeros = 0;
  info.labels.clear();
  info.values = ValueSums{};
  info.removed = {.number = info.removed.number};
  return writer;
}

void StoreWriter::clean(const std::string& path, const std::string& folder) {
  if (!has_leftovers(folder, read_manifest(folder))) return;
  try {
    const FileLock lock = FileLock::acquire(path + "/" + format::kLockName, "cleaning up");
    remove_leftovers(folder, read_manifest(folder));
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): they harm nobody, and the next writer deletes them
  }
}

StoreInfo StoreWriter::enter(const StoreInfo& rows, const std::string& path, const std::string& folder, Axis axis,
                             std::string_view purpose, std::string_view command) {
  path_ = folder;
  folder_ = folder;
  info_.axis = axis;
  lock_.emplace(FileLock::acquire(path + "/" + format::kLockName, purpose));
  if (read_manifest(path).id != rows.id)
    fail(ErrorKind::io, {say("run 'linblock {} {}' again", command, path)},
         "'{}' was changed by another process just now", path);
  if (is_link(folder))
    fail(ErrorKind::usage, "'{}' is a symbolic link, and linblock does not write through it: remove the link", folder);
  if (path_kind(folder) == PathKind::absent) {
    make_directory(folder);
    made_folder_ = true;
    sync_directory(path);
  }
  StoreInfo old;
  old.axis = axis;
  if (path_kind(manifest_path(folder)) != PathKind::absent) try {
      old = read_manifest(folder);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::damaged) throw;
      remove_own_file(folder, store_directory(), format::kManifestName);
    }
  if (old.axis != axis)
    fail(ErrorKind::usage, {say("move it away")}, "'{}' is a store of rows, and 'linblock {}' writes there", folder,
         command);
  remove_leftovers(folder, old);
  return old;
}

std::unique_ptr<StoreWriter> StoreWriter::columns_of(const StoreInfo& rows, const std::string& path,
                                                     const StoreOptions& options) {
  auto writer = std::unique_ptr<StoreWriter>(new StoreWriter());
  const StoreInfo old = writer->enter(rows, path, columns_path(path), Axis::features, "transposing", "transpose");
  StoreInfo& info = writer->info_;
  info.next_segment = writer->segment_.number = old.new_segment_number();
  writer->set_layout(options);
  info.index_base = 0;
  info.normalized = rows.normalized;
  info.rows_id = rows.id;
  info.next_row_id = rows.feature_numbers();
  info.seal = mix64(mix64(mix64(rows.id, info.chunk_bytes), static_cast<uint64_t>(info.codec)), rows.seal);
  return writer;
}

std::unique_ptr<StoreWriter> StoreWriter::index_of(const Store& rows, const StoreOptions& options, ForestInfo forest,
                                                   const StoreInfo* extended) {
  auto writer = std::unique_ptr<StoreWriter>(new StoreWriter());
  const StoreInfo& from = rows.info();
  const StoreInfo old = writer->enter(from, rows.path(), index_path(rows.path()), Axis::forest, "indexing", "index");
  StoreInfo& info = writer->info_;
  if (extended != nullptr) {
    if (old.id != extended->id)
      fail(ErrorKind::io, {say("run 'linblock index {}' again", rows.path())},
           "the index of '{}' was changed by another process just now", rows.path());
    info = old;
  } else {
    info.next_segment = old.new_segment_number();
    writer->set_layout(options);
    info.seal = mix64(mix64(mix64(from.id, info.chunk_bytes), info.seed), from.seal);
    for (const uint64_t word : {forest.tree_rows, uint64_t{forest.branch}, std::bit_cast<uint64_t>(forest.bias)})
      info.seal = mix64(info.seal, word);
  }
  forest.files = info.forest.files;
  info.forest = std::move(forest);
  info.rows_id = from.id;
  info.width_set = from.width_set;
  info.index_base = from.index_base;
  info.index_base_given = from.index_base_given;
  info.normalized = from.normalized;
  info.weighted = from.weighted;
  info.has_features = from.has_features;
  info.largest_index = from.largest_index;
  info.next_row_id = from.next_row_id;
  info.frequent_features = from.frequent_features;
  info.label_names = from.label_names;
  writer->features_ = rows.features();
  writer->start_segment();
  return writer;
}

void StoreWriter::begin_columns(unsigned width_set, uint64_t places) {
  info_.width_set = width_set;
  info_.has_features = true;
  info_.largest_index = static_cast<uint32_t>(places - 1);
  start_segment();
  segment_.first_row = 0;
}

StoreWriter::~StoreWriter() {
  if (!committed_ && lock_) discard();
}

// Best effort: the next writer removes what is left, and the error that brought us here matters more.
void StoreWriter::discard() noexcept {
  try {
    segment_file_ = File();
    directory_file_ = File();
    if (appending_ || info_.axis != Axis::rows) {
      const auto remove = [&](const std::string& path) {
        remove_own_file(folder_, store_directory(), std::string_view(path).substr(folder_.size() + 1));
      };
      remove(directory_path(folder_, segment_.number));  // first: without its rows, nothing tells whose it is
      remove(segment_path(folder_, segment_.number));
      if (appending_) return;
      remove(info_.axis == Axis::features ? row_facts_path(folder_, segment_.number)
                                          : forest_path(folder_, segment_.number));
      if (path_kind(manifest_path(folder_)) != PathKind::absent) return;
      remove(features_path(folder_));
      if (made_folder_) remove_empty_directory(folder_);
    } else {
      discard_partial(path_);
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
}

std::string source_line(const StoreInfo& info) { return fmt::format("\nstore {:016x}\n", info.id); }

void StoreWriter::begin(const StoreOptions& options, FeatureMap features, unsigned width_set, uint64_t fingerprint) {
  expect_word(options.tag);
  set_layout(options);
  measured_ = options.measured;
  source_ = options.source;
  tag_ = options.tag;
  info_.width_set = width_set;
  info_.index_base = options.index_base == 0 ? 0 : 1;
  features_ = std::move(features);
  info_.values = ValueSums{};
  info_.frequent_features = features_.frequent().size();
  uint64_t seal = mix64(fingerprint, options.seed);
  for (const uint64_t word : {uint64_t{info_.buckets}, info_.chunk_bytes, uint64_t{width_set},
                              static_cast<uint64_t>(info_.codec), uint64_t{info_.normalized}})
    seal = mix64(seal, word);
  info_.seal = seal;
  start_segment();
}

void StoreWriter::set_layout(const StoreOptions& options) {
  info_.seed = options.seed;
  info_.buckets = options.shuffle ? std::clamp<uint32_t>(options.buckets, 1, format::kMostBuckets) : 1;
  info_.chunk_bytes = std::clamp(options.chunk_bytes, format::kSmallestChunkBytes, format::kLargestChunkBytes);
  info_.codec = options.codec;
  info_.codec_reason = options.codec_reason;
  info_.normalized = options.normalized;
  info_.index_base_given = options.index_base >= 0;
}

void StoreWriter::start_segment() {
  encoder_ = std::make_unique<RowEncoder>(features_, info_.width_set);
  segment_.number = info_.new_segment_number();
  segment_.first_row = info_.next_row_id;
  segment_.bytes = format::kPageBytes;
  segment_file_ = File::create(segment_path(folder_, segment_.number), format::kSegmentMagic);
  directory_file_ = File::create(directory_path(folder_, segment_.number), "");
  segment_file_.write_at(segment_header(info_.seal, segment_.number), 0);
  buckets_.resize(info_.buckets);
}

void StoreWriter::add(const Row& row) {
  single_.clear();
  encoder_->add(row.label, row.weight, row.index, row.value, single_);
  if (!row.index.empty()) saw_indices(row.index.front(), row.index.back());
  if (row.weight != 1.0F) info_.weighted = true;
  route(single_[0]);
  while (seal_one()) continue;
}

void StoreWriter::saw_indices(uint32_t smallest, uint32_t largest) {
  if (smallest == 0 && info_.index_base == 1) {
    if (info_.index_base_given || (appending_ && info_.has_features))
      fail(ErrorKind::input,
           {say("number the features as in the store"), say("pack all of the data together with `index_base` 0")},
           "feature index 0 in data that is numbered from 1{}", appending_ ? " in this store" : "");
    info_.index_base = 0;
  }
  info_.largest_index = info_.has_features ? std::max(info_.largest_index, largest) : largest;
  info_.has_features = true;
}

void StoreWriter::route(const EncodedRow& row) { route(info_.next_row_id++, row); }

void StoreWriter::route(uint64_t id, const EncodedRow& row) {
  if (row.indices.size() + 4 * uint64_t{row.count} > format::kLargestChunkBytes)
    fail(ErrorKind::input, "row {} has {} nonzeros, more than a chunk of 1 GB can hold", id, row.count);
  const uint32_t bucket = bucket_of(info_.seed, id, info_.buckets);
  const bool cut = info_.axis != Axis::forest;  // who fills the pages of an index closes them too
  if (cut && buckets_[bucket] && !buckets_[bucket]->has_room_for(row, info_.chunk_bytes)) close_bucket(bucket);
  if (!buckets_[bucket]) buckets_[bucket] = take_builder();
  buckets_[bucket]->add(id, row);
  // A row longer than a chunk does not stay: as many of them as there are buckets would be too much.
  if (cut && buckets_[bucket]->bytes() >= info_.chunk_bytes) close_bucket(bucket);
  ++segment_.rows;
  segment_.nonzeros += row.count;
  if (info_.values) info_.values->add(row);
  segment_.first_row = std::min(segment_.first_row, id);
  if (last_label_count_ == nullptr || row.label != last_label_) {
    last_label_ = row.label;
    last_label_count_ = &info_.labels[row.label];
    if (info_.labels.size() > format::kMostLabels) fail_with_too_many_labels();
  }
  ++*last_label_count_;
}

int32_t StoreWriter::label_code(std::string_view name) {
  LabelNames& names = info_.label_names;
  const int32_t code = names.add(name);
  if (names.size() > format::kMostLabels) fail_with_too_many_labels();
  if (names.bytes() > format::kMostLabelNames)
    fail(ErrorKind::input, {say("give the classes shorter names")},
         "the names of all labels together are longer than {}", human_bytes(format::kMostLabelNames));
  return code;
}

std::unique_ptr<ChunkBuilder> StoreWriter::take_builder() {
  const std::lock_guard lock(mutex_);
  if (idle_builders_.empty()) return std::make_unique<ChunkBuilder>(info_.chunk_bytes);
  std::unique_ptr<ChunkBuilder> builder = std::move(idle_builders_.back());
  idle_builders_.pop_back();
  return builder;
}

void StoreWriter::close_bucket(uint32_t bucket) {
  if (!buckets_[bucket]) return;
  const std::lock_guard lock(mutex_);
  pending_.push_back({next_sequence_++, bucket, std::move(buckets_[bucket])});
}

void StoreWriter::close_buckets() {
  for (uint32_t bucket = 0; bucket < buckets_.size(); ++bucket) close_bucket(bucket);
}

size_t StoreWriter::pending() const {
  const std::lock_guard lock(mutex_);
  return pending_.size();
}

void StoreWriter::abandon() {
  const std::lock_guard lock(mutex_);
  abandoned_ = true;
  moved_.notify_all();
}

bool StoreWriter::seal_one() {
  std::unique_lock lock(mutex_);
  if (pending_.empty() || abandoned_) return false;
  Pending work = std::move(pending_.front());
  pending_.pop_front();
  const auto idle_buffer = [&] {
    if (idle_buffers_.empty()) return Buffer();
    Buffer buffer = std::move(idle_buffers_.back());
    idle_buffers_.pop_back();
    return buffer;
  };
  Sealed done;
  done.bytes = idle_buffer();
  lock.unlock();

  done.bucket = work.bucket;
  done.rows = static_cast<uint32_t>(work.builder->rows());
  done.nonzeros = static_cast<uint32_t>(work.builder->nonzeros());
  done.first_row = work.builder->first_id();
  work.builder->finish(info_.width_set, done.bytes);
  done.raw_bytes = static_cast<uint32_t>(done.bytes.size());
  if (info_.codec != Codec::none) {
    thread_local Buffer raw;
    std::swap(raw, done.bytes);
    compress(info_.codec, raw.span(), done.bytes);
  }
  done.stored_bytes = static_cast<uint32_t>(done.bytes.size());
  done.bytes.grow(round_up<size_t>(done.bytes.size(), format::kPageBytes));
  std::fill(done.bytes.data() + done.stored_bytes, done.bytes.data() + done.bytes.size(), 0);
  done.checksum = checksum(done.bytes.span(), chunk_seed(info_.seal, segment_.number, work.sequence));

  lock.lock();
  // Memory that grew for a long row is given back.
  if (done.raw_bytes <= 2 * info_.chunk_bytes) idle_builders_.push_back(std::move(work.builder));
  work.builder.reset();
  // Whoever is next never waits, so somebody always moves.
  moved_.wait(lock, [&] { return abandoned_ || work.sequence == next_written_ || sealed_.size() < kMostSealed; });
  sealed_.emplace(work.sequence, std::move(done));
  while (!abandoned_ && !sealed_.empty() && sealed_.begin()->first == next_written_) {
    Sealed chunk = std::move(sealed_.begin()->second);
    sealed_.erase(sealed_.begin());
    ++next_written_;
    const uint64_t offset = segment_.bytes;
    segment_.bytes += chunk.bytes.size();
    ++segment_.chunks;
    const size_t entry = directory_.size();
    directory_.resize(entry + format::kDirectoryEntryBytes, 0);
    unsigned char* to = directory_.data() + entry;
    store_le(to, chunk.first_row);
    store_le(to + 8, chunk.checksum);
    store_le(to + 16, chunk.stored_bytes);
    store_le(to + 20, chunk.raw_bytes);
    store_le(to + 24, chunk.rows);
    store_le(to + 28, chunk.nonzeros);
    store_le(to + 32, chunk.bucket);
    flush_directory(size_t{64} << 10);
    check_disk(chunk.bytes.size());
    moved_.notify_all();
    lock.unlock();
    segment_file_.write_at(chunk.bytes.span(), offset);
    // A stretch at a time: asking for every small chunk cost a tenth of packing.
    const uint64_t end = offset + chunk.bytes.size();
    if (const uint64_t stretch = offset / kWritebackBytes; end / kWritebackBytes != stretch)
      segment_file_.start_writeback(stretch * kWritebackBytes, end - stretch * kWritebackBytes);
    lock.lock();
    if (chunk.bytes.capacity() <= 2 * info_.chunk_bytes) idle_buffers_.push_back(std::move(chunk.bytes));
  }
  return true;
}

void StoreWriter::flush_directory(size_t at_least) {
  if (directory_.size() < at_least || directory_.empty()) return;
  directory_file_.write_at(directory_, directory_bytes_);
  directory_checksum_.add(directory_);
  directory_bytes_ += directory_.size();
  directory_.clear();
}

void StoreWriter::check_disk(uint64_t bytes) {
  unchecked_disk_bytes_ += bytes;
  if (unchecked_disk_bytes_ < kDiskCheckBytes) return;
  unchecked_disk_bytes_ = 0;
  const uint64_t free = free_disk_bytes(folder_);
  if (free < kDiskReserve)
    fail(ErrorKind::io, "the disk of '{}' is full after {} of the store: free some space or choose another disk",
         folder_, human_bytes(segment_.bytes));
}

void StoreWriter::commit() {
  close_buckets();
  while (seal_one()) continue;
  flush_directory(0);
  buckets_.clear();
  idle_builders_.clear();
  idle_buffers_.clear();
  segment_.directory_checksum = directory_checksum_.value();
  segment_file_.sync();
  segment_file_.close();
  directory_file_.sync();
  directory_file_.close();
  info_.rows += segment_.rows;
  info_.nonzeros += segment_.nonzeros;
  info_.segments.push_back(segment_);
  if (!tag_.empty())
    info_.tags.push_back({.tag = tag_, .first_row = segment_.first_row, .ids = segment_.rows, .rows = segment_.rows});
  info_.next_segment = 0;
  if (appending_) {
    sync_directory(folder_);
    commit_manifest();
    return;
  }
  const std::vector<unsigned char> frequent =
      encode_frequent({features_.frequent().begin(), features_.frequent().end()});
  info_.features_checksum = checksum(frequent);
  if (info_.axis != Axis::rows) {
    // Older ones may stand beside it: its bytes are the same.
    replace_file(features_path(folder_), frequent, format::kFeatureMagic);
    commit_manifest();
    return;
  }
  write_new(features_path(folder_), frequent, format::kFeatureMagic);
  write_manifest(folder_, info_);
  if (!measured_.empty())
    write_new(fmt::format("{}/{}", folder_, format::kBuiltName), bytes_of(measured_), format::kBuiltBeginning);
  // With the store's id: rows that are appended later are not of this text.
  if (!source_.empty())
    write_new(fmt::format("{}/{}", folder_, format::kSourceName), bytes_of(source_ + source_line(info_)),
              format::kSourceBeginning);
  rename_path(folder_, path_);
  committed_ = true;
  sync_directory(parent_directory(path_));
}

void StoreWriter::commit_manifest() {
  try {
    write_manifest(folder_, info_);
  } catch (...) {
    committed_ = may_be_committed(folder_, info_);
    throw;
  }
  committed_ = true;
}

}  // namespace linblock
