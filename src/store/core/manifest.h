// MANIFEST: what a store is and which files belong to it. Replacing it is what commits a change.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/own_files.h"
#include "store/chunk/chunk.h"
#include "store/chunk/codec.h"
#include "store/text/label_names.h"

namespace linblock {

struct SegmentInfo {
  uint64_t number = 0;
  uint64_t bytes = 0;  // of the segment file
  uint64_t chunks = 0;
  uint64_t rows = 0;
  uint64_t nonzeros = 0;
  uint64_t first_row = 0;
  uint64_t directory_checksum = 0;
};

// Rows that lie in a segment and are no longer in the store.
struct RemovedInfo {
  uint64_t number = 0;  // of the newest file of them, never used twice; 0: there has been none
  uint64_t rows = 0;    // 0: there is no file
  uint64_t nonzeros = 0;
  uint64_t checksum = 0;
};

// The names of features (docs/format.md, "NAMES").
struct FeatureNamesInfo {
  uint64_t count = 0;  // of features up to the last one with a name; 0: there is no file
  uint64_t named = 0;  // of those that have one
  uint64_t bytes = 0;  // of the file
  uint64_t checksum = 0;
};

// Rows that came under one tag: their ids are `first_row` and up, `ids` of them.
struct TaggedRows {
  std::string tag = {};
  uint64_t first_row = 0;
  uint64_t ids = 0;
  uint64_t rows = 0;  // that are still in the store

  uint64_t end() const { return first_row + ids; }
};

// What the values of the rows add up to: who trains can foresee from it how hard that will be.
struct ValueSums {
  double squares = 0;     // of the rows that are there
  bool negative = false;  // there is a value below 0, or was before it was removed
  uint64_t content = 0;   // the sum of the rows' hashes: what the rows are, in whatever order, chunks and codec

  void add(const EncodedRow& row);
  // Takes rows out. False: what is left is too small a part to be known, since sums are rounded.
  bool subtract(const ValueSums& gone);
};

// What one "row" of the store is: an example, or one feature's column (docs/format.md, "Columns"); or an example again,
// but in the order of an index (docs/format.md, "Index").
enum class Axis { rows, features, forest };

// A column store's own: ids, labels and weights of the rows that its columns speak of.
struct RowFactsInfo {
  uint64_t number = 0;
  uint64_t rows = 0;
  bool weighted = false;  // false: all weights are 1, and none is stored
  uint64_t checksum = 0;

  uint64_t bytes() const;
};

// An index's own: from what, and how, it was made, and the file of trees beside each of its segments.
struct ForestInfo {
  // A segment of the row store whose rows are in the index.
  struct Covered {
    uint64_t number = 0;
    uint64_t directory_checksum = 0;  // and so of every chunk

    bool operator==(const Covered&) const = default;
  };
  // Trees of one segment of the index.
  struct Trees {
    uint64_t number = 0;  // of the segment, and in the file's name
    uint64_t bytes = 0;
    uint64_t trees = 0;
    uint64_t nodes = 0;
    uint64_t checksum = 0;     // of the header and the tables
    double nearest_angle = 0;  // sums over a sample of rows: to the nearest root pivot,
    double mean_angle = 0;     // and the mean of those to all of them
  };

  uint64_t rows_seal = 0;
  uint64_t removed_number = 0;  // the row store's list of removed rows then
  uint64_t removed_checksum = 0;
  std::vector<Covered> covered = {};
  uint64_t tree_rows = 0;
  uint32_t branch = 0;
  double bias = -1;         // below 0: none
  uint64_t page_bytes = 0;  // as asked for; 0: chosen
  std::vector<Trees> files = {};

  uint64_t trees() const;
  uint64_t nodes() const;
  // How much nearer a row is to its own root pivot than to any: 0 is no structure, 1 all rows in one place.
  double contrast() const;
};

struct StoreInfo {
  Axis axis = Axis::rows;
  uint64_t id = 0;    // a hash of all the rest: equal ids, equal contents
  uint64_t seal = 0;  // fixed when the store is first packed; seeds the checksums of its chunks
  uint64_t seed = 0;
  uint32_t buckets = 1;  // 1: the input order was kept
  uint64_t chunk_bytes = 0;
  unsigned width_set = 0;
  Codec codec = Codec::none;
  std::string codec_reason;
  int index_base = 1;
  bool index_base_given = false;
  bool normalized = false;
  bool weighted = false;
  bool has_features = false;   // there is at least one nonzero
  uint32_t largest_index = 0;  // as written in the text
  uint64_t rows = 0;           // without the removed ones, as nonzeros and labels
  uint64_t nonzeros = 0;
  uint64_t next_row_id = 0;
  uint64_t frequent_features = 0;
  uint64_t features_checksum = 0;
  std::map<int32_t, uint64_t> labels;
  LabelNames label_names;           // where labels are words; empty: they are numbers
  FeatureNamesInfo feature_names;   // rows only
  std::optional<ValueSums> values;  // rows only; nothing where the store is of an earlier version, and not compacted
  std::vector<SegmentInfo> segments;
  uint64_t next_segment = 0;  // where newer segments than the last one have been; else 0
  RemovedInfo removed;
  std::vector<TaggedRows> tags;  // by first_row
  // Columns only: the id of the row store they were made from, how many there are (a column in pieces counts once),
  // and the facts of the rows.
  uint64_t rows_id = 0;
  uint64_t columns = 0;
  RowFactsInfo row_facts;
  ForestInfo forest;  // an index only; it has rows_id too

  // Of all files but MANIFEST.
  uint64_t bytes() const;
  // Rows on disk: what whoever has something beside each row of each chunk must count.
  uint64_t physical_rows() const { return rows + removed.rows; }
  // Never used twice: a reader of an older state may have that file open.
  uint64_t new_segment_number() const {
    return std::max(next_segment, segments.empty() ? uint64_t{1} : segments.back().number + 1);
  }
  // Feature numbers are below this; so many weights a model needs.
  uint64_t feature_numbers() const { return has_features ? uint64_t{largest_index} + 1 : 0; }
  // Features as a user counts them.
  uint64_t features() const { return feature_numbers() - (has_features ? static_cast<uint64_t>(index_base) : 0); }
};

std::string segment_path(const std::string& store, uint64_t number);
std::string directory_path(const std::string& store, uint64_t number);
std::string removed_path(const std::string& store, uint64_t number);
std::string row_facts_path(const std::string& columns, uint64_t number);
std::string spill_path(const std::string& columns, uint64_t number);
std::string forest_path(const std::string& index, uint64_t number);
// Where a row store keeps its columns, and its index.
std::string columns_path(const std::string& store);
std::string index_path(const std::string& store);
std::string manifest_path(const std::string& store);
std::string features_path(const std::string& store);
std::string feature_names_path(const std::string& store);

// The oldest version of the format that can say this. A store without anything new keeps its bytes, and older programs
// read it.
uint32_t manifest_version(const StoreInfo& info);
// Fills in `id` and replaces STORE/MANIFEST.
void write_manifest(const std::string& store, StoreInfo& info);
StoreInfo read_manifest(const std::string& store);
// After write_manifest has failed: the new manifest may be in place already, and then its files must stay.
bool may_be_committed(const std::string& store, const StoreInfo& info);
// Deletes the numbered files (segments, lists of removed rows, a column store's row facts and spills, an index's trees)
// that `info`, the store's manifest, does not name, and temporary ones. For a writer that holds the lock.
void remove_leftovers(const std::string& store, const StoreInfo& info);
bool has_leftovers(const std::string& store, const StoreInfo& info);
// The files of a store, of its columns and of its index.
const OwnDirectory& store_directory();

// What was measured when a codec was chosen for the store: words for people, empty if nothing was. They are beside the
// manifest, in BUILT, so that equal contents have equal ids.
std::string codec_measured(const std::string& store);

// Throws ErrorKind::input where a store holds columns or an index: for whoever needs rows.
void expect_rows(const StoreInfo& info, const std::string& store);

// Throws ErrorKind::damaged where a file that the manifest names is not there.
void expect_present(const std::string& path);

// Bytes of FEATURES, and back; throws ErrorKind::damaged.
std::vector<unsigned char> encode_frequent(const std::vector<uint32_t>& frequent);

// The header page of a segment file.
std::vector<unsigned char> segment_header(uint64_t seal, uint64_t number);
// The bucket of a row: Algorithm 4's random choice, but one that can be made again.
uint32_t bucket_of(uint64_t seed, uint64_t row_id, uint32_t buckets);
// Ties a chunk's checksum to its place, so that a chunk in another's place is refused.
uint64_t chunk_seed(uint64_t seal, uint64_t segment, uint64_t chunk);

}  // namespace linblock
