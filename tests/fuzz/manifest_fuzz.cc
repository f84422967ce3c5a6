// Any bytes as a MANIFEST: refused as damaged, or a store that is written and read again as the same. After a first
// byte of 'j' (version 1) or 'k' (version 2) the rest is the JSON, and the line with its checksum is made here: else no
// change would get past it.
#include <fmt/format.h>

#include "base/checksum.h"
#include "base/error.h"
#include "files.h"
#include "store/core/manifest.h"
#include "store/core/tags.h"

namespace {

using namespace linblock;
using namespace linblock::fuzz;

std::string with_first_line(std::string_view json, uint32_t version) {
  const uint64_t sum = checksum({reinterpret_cast<const unsigned char*>(json.data()), json.size()});
  return fmt::format("{} {} {:016x} {}\n", format::kManifestMagic, version, sum, json.size()).append(json);
}

std::string file_of(std::string_view bytes) {
  switch (bytes[0]) {
    case 'j': return with_first_line(bytes.substr(1), format::kVersion);
    case 'k': return with_first_line(bytes.substr(1), format::kManifestVersion);
    default: return std::string(bytes);
  }
}

// What a reader computes from numbers that anybody may have written.
void use(const StoreInfo& info, const std::string& store) {
  require(info.buckets > 0 && info.chunk_bytes >= format::kSmallestChunkBytes);
  require(info.feature_numbers() <= uint64_t{format::kLargestIndex} + 1 && info.features() <= info.feature_numbers());
  require(info.forest.contrast() >= 0 && info.forest.contrast() <= 1);
  require(info.physical_rows() >= info.rows && info.new_segment_number() > 0);
  info.bytes();
  const bool is_first = info.tags.empty() && info.label_names.empty() && info.feature_names.count == 0;
  require(is_first == (manifest_version(info) == format::kVersion));
  if (wrong_tags(info) == nullptr)
    for (const TaggedRows& tagged : info.tags) {
      require(tagged.rows > 0 && tagged.end() <= info.next_row_id && find_tag(info, tagged.tag) == &tagged);
      TagCounts counts(info.tags);
      counts.add(tagged.end() - 1);
      require(counts.rows()[static_cast<size_t>(&tagged - info.tags.data())] == 1);
    }
  for (const auto& [label, rows] : info.labels)
    require(info.label_names.empty() || info.label_names.find(info.label_names.show(label)) == label);
  require(!has_leftovers(store, info));
}

std::string written_again(const MemoryDirectory& store, StoreInfo info) {
  write_manifest(store.path(), info);
  return read_file(manifest_path(store.path()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const MemoryDirectory store;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  write_file(manifest_path(store.path()), file_of(bytes));
  try {
    const StoreInfo info = read_manifest(store.path());
    use(info, store.path());
    const std::string once = written_again(store, info);
    require(written_again(store, read_manifest(store.path())) == once);
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::damaged);
  }
  return 0;
}
