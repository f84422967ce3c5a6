#include "store/core/removed_rows.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/checksum.h"
#include "base/file.h"
#include "store/chunk/format.h"

namespace linblock {

namespace {

std::vector<unsigned char> header(uint64_t seal, uint64_t number) {
  std::vector<unsigned char> bytes(format::kRemovedHeaderBytes, 0);
  std::copy(format::kRemovedMagic.begin(), format::kRemovedMagic.end(), bytes.begin());
  store_le(bytes.data() + 8, format::kVersion);
  store_le(bytes.data() + 16, seal);
  store_le(bytes.data() + 24, number);
  return bytes;
}

}  // namespace

void write_removed(const std::string& store, StoreInfo& info, std::span<const uint64_t> ids) {
  const uint64_t number = info.removed.number + 1;
  std::vector<unsigned char> bytes = header(info.seal, number);
  bytes.resize(bytes.size() + ids.size_bytes());
  if (!ids.empty()) std::memcpy(bytes.data() + format::kRemovedHeaderBytes, ids.data(), ids.size_bytes());
  File file = File::create(removed_path(store, number), format::kRemovedMagic);
  file.write_at(bytes, 0);
  file.sync();
  file.close();
  sync_directory(store);
  info.removed.number = number;
  info.removed.rows = ids.size();
  info.removed.checksum = checksum(bytes);
}

std::vector<uint64_t> read_removed(const std::string& store, const StoreInfo& info) {
  const std::string path = removed_path(store, info.removed.number);
  const auto refuse = [&](const char* why) { fail(ErrorKind::damaged, "'{}' is damaged: {}", path, why); };
  expect_present(path);
  const uint64_t size = format::kRemovedHeaderBytes + sizeof(uint64_t) * info.removed.rows;
  const File file = File::open_read(path);
  if (file.size() != size) refuse("it has another size than the manifest says");
  std::vector<unsigned char> bytes(size);
  file.read_exactly_at(bytes, 0);
  if (checksum(bytes) != info.removed.checksum) refuse("its checksum does not match");
  const std::vector<unsigned char> expected = header(info.seal, info.removed.number);
  if (!std::equal(expected.begin(), expected.end(), bytes.begin())) refuse("its header is not this store's");
  std::vector<uint64_t> ids(info.removed.rows);
  std::memcpy(ids.data(), bytes.data() + format::kRemovedHeaderBytes, ids.size() * sizeof(uint64_t));
  if (std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) != ids.end())
    refuse("its row ids do not increase");
  return ids;
}

}  // namespace linblock
