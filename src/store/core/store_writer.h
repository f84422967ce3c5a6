// Writes a new store, or a new segment of one. Readers see nothing before commit(); whatever happens before it (an
// exception, a kill, a power cut) leaves the old state.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/checksum.h"
#include "base/file.h"
#include "store/chunk/chunk.h"
#include "store/chunk/feature_map.h"
#include "store/chunk/row_encoder.h"
#include "store/core/manifest.h"
#include "store/core/new_store.h"

namespace linblock {

struct StoreOptions {
  uint64_t seed = 1;
  bool shuffle = true;  // false: one bucket, the order of the input
  uint32_t buckets = 64;
  uint64_t chunk_bytes = uint64_t{256} << 10;
  Codec codec = Codec::none;
  std::string codec_reason = "chosen by the user";
  bool normalized = false;
  int index_base = -1;        // -1: 0 if index 0 occurs, else 1
  std::string measured = {};  // what BUILT is to say: it is beside the store, and not part of what the store is
  std::string source = {};    // what SOURCE is to say of the text; empty: there is no such file
  std::string tag = {};       // of the rows; empty: none
};

// How SOURCE ends: with the contents that the store had when it was made.
std::string source_line(const StoreInfo& info);

class Store;

class StoreWriter {
 public:
  // Takes a folder beside `path`, locked against other writers; what a killed writer left there is removed.
  explicit StoreWriter(const std::string& path);
  // A new segment of an existing store, under its options and its feature map. A tag that it has is refused.
  static std::unique_ptr<StoreWriter> append_to(const std::string& path, const std::string& tag = {});
  // A new segment that takes the place of all others; its rows come with their ids.
  static std::unique_ptr<StoreWriter> rewrite(const std::string& path);
  // Deletes the files that a killed writer left in a store, or in its columns or index, where there is nothing else to
  // do. `folder` is the store itself or one of these.
  static void clean(const std::string& path, const std::string& folder);
  // The columns of a store, under its lock, in a folder of its own inside it; they take the place of those that are
  // there when they are committed. Facts about the rows go into row_facts(), the rest waits for begin_columns().
  static std::unique_ptr<StoreWriter> columns_of(const StoreInfo& rows, const std::string& path,
                                                 const StoreOptions& options);
  // The index of a store, likewise; `forest` says of what and how. The index that is there is replaced, or gets one
  // more segment where it is the one that `extended` describes.
  static std::unique_ptr<StoreWriter> index_of(const Store& rows, const StoreOptions& options, ForestInfo forest,
                                               const StoreInfo* extended);
  // Removes what was not committed.
  ~StoreWriter();
  StoreWriter(const StoreWriter&) = delete;
  StoreWriter& operator=(const StoreWriter&) = delete;

  // A new store begins here; `fingerprint` is a hash of the data, as far as it is known before the first row.
  void begin(const StoreOptions& options, FeatureMap features = {}, unsigned width_set = 0, uint64_t fingerprint = 0);
  // Their indices are below `places`, their ids below the features of the rows.
  void begin_columns(unsigned width_set, uint64_t places);

  // Where files may be put until commit().
  const std::string& folder() const { return folder_; }
  const StoreInfo& info() const { return info_; }
  const RowEncoder& encoder() const { return *encoder_; }
  bool appending() const { return appending_; }

  // One row with its original feature indices; Row::id is not looked at, rows are numbered as they come.
  void add(const Row& row);
  void commit();

  // The same in pieces, for several threads. route() is called by one thread at a time, in the order of the input, and
  // puts rows into buckets; a full bucket is a chunk to be sealed (compressed, checked, written) by any thread.
  struct Pending;
  void route(const EncodedRow& row);
  // A row that has its id already; within a bucket they increase.
  void route(uint64_t id, const EncodedRow& row);
  // Full or not, it becomes pending; nothing where it is empty.
  void close_bucket(uint32_t bucket);
  // Every bucket becomes pending, full or not.
  void close_buckets();
  // Seals one pending chunk; false where none is waiting.
  bool seal_one();
  size_t pending() const;
  // Another thread has failed: nobody may wait for its chunks any more.
  void abandon();
  // How many columns there were, a column in pieces counting once, and what is known of the rows.
  void set_columns(uint64_t columns, const RowFactsInfo& facts) {
    info_.columns = columns;
    info_.row_facts = facts;
  }
  // The trees over this segment's chunks.
  void add_trees(const ForestInfo::Trees& trees) { info_.forest.files.push_back(trees); }
  uint64_t segment_number() const { return segment_.number; }
  // In the chunk of this bucket that is still open.
  size_t open_rows(uint32_t bucket) const { return buckets_[bucket] ? buckets_[bucket]->rows() : 0; }
  // Facts the rows themselves do not carry.
  void saw_indices(uint32_t smallest, uint32_t largest);
  void set_weighted() { info_.weighted = true; }
  // Of a new store; their file is in folder().
  void set_feature_names(const FeatureNamesInfo& names) { info_.feature_names = names; }
  // Of a label that is a word. Called in the order of the rows, so that codes depend on nothing else.
  int32_t label_code(std::string_view name);

 private:
  struct Sealed;
  StoreWriter() = default;

  // A folder of its own inside a store of rows, under its lock; returns what is there.
  StoreInfo enter(const StoreInfo& rows, const std::string& path, const std::string& folder, Axis axis,
                  std::string_view purpose, std::string_view command);
  static std::unique_ptr<StoreWriter> open_existing(const std::string& path, std::string_view purpose);
  void set_layout(const StoreOptions& options);
  void start_segment();
  std::unique_ptr<ChunkBuilder> take_builder();
  void discard() noexcept;
  void flush_directory(size_t at_least);
  void check_disk(uint64_t bytes);
  void commit_manifest();

  std::string path_;
  std::string folder_;
  std::optional<FileLock> lock_;
  bool appending_ = false;
  bool committed_ = false;
  bool made_folder_ = false;
  StoreInfo info_;
  std::string measured_;
  std::string source_;
  std::string tag_;
  FeatureMap features_;
  std::unique_ptr<RowEncoder> encoder_;
  EncodedRows single_;  // for add()
  int32_t last_label_ = 0;
  uint64_t* last_label_count_ = nullptr;

  std::vector<std::unique_ptr<ChunkBuilder>> buckets_;  // null: empty
  SegmentInfo segment_;
  File segment_file_;
  File directory_file_;

  mutable std::mutex mutex_;
  std::condition_variable moved_;
  bool abandoned_ = false;
  std::deque<Pending> pending_;
  std::vector<std::unique_ptr<ChunkBuilder>> idle_builders_;
  std::vector<Buffer> idle_buffers_;
  std::map<uint64_t, Sealed> sealed_;  // finished out of turn
  uint64_t next_sequence_ = 0;         // given to the next pending chunk
  uint64_t next_written_ = 0;
  uint64_t unchecked_disk_bytes_ = 0;
  std::vector<unsigned char> directory_;
  uint64_t directory_bytes_ = 0;
  Checksum directory_checksum_;
};

struct StoreWriter::Pending {
  uint64_t sequence = 0;
  uint32_t bucket = 0;
  std::unique_ptr<ChunkBuilder> builder;
};

struct StoreWriter::Sealed {
  Buffer bytes;  // whole pages
  uint32_t stored_bytes = 0;
  uint32_t raw_bytes = 0;
  uint32_t rows = 0;
  uint32_t nonzeros = 0;
  uint32_t bucket = 0;
  uint64_t first_row = 0;
  uint64_t checksum = 0;
};

}  // namespace linblock
