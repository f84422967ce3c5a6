#include "store/columns/transpose.h"

#include <algorithm>
#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "store/chunk/index_code.h"
#include "store/columns/column_writer.h"
#include "store/columns/entries.h"
#include "store/columns/row_facts.h"

namespace linblock {

namespace {

constexpr uint64_t kMostRanges = 16384;  // that entries are counted in before they are parted
constexpr uint64_t kMostParts = 256;     // files at once
constexpr uint64_t kLeastPartBuffer = 16 << 10;
constexpr size_t kMostPartBuffer = 32768;  // entries
constexpr uint64_t kTellEntries = 32768;
constexpr uint64_t kLeastSortBytes = uint64_t{1} << 20;
constexpr uint64_t kOwnBytes = uint64_t{1} << 20;  // of the sampler, the ranges, and pieces on their way

// How --memory is shared out.
struct TransposePlan {
  TransposePlan(const Store& rows, const TransposeOptions& options) : team(options.team) {
    chunk_bytes = options.chunk_bytes > 0 ? options.chunk_bytes : rows.info().chunk_bytes;
    const uint64_t fixed = kProgramBytes + kOwnBytes + rows.features().memory_bytes() +
                           rows.chunks().size() * (sizeof(ChunkInfo) + 2 * sizeof(uint32_t)) +
                           rows.info().removed.rows * sizeof(uint64_t);
    const uint64_t window = StoreEntries::least_window(rows);
    const auto needed = [&](size_t count) {
      return fixed + window + ColumnWriter::memory_bytes(chunk_bytes, count) + kLeastSortBytes;
    };
    least_bytes = needed(1);
    size_t threads = options.team.size();
    while (threads > 1 && needed(threads) > options.memory_bytes) --threads;
    if (least_bytes > options.memory_bytes)
      fail(ErrorKind::memory, {give_at_least("memory", size_of_at_least(least_bytes))},
           "to transpose this store, whose chunks take up to {} in memory, `memory` {} is too little",
           human_bytes(window / 2), human_bytes(options.memory_bytes));
    const uint64_t rest = options.memory_bytes - needed(threads);
    window_bytes = window + std::min(window, rest / 4);
    if (threads < team.size()) team = Team(threads);
    sort_bytes = kLeastSortBytes + rest - (window_bytes - window);
  }

  uint64_t chunk_bytes;
  Team team;              // of fewer threads than asked for, where the memory is little
  uint64_t window_bytes;  // of rows read ahead
  uint64_t sort_bytes;    // of entries in memory
  uint64_t least_bytes;   // what it takes in all, at least
};

// The gaps of some columns before any column is there: those features that come first, each in a slot of its own.
class GapSample {
 public:
  void add(std::span<const ColumnEntry> entries) {
    for (const ColumnEntry& entry : entries) {
      FeatureSlot& slot = slots_[mix64(0, entry.feature) % slots_.size()];
      if (slot.next > 0 && slot.feature != entry.feature) continue;
      gaps_.add_gap(entry.place - (slot.next > 0 ? slot.next : 0));
      slot = {entry.feature, entry.place + 1};
    }
  }
  unsigned width_set() const { return best_width_set(gaps_); }

 private:
  struct FeatureSlot {
    uint32_t feature = 0;
    uint32_t next = 0;  // the place after its last entry; 0: the slot is free
  };
  std::vector<FeatureSlot> slots_ = std::vector<FeatureSlot>(32768);
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
  uint64_t memory_bytes() const { return dense() ? 8 * (entries + features() + 1) : sizeof(ColumnEntry) * entries; }
};

// Entries in ranges of 2^shift features each.
struct RangeCounts {
  RangeCounts(const Span& span, unsigned range_shift)
      : begin(span.begin), shift(range_shift), counts(((span.features() - 1) >> range_shift) + 1) {}
  void add(std::span<const ColumnEntry> entries) {
    for (const ColumnEntry& entry : entries) ++counts[(entry.feature - begin) >> shift];
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
        columns_(writer, options.columns_per_chunk, plan.team),
        total_(3 * rows.info().nonzeros) {}

  TransposeReport run() {
    StoreEntries source(rows_, plan_.window_bytes, plan_.team, context_.stop);
    const StoreInfo& info = rows_.info();
    const Span all{.begin = 0, .end = std::max<uint64_t>(1, info.feature_numbers()), .entries = info.nonzeros};
    RangeCounts counts(all, shift_for(all));
    survey(source, counts);
    work(source, all, &counts);
    columns_.finish();
    writer_.set_columns(columns_.columns(), facts_);
    writer_.commit();
    return {.columns = columns_.columns(),
            .nonzeros = info.nonzeros,
            .bytes = writer_.info().bytes(),
            .spilled_bytes = spilled_};
  }

 private:
  void survey(StoreEntries& source, RangeCounts& counts) {
    const StoreInfo& info = rows_.info();
    RowFactsWriter facts(writer_.folder(), writer_.info().seal, writer_.segment_number(),
                         info.weighted || info.removed.rows > 0);
    GapSample gaps;
    source.for_each(
        [&](std::span<const ColumnEntry> entries) {
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
    else if (fits(span) && !span.dense())
      sort_by_comparing(source, span);
    else if (counts == nullptr)
      count_and_work(source, span);
    else if (fits(span))
      sort_by_counting(source, span, *counts);
    else
      part(source, span, std::move(*counts));
  }
  void count_and_work(EntrySource& source, const Span& span) {
    RangeCounts counts(span, shift_for(span));
    source.for_each([&](std::span<const ColumnEntry> entries) { counts.add(entries); });
    work(source, span, &counts);
  }

  // Spills every part of the span to a file of its own, then works on one after the other. A part may still be too
  // large, and is parted again then; it has fewer features than the whole.
  void part(EntrySource& source, const Span& span, RangeCounts counts) {
    const std::vector<Span> parts = cut(span, counts);
    if (parts.size() == 1) {
      counts = RangeCounts({.end = 1}, 0);
      return work(source, parts[0], nullptr);
    }
    check_disk(span);
    std::vector<uint16_t> part_of(counts.counts.size());
    for (size_t i = 0; i < parts.size(); ++i)
      for (uint64_t range = (parts[i].begin - span.begin) >> counts.shift;
           range <= (parts[i].end - 1 - span.begin) >> counts.shift; ++range)
        part_of[range] = static_cast<uint16_t>(i);
    std::vector<std::unique_ptr<SpilledEntries>> files;
    std::vector<std::vector<ColumnEntry>> buffers(parts.size());
    const size_t room = plan_.sort_bytes / parts.size() / sizeof(ColumnEntry);
    for (std::vector<ColumnEntry>& buffer : buffers) {
      files.push_back(std::make_unique<SpilledEntries>(spill_path(writer_.folder(), ++spills_), context_.stop));
      buffer.reserve(std::min(room, kMostPartBuffer));
    }
    total_ += span.entries;
    const auto spill = [&](size_t number) {
      files[number]->write(buffers[number]);
      spilled_ += buffers[number].size() * sizeof(ColumnEntry);
      buffers[number].clear();
    };
    source.for_each([&](std::span<const ColumnEntry> entries) {
      for (const ColumnEntry& entry : entries) {
        const size_t number = part_of[(entry.feature - span.begin) >> counts.shift];
        buffers[number].push_back(entry);
        if (buffers[number].size() == buffers[number].capacity()) spill(number);
      }
      moved(entries.size());
    });
    for (size_t i = 0; i < parts.size(); ++i) {
      spill(i);
      files[i]->end_writing();
    }
    buffers = {};
    part_of = {};
    counts = RangeCounts({.end = 1}, 0);
    for (size_t i = 0; i < parts.size(); ++i) {
      work(*files[i], parts[i], nullptr);
      files[i].reset();
    }
  }

  // Neighboring ranges that fit in memory together, those without entries left out; fewer and larger parts where
  // there would be more files than their buffers allow.
  std::vector<Span> cut(const Span& span, const RangeCounts& counts) const {
    const uint64_t most = std::clamp<uint64_t>(plan_.sort_bytes / kLeastPartBuffer, 2, kMostParts);
    for (uint64_t bytes = plan_.sort_bytes;; bytes *= 2) {
      std::vector<Span> parts;
      for (uint64_t range = 0; range < counts.counts.size(); ++range) {
        if (counts.counts[range] == 0) continue;
        const uint64_t begin = span.begin + (range << counts.shift);
        const uint64_t end = std::min(span.end, begin + (uint64_t{1} << counts.shift));
        const Span joined{parts.empty() ? begin : parts.back().begin, end,
                          (parts.empty() ? 0 : parts.back().entries) + counts.counts[range]};
        if (!parts.empty() && joined.memory_bytes() <= bytes)
          parts.back() = joined;
        else
          parts.push_back({begin, end, counts.counts[range]});
      }
      if (parts.size() <= most) return parts;
    }
  }

  void check_disk(const Span& span) const {
    const uint64_t needed = span.entries * sizeof(ColumnEntry);
    const uint64_t free = free_disk_bytes(writer_.folder());
    if (needed <= free) return;
    fail(ErrorKind::io,
         {say("free some space"),
          give_at_least("memory", size_of_at_least(plan_.least_bytes + 2 * span.memory_bytes()))},
         "in this memory, transposing needs {} on disk for a while, and the disk of '{}' has {} free",
         human_bytes(needed), writer_.folder(), human_bytes(free));
  }

  // A single feature's entries come in their order.
  void stream(EntrySource& source, const Span& span) {
    std::vector<uint32_t> places;
    std::vector<float> values;
    source.for_each([&](std::span<const ColumnEntry> entries) {
      places.clear();
      values.clear();
      for (const ColumnEntry& entry : entries) {
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
    source.for_each([&](std::span<const ColumnEntry> entries) {
      for (const ColumnEntry& entry : entries) {
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
    std::vector<ColumnEntry> all;
    all.reserve(span.entries);
    source.for_each([&](std::span<const ColumnEntry> entries) {
      all.insert(all.end(), entries.begin(), entries.end());
      moved(entries.size());
    });
    std::sort(all.begin(), all.end(), [](const ColumnEntry& a, const ColumnEntry& b) {
      return a.feature != b.feature ? a.feature < b.feature : a.place < b.place;
    });
    for (const ColumnEntry& entry : all) put(entry.feature, {&entry.place, 1}, {&entry.value, 1});
  }

  void put(uint32_t feature, std::span<const uint32_t> places, std::span<const float> values) {
    columns_.add(feature, places, values);
    moved(places.size());
  }
  // Not for every column: looking at a clock takes as long as moving a few entries.
  void moved(uint64_t entries) {
    done_ += entries;
    if (done_ < told_ + kTellEntries) return;
    told_ = done_;
    check_stop(context_.stop);
    context_.observer(std::min(done_, total_), total_);
  }

  const Store& rows_;
  StoreWriter& writer_;
  const TransposePlan& plan_;
  const TransposeContext& context_;
  ColumnWriter columns_;
  RowFactsInfo facts_;
  uint64_t done_ = 0;
  uint64_t told_ = 0;
  uint64_t total_;
  uint64_t spills_ = 0;   // files so far
  uint64_t spilled_ = 0;  // bytes
};

}  // namespace

uint64_t least_transpose_memory(const Store& rows, const TransposeOptions& options) {
  TransposeOptions unlimited = options;
  unlimited.memory_bytes = UINT64_MAX / 2;
  return TransposePlan(rows, unlimited).least_bytes;
}

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
