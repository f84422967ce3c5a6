// MANIFEST: what a store is and which files belong to it. Replacing it is what commits a change.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "store/codec.h"

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

struct StoreInfo {
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
  uint64_t rows = 0;
  uint64_t nonzeros = 0;
  uint64_t next_row_id = 0;
  uint64_t frequent_features = 0;
  uint64_t features_checksum = 0;
  std::map<int32_t, uint64_t> labels;
  std::vector<SegmentInfo> segments;

  // Feature numbers are below this; so many weights a model needs.
  uint64_t feature_numbers() const { return has_features ? uint64_t{largest_index} + 1 : 0; }
  // Features as a user counts them.
  uint64_t features() const { return feature_numbers() - (has_features ? static_cast<uint64_t>(index_base) : 0); }
};

std::string segment_path(const std::string& store, uint64_t number);
std::string directory_path(const std::string& store, uint64_t number);
std::string manifest_path(const std::string& store);
std::string features_path(const std::string& store);

// Fills in `id` and replaces STORE/MANIFEST.
void write_manifest(const std::string& store, StoreInfo& info);
StoreInfo read_manifest(const std::string& store);

// Bytes of FEATURES, and back; throws ErrorKind::damaged.
std::vector<unsigned char> encode_frequent(const std::vector<uint32_t>& frequent);

// The header page of a segment file.
std::vector<unsigned char> segment_header(uint64_t seal, uint64_t number);
// The bucket of a row: Algorithm 4's random choice, but one that can be made again.
uint32_t bucket_of(uint64_t seed, uint64_t row_id, uint32_t buckets);
// Ties a chunk's checksum to its place, so that a chunk in another's place is refused.
uint64_t chunk_seed(uint64_t seal, uint64_t segment, uint64_t chunk);

}  // namespace linblock
