// A writer that takes rows out of a store: what the rows add up to, and the commit.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/team.h"
#include "store/core/store.h"
#include "store/core/tags.h"

namespace linblock {

// How the caller follows the work and ends it early.
struct RemoveContext {
  Team team = 1;
  // Bytes read so far, of how many; from one thread at a time.
  std::function<void(uint64_t, uint64_t)> observer = [](uint64_t, uint64_t) {};
  const std::atomic<bool>* stop = nullptr;
};

struct RemoveReport {
  uint64_t rows = 0;  // that were there and are no longer
  uint64_t nonzeros = 0;
  std::vector<uint64_t> segments = {};  // that left: all their rows are gone
  std::vector<std::string> tags = {};   // likewise
};

class Removal {
 public:
  // Under the store's lock, until this is destroyed.
  explicit Removal(const std::string& path);

  const std::string& path() const { return path_; }
  const Store& store() const { return store_; }

  // All rows of this segment (its position) are going to be taken: their ids need not be remembered.
  void leave(size_t segment) { segments_[segment].leaves = true; }
  // Reads these chunks on all threads. `choose` names the rows to be taken, each once and none that was removed before;
  // several threads call it, with a chunk's place in the list.
  using Choose = std::function<void(const Chunk& chunk, size_t place, std::vector<size_t>& rows)>;
  void take(const std::vector<size_t>& chunks, const RemoveContext& context, const Choose& choose);
  // Throws ErrorKind::damaged if other rows were taken than those that the manifest counts for this tag of the store.
  void expect_all_of(const TaggedRows& tagged) const;
  RemoveReport commit();

 private:
  // What rows add up to.
  struct Sums {
    uint64_t rows = 0;
    uint64_t nonzeros = 0;
    std::map<int32_t, uint64_t> labels;
    ValueSums values;

    void add(const Chunk& chunk, size_t row, RowBuffer& buffer);
  };
  struct Loss {
    uint64_t rows = 0;
    uint64_t nonzeros = 0;
    bool leaves = false;
  };

  static const std::string& checked(const std::string& path);
  void add(const Sums& sums, uint32_t segment, const TagCounts& tagged, const std::vector<uint64_t>& ids);
  void find_segments_that_leave();
  std::vector<uint64_t> removed_ids();
  void drop_segments(RemoveReport& report);
  void drop_tags(RemoveReport& report);
  void write_list();
  void discard(uint64_t number) noexcept;

  std::string path_;
  FileLock lock_;
  Store store_;
  StoreInfo info_;
  std::mutex mutex_;
  Sums gone_;
  std::vector<Loss> segments_;
  TagCounts tagged_;
  std::vector<uint64_t> ids_;  // of the rows taken, but for those of segments that leave
};

}  // namespace linblock
