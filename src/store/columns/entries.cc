#include "store/columns/entries.h"

#include <algorithm>

#include "base/error.h"
#include "store/blocks/block_stream.h"

namespace linblock {

namespace {

constexpr size_t kPieceEntries = 8192;

std::span<const unsigned char> bytes_of(std::span<const ColumnEntry> entries) {
  return {reinterpret_cast<const unsigned char*>(entries.data()), entries.size_bytes()};
}

}  // namespace

void check_stop(const std::atomic<bool>* stop) {
  if (stop != nullptr && *stop) fail(ErrorKind::interrupted, "interrupted: the store and its columns are as they were");
}

uint64_t StoreEntries::least_window(const Store& store) {
  uint64_t largest = 0;
  for (const ChunkInfo& chunk : store.chunks()) largest = std::max(largest, chunk.memory_bytes(true));
  return 2 * largest;
}

void StoreEntries::for_each(const std::function<void(std::span<const ColumnEntry>)>& take,
                            const std::function<void(const Row&)>& visit) {
  const bool rows = store_.info().axis == Axis::rows;
  const FeatureMap& features = store_.features();
  BlockStream stream(store_, BlockOrder::all(store_), {.memory_bytes = window_bytes_, .team = team_, .decode = true});
  std::vector<ColumnEntry> entries;
  entries.reserve(kPieceEntries);
  std::vector<uint32_t> index;
  RowBuffer buffer;
  uint64_t rank = 0;
  while (const RowBlock* block = stream.next()) {
    check_stop(stop_);
    for (const Chunk& chunk : block->chunks())
      for (size_t number = 0; number < chunk.rows(); ++number, ++rank) {
        const Row row = chunk.row(number, buffer);
        visit(row);
        if (chunk.removed(number)) continue;
        const auto place = static_cast<uint32_t>(rows ? rank : row.id);
        index.resize(row.index.size());
        features.indices(row.index, index.data());
        for (size_t i = 0; i < index.size(); ++i) {
          entries.push_back({index[i], place, row.value[i]});
          if (entries.size() < kPieceEntries) continue;
          take(entries);
          entries.clear();
        }
      }
  }
  take(entries);
}

SpilledEntries::SpilledEntries(std::string path, const std::atomic<bool>* stop)
    : path_(std::move(path)), stop_(stop), file_(File::create(path_, "")) {}

SpilledEntries::~SpilledEntries() {
  try {
    file_ = File();
    remove_file(path_);
  } catch (...) {  // NOLINT(bugprone-empty-catch): the next writer removes it
  }
}

void SpilledEntries::write(std::span<const ColumnEntry> entries) {
  file_.write_next(bytes_of(entries));
  checksum_.add(bytes_of(entries));
  entries_ += entries.size();
}

void SpilledEntries::end_writing() { file_.close(); }

void SpilledEntries::for_each(const std::function<void(std::span<const ColumnEntry>)>& take) {
  const File file = File::open_read(path_);
  std::vector<ColumnEntry> entries(kPieceEntries);
  Checksum sum;
  for (uint64_t done = 0; done < entries_; done += entries.size()) {
    check_stop(stop_);
    entries.resize(std::min<uint64_t>(kPieceEntries, entries_ - done));
    file.read_exactly_at({reinterpret_cast<unsigned char*>(entries.data()), entries.size() * sizeof(ColumnEntry)},
                         done * sizeof(ColumnEntry));
    sum.add(bytes_of(entries));
    take(entries);
  }
  if (sum.value() != checksum_.value())
    fail(ErrorKind::damaged, "'{}' was not read back as it was written: is the disk sound?", path_);
}

}  // namespace linblock
