#include "store/core/compact.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "base/error.h"
#include "store/core/store.h"
#include "store/core/store_writer.h"

namespace linblock {

namespace {

constexpr uint64_t kProgramBytes = uint64_t{9} << 20;  // code, libraries, stacks, and what malloc cannot give back
constexpr uint64_t kChunksShared = 4;     // held whatever the number of threads: filling, or on the way out
constexpr uint64_t kChunksPerThread = 6;  // as read, as built, as written, before and after the codec

// How many threads the memory allows.
size_t threads_for(const Store& store, const CompactOptions& options) {
  uint64_t largest = store.info().chunk_bytes;
  for (const ChunkInfo& chunk : store.chunks())
    largest = std::max(largest, Chunk::memory_limit(std::max<uint64_t>(chunk.raw_bytes, chunk.extent()), chunk.rows,
                                                    chunk.nonzeros, false));
  const uint64_t fixed = kProgramBytes + store.chunks().size() * (sizeof(ChunkInfo) + sizeof(uint64_t)) +
                         store.info().removed.rows * sizeof(uint64_t) + kChunksShared * largest;
  const uint64_t thread_bytes = kChunksPerThread * largest;
  if (fixed + thread_bytes > options.memory_bytes)
    fail(ErrorKind::memory, {give_at_least("memory", size_of_at_least(fixed + thread_bytes))},
         "to compact this store, whose chunks take up to {} in memory, `memory` {} is too little", human_bytes(largest),
         human_bytes(options.memory_bytes));
  return std::clamp<size_t>((options.memory_bytes - fixed) / thread_bytes, 1, options.team.size());
}

// Chunks lie by bucket, and in a bucket rows come by increasing id: so one bucket after another is written, in the
// memory of a few chunks. Threads read ahead, put rows into the bucket in turn, and seal what is full.
class Rewriting {
 public:
  Rewriting(const Store& store, StoreWriter& writer, const CompactContext& context)
      : store_(store), writer_(writer), context_(context) {
    for (const ChunkInfo& chunk : store.chunks()) total_ += chunk.extent();
  }

  void run(const Team& team, size_t threads) {
    const auto give_up = [this] {
      const std::lock_guard lock(mutex_);
      failed_ = true;
      moved_.notify_all();
      writer_.abandon();
    };
    team.run_loops(
        threads, [this] { work(); }, give_up);
    // The writer has counted again what it was given.
    if (writer_.info().labels != store_.info().labels)
      fail(ErrorKind::damaged, "'{}' is damaged: the rows have other labels than it says",
           manifest_path(store_.path()));
  }

 private:
  void work() {
    Chunk chunk;
    while (true) {
      size_t number = 0;
      {
        const std::lock_guard lock(mutex_);
        if (failed_ || next_ == store_.chunks().size()) return;
        number = next_++;
      }
      if (context_.stop != nullptr && *context_.stop)
        fail(ErrorKind::interrupted, "interrupted: the store is as it was");
      store_.read(number, chunk);
      {
        std::unique_lock lock(mutex_);
        moved_.wait(lock, [&] { return failed_ || turn_ == number; });
        if (failed_) return;
        route(chunk, number);
        ++turn_;
        moved_.notify_all();
      }
      while (writer_.seal_one()) continue;
    }
  }

  void route(const Chunk& chunk, size_t number) {
    const ChunkInfo& place = store_.chunks()[number];
    for (size_t row = 0; row < chunk.rows(); ++row)
      if (!chunk.removed(row)) writer_.route(chunk.id(row), chunk.encoded(row, buffer_));
    if (number + 1 == store_.chunks().size() || store_.chunks()[number + 1].bucket != place.bucket)
      writer_.close_bucket(place.bucket);
    done_ += place.extent();
    context_.observer(done_, total_);
  }

  const Store& store_;
  StoreWriter& writer_;
  const CompactContext& context_;
  uint64_t total_ = 0;
  std::mutex mutex_;
  std::condition_variable moved_;
  bool failed_ = false;
  size_t next_ = 0;  // chunk to be read
  size_t turn_ = 0;  // chunk whose rows come next
  uint64_t done_ = 0;
  RowBuffer buffer_;
};

}  // namespace

CompactReport compact(const std::string& path, const CompactOptions& options, const CompactContext& context) {
  const StoreInfo info = read_manifest(path);
  if (info.segments.size() == 1 && info.removed.rows == 0 && info.values) {
    // A compact that was killed after its commit left the files of the old state.
    StoreWriter::clean(path, path);
    return {.segments_before = 1, .bytes_before = info.bytes(), .bytes = info.bytes()};
  }
  const std::unique_ptr<StoreWriter> writer = StoreWriter::rewrite(path);
  CompactReport report{.changed = true};
  {
    const Store store = Store::open(path);  // as the writer found it: the lock is held
    report.segments_before = store.info().segments.size();
    report.removed_rows = store.info().removed.rows;
    report.bytes_before = store.bytes();
    Rewriting(store, *writer, context).run(options.team, threads_for(store, options));
  }
  writer->commit();
  // It is done; what cannot be deleted now is deleted by the next writer.
  try {
    remove_leftovers(path, writer->info());
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
  }
  report.bytes = writer->info().bytes();
  return report;
}

}  // namespace linblock
