// Any bytes as a raw chunk: refused as damaged, or rows that read the same encoded, decoded and in another chunk.
#include <algorithm>
#include <bit>
#include <cstdlib>

#include "base/error.h"
#include "store/chunk/chunk.h"

#if defined(__has_feature) && __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace {

using namespace linblock;

constexpr uint64_t kFeatures = 1 << 16;

void require(bool promise) {
  if (!promise) std::abort();
}

void require_same(const Row& a, const Row& b) {
  const auto same_bits = [](float x, float y) { return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y); };
  require(a.id == b.id && a.label == b.label && same_bits(a.weight, b.weight));
  require(std::ranges::equal(a.index, b.index) && std::ranges::equal(a.value, b.value, same_bits));
  require(a.index.size() == a.value.size());
  for (const uint32_t number : a.index) require(number < kFeatures);
}

void read_everything(Chunk& chunk) {
  chunk.parse(kFeatures, "chunk");
  Chunk decoded;
  decoded.raw().resize(chunk.raw().size());
  std::ranges::copy(chunk.raw().span(), decoded.raw().data());
  decoded.parse(kFeatures, "chunk");
  RowBuffer first;
  RowBuffer second;
  ChunkBuilder builder;
  for (size_t row = 0; row < chunk.rows(); ++row) {
    chunk.row(row, first);
    const EncodedRow encoded = chunk.encoded(row, second);
    // Ids of a damaged chunk may wrap around; a builder is never given such.
    builder.add(row, encoded);
  }
  decoded.decode();
  for (size_t row = 0; row < chunk.rows(); ++row) require_same(chunk.row(row, first), decoded.row(row, second));
  if (chunk.nonzeros() == 0) return;
  Chunk moved;
  builder.finish(chunk.width_set(), moved.raw());
  try {
    moved.parse(kFeatures, "chunk");
  } catch (const Error&) {
    require(false);
  }
  for (size_t row = 0; row < chunk.rows(); ++row) {
    Row expected = chunk.row(row, first);
    expected.id = row;
    require_same(moved.row(row, second), expected);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A few bytes may stand for a million empty rows: allowed, but slow to look at each time.
  if (size >= 4 && load_le<uint32_t>(data) > 4096) return 0;
  static Chunk chunk;
  Buffer& raw = chunk.raw();
  ASAN_UNPOISON_MEMORY_REGION(raw.data(), raw.capacity());
  raw.resize(size);
  std::copy(data, data + size, raw.data());
  const size_t used = size + Buffer::kSlack;
  ASAN_POISON_MEMORY_REGION(raw.data() + used, raw.capacity() - used);
  try {
    read_everything(chunk);
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::damaged);
  }
  return 0;
}
