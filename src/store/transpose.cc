#include "store/transpose.h"

#include <algorithm>
#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "store/column_writer.h"
#include "store/entries.h"
#include "store/index_code.h"
#include "store/row_facts.h"

namespace linblock {

namespace {

constexpr uint64_t kMostRanges = 16384;  // that entries are counted in before they are parted
constexpr uint64_t kMostParts = 256;     // files at once
constexpr uint64_t kLeastPartBuffer = 16 << 10;
constexpr uint64_t kOwnBytes = uint64_t{1} << 20;  // of the sampler, the ranges, and pieces on their way

// How --memory is shared out.
struct TransposePlan {
  TransposePlan(const Store& rows, const TransposeOptions& options) {
    chunk_bytes = options.chunk_bytes > 0 ? options.chunk_bytes : rows.info().chunk_bytes;
    const uint64_t fixed = kProgramBytes + kOwnBytes + rows.features().memory_bytes() +
                           rows.chunks().size() * (sizeof(ChunkInfo) + 2 * sizeof(uint32_t)) +
                           rows.info().removed.rows * sizeof(uint64_t);
    const uint64_t window = StoreEntries::least_window(rows);
    const auto needed = [&](size_t count) {
      return fixed + window + ColumnWriter::memory_bytes(chunk_bytes, count) + (uint64_t{1} << 20);
    };
    threads = std::max<size_t>(1, options.threads);
    while (threads > 1 && needed(threads) > options.memory_bytes) --threads;
    if (needed(threads) > options.memory_bytes)
      fail(ErrorKind::memory, "to transpose this store, whose chunks take up to {} in memory, give --memory {} or more",
           human_bytes(window / 2), human_bytes(needed(threads) + (uint64_t{1} << 20)));
    const uint64_t rest = options.memory_bytes - needed(threads);
    window_bytes = window + std::min(window, rest / 4);
    sort_bytes = (uint64_t{1} << 20) + rest - (window_bytes - window);
  }

  uint64_t chunk_bytes;
  size_t threads;
  uint64_t window_bytes;  // of rows read ahead
  uint64_t sort_bytes;    // of entries in memory
};

// The gaps of some columns before any column is there: those features that come first, each in a slot of its own.
class GapSample {
 public:
  void add(std::span<const Entry> entries) {
    for (const Entry& entry : entries) {
      Slot& slot = slots_[mix64(0, entry.feature) % slots_.size()];
      if (slot.next > 0 && slot.feature != entry.feature) continue;
      gaps_.add_gap(entry.place - (slot.next > 0 ? slot.next : 0));
      slot = {entry.feature, entry.place + 1};
    }
  }
  unsigned width_set() const { return best_width_set(gaps_); }

 private:
  struct Slot {
    uint32_t feature = 0;
    uint32_t next = 0;  // the place after its last entry; 0: the slot is free
  };
  std::vector<Slot> slots_ = std::vector<Slot>(32768);
  GapHistogram gaps_;
};

// Some features, from `begin` up to `end`, and how many entries they have.
struct Span {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t entries = 0;

  uint64_t features() const { return end - begin; }
  // Sorted by counting, where there are entries enough for it; by comparing otherwise.
  bool dense() const { return 2 * features() <= entries; }
  uint64_t memory_bytes() const { return dense() ? 8 * (entries + features() + 1) : sizeof(Entry) * entries; }
};

// Entries in ranges of 2^shift features each.
struct RangeCounts {
  RangeCounts(const Span& span, unsigned range_shift)
      : begin(span.begin), shift(range_shift), counts(((span.features() - 1) >> range_shift) + 1) {}
  void add(std::span<const Entry> entries) {
    for (const Entry& entry : entries) ++counts[(entry.feature - begin) >> shift];
  }

  uint64_t begin;
  unsigned shift;
  std::vector<uint64_t> counts;
};

class Transposing {
 public:
  Transposing(const Store& rows, StoreWriter& writer, const TransposePlan& plan, const TransposeOptions& options,
              const TransposeContext& context)
      : rows_(rows),
        writer_(writer),
        plan_(plan),
        context_(context),
        columns_(writer, options.columns_per_chunk, plan.threads),
        total_(3 * rows.info().nonzeros) {}

  TransposeReport run() {
    StoreEntries source(rows_, plan_.window_bytes, plan_.threads, context_.stop);
    const StoreInfo& info = rows_.info();
    const Span all{.begin = 0, .end = std::max<uint64_t>(1, info.feature_numbers()), .entries = info.nonzeros};
    RangeCounts counts(all, shift_for(all));
    survey(source, counts);
    work(source, all, &counts);
    columns_.finish();
    writer_.set_columns(columns_.columns(), facts_);
    writer_.commit();
    return {.columns = columns_.columns(), .nonzeros = info.nonzeros, .bytes = writer_.info().bytes()};
  }

 private:
  void survey(StoreEntries& source, RangeCounts& counts) {
    const StoreInfo& info = rows_.info();
    RowFactsWriter facts(writer_.folder(), writer_.info().seal, writer_.segment_number(),
                         info.weighted || info.removed.rows > 0);
    GapSample gaps;
    source.for_each(
        [&](std::span<const Entry> entries) {
          counts.add(entries);
          gaps.add(entries);
          moved(entries.size());
        },
        [&](const Row& row) { facts.add(row); });
    facts_ = facts.finish();
    writer_.begin_columns(gaps.width_set(), StoreEntries::places(info));
  }

  bool fits(const Span& span) const { return span.memory_bytes() <= plan_.sort_bytes; }
  unsigned shift_for(const Span& span) const {
    if (fits(span) && span.dense()) return 0;
    unsigned shift = 0;
    while ((span.features() - 1) >> shift >= kMostRanges) ++shift;
    return shift;
  }

  // `counts` is of this span, or null.
  void work(EntrySource& source, const Span& span, RangeCounts* counts) {
    if (span.features() == 1)
      stream(source, span);
    else if (fits(span) && span.dense())
      sort_by_counting(source, span, *counts);
    else
      sort_by_comparing(source, span);
  }

  // A single feature's entries come in their order.
  void stream(EntrySource& source, const Span& span) {
    std::vector<uint32_t> places;
    std::vector<float> values;
    source.for_each([&](std::span<const Entry> entries) {
      places.clear();
      values.clear();
      for (const Entry& entry : entries) {
        places.push_back(entry.place);
        values.push_back(entry.value);
      }
      moved(entries.size());
      put(static_cast<uint32_t>(span.begin), places, values);
    });
  }

  void sort_by_counting(EntrySource& source, const Span& span, RangeCounts& counts) {
    std::vector<uint64_t>& next = counts.counts;
    uint64_t sum = 0;
    for (uint64_t& count : next) sum += std::exchange(count, sum);
    std::vector<uint32_t> places(span.entries);
    std::vector<float> values(span.entries);
    source.for_each([&](std::span<const Entry> entries) {
      for (const Entry& entry : entries) {
        const uint64_t at = next[entry.feature - span.begin]++;
        places[at] = entry.place;
        values[at] = entry.value;
      }
      moved(entries.size());
    });
    // By now each stands where the next feature's entries begin.
    for (uint64_t feature = 0, begin = 0; feature < span.features(); begin = next[feature++])
      put(static_cast<uint32_t>(span.begin + feature), std::span(places).subspan(begin, next[feature] - begin),
          std::span(values).subspan(begin, next[feature] - begin));
  }

  void sort_by_comparing(EntrySource& source, const Span& span) {
    std::vector<Entry> all;
    all.reserve(span.entries);
    source.for_each([&](std::span<const Entry> entries) {
      all.insert(all.end(), entries.begin(), entries.end());
      moved(entries.size());
    });
    std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) {
      return a.feature != b.feature ? a.feature < b.feature : a.place < b.place;
    });
    for (const Entry& entry : all) put(entry.feature, {&entry.place, 1}, {&entry.value, 1});
  }

  void put(uint32_t feature, std::span<const uint32_t> places, std::span<const float> values) {
    columns_.add(feature, places, values);
    moved(places.size());
  }
  void moved(uint64_t entries) {
    done_ += entries;
    context_.observer(std::min(done_, total_), total_);
  }

  const Store& rows_;
  StoreWriter& writer_;
  const TransposePlan& plan_;
  const TransposeContext& context_;
  ColumnWriter columns_;
  RowFactsInfo facts_;
  uint64_t done_ = 0;
  uint64_t total_;
};

}  // namespace

TransposeReport transpose(const Store& rows, const TransposeOptions& options, const TransposeContext& context) {
  const Stopwatch watch;
  const StoreInfo& info = rows.info();
  if (StoreEntries::places(info) > format::kLargestIndex)
    fail(ErrorKind::input, "'{}' has {} rows, and columns can speak of {} at most", rows.path(), info.physical_rows(),
         format::kLargestIndex);
  const TransposePlan plan(rows, options);
  const std::unique_ptr<StoreWriter> writer = StoreWriter::columns_of(
      info, rows.path(),
      {.shuffle = false,
       .chunk_bytes = plan.chunk_bytes,
       .codec = options.codec.value_or(info.codec),
       .codec_reason = options.codec ? "chosen by the user" : "as the rows: " + info.codec_reason});
  TransposeReport report = Transposing(rows, *writer, plan, options, context).run();
  // It is done; what cannot be deleted now is deleted by the next writer.
  try {
    remove_leftovers(writer->folder(), writer->info());
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
  }
  report.seconds = watch.seconds();
  return report;
}

}  // namespace linblock
