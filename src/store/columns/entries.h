// The entries of a store one after another, from its rows or from a file that some of them were spilled to.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/file.h"
#include "base/team.h"
#include "store/core/store.h"

namespace linblock {

struct ColumnEntry {
  uint32_t feature = 0;  // original index
  uint32_t place = 0;    // of the row
  float value = 0;
};
static_assert(sizeof(ColumnEntry) == 12);

// Throws ErrorKind::interrupted where the flag is there and set.
void check_stop(const std::atomic<bool>* stop);

class EntrySource {
 public:
  virtual ~EntrySource() = default;
  // All entries, by increasing place, some at a time; the same each time it is called.
  virtual void for_each(const std::function<void(std::span<const ColumnEntry>)>& take) = 0;
};

// Rows are read and decoded ahead by the team. In a column store, whose rows are columns, an entry's place is the
// column's feature and its feature the row's place: so transposing twice gives the rows.
class StoreEntries : public EntrySource {
 public:
  // `stop` may be null.
  StoreEntries(const Store& store, uint64_t window_bytes, Team team, const std::atomic<bool>* stop)
      : store_(store), window_bytes_(window_bytes), team_(std::move(team)), stop_(stop) {}

  void for_each(const std::function<void(std::span<const ColumnEntry>)>& take) override {
    for_each(take, [](const Row&) {});
  }
  // Every row too, before its entries; removed ones, which have none.
  void for_each(const std::function<void(std::span<const ColumnEntry>)>& take,
                const std::function<void(const Row&)>& visit);

  // Places are below this.
  static uint64_t places(const StoreInfo& info) {
    return info.axis == Axis::rows ? info.physical_rows() : info.next_row_id;
  }
  // What a window must have at least.
  static uint64_t least_window(const Store& store);

 private:
  const Store& store_;
  uint64_t window_bytes_;
  Team team_;
  const std::atomic<bool>* stop_;
};

// Written once, then read; the file is gone when this is.
class SpilledEntries : public EntrySource {
 public:
  SpilledEntries(std::string path, const std::atomic<bool>* stop);
  ~SpilledEntries() override;
  SpilledEntries(const SpilledEntries&) = delete;
  SpilledEntries& operator=(const SpilledEntries&) = delete;

  void write(std::span<const ColumnEntry> entries);
  void end_writing();
  // What is read back is checked: ErrorKind::damaged where it is not what was written.
  void for_each(const std::function<void(std::span<const ColumnEntry>)>& take) override;

 private:
  std::string path_;
  const std::atomic<bool>* stop_;
  File file_;
  uint64_t entries_ = 0;
  Checksum checksum_;
};

}  // namespace linblock
