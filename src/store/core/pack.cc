#include "store/core/pack.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "store/chunk/codec.h"
#include "store/core/feature_names.h"
#include "store/core/sample.h"
#include "store/core/store_writer.h"
#include "store/text/svmlight.h"
#include "store/text/text_source.h"
#include "store/text/weight_reader.h"

namespace linblock {

std::optional<CodecName> CodecName::read(std::string_view text) {
  if (text != "auto" && !is_codec(text)) return {};
  return CodecName(std::string(text));
}

namespace {

// What the store is made of does not follow from `memory`: the same text gives the same store. All of it fits the least
// memory. A sample of 4 MB and a map of any size made stores 0.5% smaller.
constexpr uint64_t kSampleBytes = uint64_t{1} << 20;
constexpr uint64_t kSamplePiece = uint64_t{32} << 10;
constexpr uint64_t kMapBytes = uint64_t{512} << 10;
constexpr uint64_t kUsualChunk = uint64_t{64} << 10;
constexpr uint32_t kUsualBuckets = 32;
constexpr int32_t kNoCode = -1;
constexpr uint64_t kNamesShare = 4;  // of the memory, for labels that are words: one part in so many
constexpr uint64_t kMemoryForNames = uint64_t{40} << 20;  // enough for as many and as long names as there may be
constexpr uint64_t kLineShare = 13;  // a line in all its forms and buffers takes up to so many times its text

// How --memory is shared out. A row passes through text, parsed and encoded form and a chunk, so the longest line is
// a small part; buckets hold a chunk each and are the largest part.
struct PackPlan {
  // `existing`: the store that is appended to, whose chunks and buckets are given.
  PackPlan(const PackOptions& options, const StoreInfo* existing) {
    if (options.memory_bytes < kLeastPackMemory)
      fail(ErrorKind::memory, {give_at_least("memory", size_of_at_least(kLeastPackMemory))},
           "`memory` {} is too little to pack in", human_bytes(options.memory_bytes));
    const uint64_t available = options.memory_bytes - kProgramBytes;
    piece_bytes = std::clamp<uint64_t>(available / 256 / 4096 * 4096, 32 << 10, 128 << 10);
    longest_line = available / kLineShare;
    names_bytes = available / kNamesShare;
    window_bytes = available / 3;
    if (existing != nullptr) {
      chunk_bytes = existing->chunk_bytes;
      buckets = existing->buckets;
      if (chunk_bytes * buckets > available / 2)
        fail(ErrorKind::memory, {give_at_least("memory", size_of_at_least(2 * chunk_bytes * buckets + kProgramBytes))},
             "to append to this store, which has {} buckets with chunks of {}, `memory` {} is too little", buckets,
             human_bytes(chunk_bytes), human_bytes(options.memory_bytes));
      choose_threads(options.team.size(), available);
      return;
    }
    const uint64_t bucket_bytes = available / 4;
    chunk_bytes = options.chunk_bytes.value_or(kUsualChunk);
    if (chunk_bytes < format::kSmallestChunkBytes || chunk_bytes > bucket_bytes)
      fail(ErrorKind::usage, "`chunk_bytes` {} must be between 4K and, with this `memory`, {}",
           human_bytes(chunk_bytes), human_bytes(bucket_bytes));
    buckets = static_cast<uint32_t>(std::clamp<uint64_t>(bucket_bytes / chunk_bytes, 1, kUsualBuckets));
    choose_threads(options.team.size(), available);
  }

  // A thread holds pieces of text in every form and a few chunks; in little memory there are fewer threads than asked.
  void choose_threads(size_t wanted, uint64_t available) {
    const uint64_t per_thread = 16 * piece_bytes + 4 * chunk_bytes;
    threads = std::clamp<size_t>(available / 4 / per_thread, 1, wanted);
    // More than threads, so that nobody waits for the one that routes.
    pieces = std::max<size_t>(threads + 2, std::min<size_t>(available / 4 / per_thread, 2 * threads));
  }

  uint64_t piece_bytes;
  uint64_t longest_line;
  uint64_t names_bytes;
  uint64_t window_bytes;  // of a compressed input
  uint64_t chunk_bytes;
  uint32_t buckets;
  size_t threads;
  size_t pieces;
};

class Packer {
 public:
  Packer(const std::vector<std::string>& inputs, StoreWriter& writer, const PackOptions& options,
         const PackContext& context)
      : options_(options),
        context_(context),
        plan_(options, writer.appending() ? &writer.info() : nullptr),
        source_(inputs, kSamplePiece, plan_.longest_line, plan_.window_bytes),
        writer_(writer) {
    if (!options.weights.empty()) weights_.emplace(options.weights);
    if (!options.rejects.empty()) rejects_ = File::create_output(options.rejects);
    parsing_.most_bad = options.max_bad_rows;
    const StoreInfo& info = writer.info();
    const bool base_is_known = info.has_features || info.index_base_given;  // an existing store's base
    parsing_.word_labels = !info.label_names.empty();
    parsing_.index_zero = writer.appending() ? !base_is_known || info.index_base == 0 : options.index_base != 1;
  }

  PackReport run() {
    if (!writer_.appending()) begin_store();
    source_.set_piece_bytes(plan_.piece_bytes);
    normalize_ = writer_.info().normalized;
    if (weights_) writer_.set_weighted();
    for (size_t i = 0; i < plan_.pieces; ++i) idle_.push_back(std::make_unique<Piece>());
    const auto give_up = [this] {
      const std::lock_guard lock(mutex_);
      failed_ = true;
      changed_.notify_all();
      writer_.abandon();
    };
    options_.team.run_loops(
        plan_.threads, [this] { work(); }, give_up);
    if (weights_) weights_->expect_end(report_.rows + report_.bad_rows);
    if (report_.rows == 0)
      fail(ErrorKind::input, "{} no rows: only blank lines and comments, or only bad rows",
           source_.name(0) + (last_input_ > 0 ? " and the other inputs have" : " has"));
    idle_.clear();
    writer_.close_buckets();
    options_.team.run_loops(
        plan_.threads,
        [this] {
          while (writer_.seal_one()) continue;
        },
        give_up);
    if (rejects_.is_open()) {
      rejects_.sync();
      rejects_.close();
    }
    writer_.commit();
    report_.text_bytes = source_.bytes_read();
    report_.segment = writer_.info().segments.back().number;
    report_.first_row = writer_.info().segments.back().first_row;
    return report_;
  }

 private:
  // A piece of text on its way to rows.
  struct Piece {
    TextPiece text;
    EncodedRows rows;
    std::vector<BadLine> bad;
    LabelNames names;  // where labels are words: rows have numbers of these
    uint64_t lines = 0;
    bool has_features = false;
    uint32_t smallest = 0;
    uint32_t largest = 0;
  };

  void begin_store();
  void work();
  std::unique_ptr<Piece> take_piece();
  bool read_text(TextPiece& text);
  void encode(Piece& piece, ParsedRows& rows) const;
  void deliver(std::unique_ptr<Piece> piece);
  void route(const Piece& piece);
  int32_t label_code(std::string_view name);
  void refuse(const Piece& piece, const BadLine& bad);
  void check_disk(const Sample& sample) const;

  const PackOptions& options_;
  const PackContext& context_;
  const PackPlan plan_;
  TextSource source_;
  StoreWriter& writer_;
  std::optional<WeightReader> weights_;
  File rejects_;
  SvmlightOptions parsing_;
  bool normalize_ = false;
  PackReport report_;
  std::atomic<uint64_t> rows_routed_ = 0;  // for the observer, whatever thread calls it

  std::mutex long_line_;
  std::mutex reading_;  // of the source, and what was read for the sample
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<TextPiece> sampled_;  // read for the sample, not yet packed
  std::vector<std::unique_ptr<Piece>> idle_;
  std::map<uint64_t, std::unique_ptr<Piece>> ready_;  // encoded, waiting for an earlier piece
  bool failed_ = false;
  bool ended_ = false;
  bool routing_ = false;

  // Touched by the thread that routes.
  uint64_t next_ordinal_ = 0;
  uint64_t lines_before_ = 0;  // in the current input
  size_t last_input_ = 0;
};

// Reads the beginning of the data, learns from it what a store must know before its first row, and keeps the text: it
// is packed like all the rest.
void Packer::begin_store() {
  if (!options_.names.empty())
    writer_.set_feature_names(write_feature_names(options_.names, feature_names_path(writer_.folder())));
  uint64_t text_bytes = 0;
  bool whole_input = false;
  Checksum fingerprint;
  while (text_bytes < kSampleBytes) {
    TextPiece piece;
    if (!source_.next(piece)) {
      whole_input = true;
      break;
    }
    fingerprint.add({piece.text.data(), piece.size});
    text_bytes += piece.size;
    sampled_.push_back(std::move(piece));
    if (sampled_.back().too_long) break;
  }
  for (const TextPiece& piece : sampled_) {
    if (piece.too_long) break;
    if (const std::optional<bool> words = has_word_labels({piece.text.data(), piece.size}, parsing_)) {
      parsing_.word_labels = *words;
      break;
    }
  }
  Sample sample = sample_of(sampled_, {.index_zero = parsing_.index_zero,
                                       .word_labels = parsing_.word_labels,
                                       .normalize = options_.normalize,
                                       .chunk_bytes = plan_.chunk_bytes,
                                       .map_bytes = kMapBytes});
  check_disk(sample);
  StoreOptions store{.seed = options_.seed,
                     .shuffle = options_.shuffle,
                     .buckets = plan_.buckets,
                     .chunk_bytes = plan_.chunk_bytes,
                     .normalized = options_.normalize,
                     .index_base = options_.index_base,
                     .source = options_.source,
                     .tag = options_.tag};
  // Small data in many buckets would be all padding.
  if (whole_input)
    store.buckets = static_cast<uint32_t>(std::clamp<uint64_t>(text_bytes / 2 / plan_.chunk_bytes, 1, plan_.buckets));
  if (options_.codec == "auto") {
    CodecChoice choice = choose_codec(sample.chunk.span(), writer_.folder());
    store.codec = choice.codec;
    store.codec_reason = std::move(choice.reason);
    if (!choice.measured.empty()) store.measured = fmt::format("{{\"codec_measured\": \"{}\"}}\n", choice.measured);
  } else {
    store.codec = codec_of(options_.codec);
  }
  writer_.begin(store, std::move(sample.features), sample.width_set, fingerprint.value());
}

// A guess, and so only half of it is asked for; while packing, the writer looks again.
void Packer::check_disk(const Sample& sample) const {
  if (source_.total_bytes() == 0 || source_.any_compressed() || sample.chunk_text_bytes == 0) return;
  const double share = static_cast<double>(sample.chunk.size()) / static_cast<double>(sample.chunk_text_bytes);
  const auto needed = static_cast<uint64_t>(share * static_cast<double>(source_.total_bytes()));
  const uint64_t free = free_disk_bytes(writer_.folder());
  if (needed / 2 > free)
    fail(ErrorKind::io, {say("free some space"), say("put the store on another disk (pack: `output`, train: `store`)")},
         "the store would need about {} and the disk of '{}' has {} free", human_bytes(needed), writer_.folder(),
         human_bytes(free));
}

bool Packer::read_text(TextPiece& text) {
  if (!sampled_.empty()) {
    text = std::move(sampled_.front());
    sampled_.pop_front();
    return true;
  }
  return source_.next(text);
}

// Reading has a lock of its own: pieces are cut where the one before ended.
std::unique_ptr<Packer::Piece> Packer::take_piece() {
  std::unique_ptr<Piece> piece;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failed_ || ended_ || !idle_.empty(); });
    if (failed_ || ended_) return nullptr;
    piece = std::move(idle_.back());
    idle_.pop_back();
  }
  if (context_.stop != nullptr && *context_.stop) fail(ErrorKind::interrupted, "interrupted: nothing was written");
  const std::lock_guard reading(reading_);
  if (!read_text(piece->text)) {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
    return nullptr;
  }
  context_.observer({.bytes_read = source_.bytes_read(), .total_bytes = source_.total_bytes(), .rows = rows_routed_});
  return piece;
}

void Packer::work() {
  ParsedRows rows;
  while (true) {
    while (writer_.seal_one()) continue;
    std::unique_ptr<Piece> piece = take_piece();
    if (!piece) break;
    if (piece->text.size <= 4 * plan_.piece_bytes) {
      encode(*piece, rows);
    } else {
      // A long line takes many times its length while it is encoded: one at a time, and nothing of it is kept.
      const std::lock_guard lock(long_line_);
      encode(*piece, rows);
      rows = ParsedRows();
      if (piece->bad.empty() && !piece->text.too_long) piece->text.text.release();
    }
    deliver(std::move(piece));
  }
  while (writer_.seal_one()) continue;
}

void Packer::encode(Piece& piece, ParsedRows& rows) const {
  piece.rows.clear();
  piece.bad.clear();
  piece.names.clear();
  piece.has_features = false;
  if (piece.text.too_long) return;
  parse_svmlight({piece.text.text.data(), piece.text.size}, parsing_, rows);
  if (normalize_) scale_to_unit_length(rows);
  for (size_t row = 0; row < rows.size(); ++row) {
    const std::span<const uint32_t> index = rows.index(row);
    writer_.encoder().add(rows.label(row), 1, index, rows.value(row), piece.rows);
    if (index.empty()) continue;
    piece.smallest = piece.has_features ? std::min(piece.smallest, index.front()) : index.front();
    piece.largest = piece.has_features ? std::max(piece.largest, index.back()) : index.back();
    piece.has_features = true;
  }
  piece.lines = rows.lines();
  piece.bad = rows.bad();
  piece.names = rows.label_names();
}

// Pieces are routed in their order, by whichever thread finds the next one ready.
void Packer::deliver(std::unique_ptr<Piece> piece) {
  std::unique_lock lock(mutex_);
  ready_[piece->text.ordinal] = std::move(piece);
  if (routing_) return;
  routing_ = true;
  while (!failed_ && !ready_.empty() && ready_.begin()->first == next_ordinal_) {
    std::unique_ptr<Piece> next = std::move(ready_.begin()->second);
    ready_.erase(ready_.begin());
    ++next_ordinal_;
    lock.unlock();
    route(*next);
    while (writer_.pending() > plan_.threads && writer_.seal_one()) continue;  // or full chunks would pile up
    // Memory that grew for a long line is given back.
    if (next->rows.memory_bytes() > 16 * plan_.piece_bytes) *next = Piece();
    lock.lock();
    idle_.push_back(std::move(next));
    changed_.notify_one();
  }
  routing_ = false;
}

void Packer::route(const Piece& piece) {
  if (piece.text.first) lines_before_ = 0;
  last_input_ = piece.text.input;
  if (piece.text.too_long)
    fail(ErrorKind::memory,
         {give_at_least("memory", size_of_at_least(kLineShare * (piece.text.line_bytes + (piece.text.line_bytes >> 4)) +
                                                   kProgramBytes + (uint64_t{1} << 20)))},
         "{}:{}:1: this line is longer than {}, the most that `memory` {} can take", source_.name(piece.text.input),
         lines_before_ + 1, human_bytes(plan_.longest_line), human_bytes(options_.memory_bytes));
  if (piece.has_features) writer_.saw_indices(piece.smallest, piece.largest);
  // A word that only bad rows have gets no code.
  std::vector<int32_t> codes(piece.names.size(), kNoCode);
  auto bad = piece.bad.begin();
  for (size_t i = 0; i <= piece.rows.size(); ++i) {
    for (; bad != piece.bad.end() && bad->rows_before == i; ++bad) refuse(piece, *bad);
    if (i == piece.rows.size()) break;
    EncodedRow row = piece.rows[i];
    if (weights_) row.weight = weights_->next();
    if (!codes.empty()) {
      const auto number = static_cast<size_t>(row.label);
      if (codes[number] == kNoCode) codes[number] = label_code(piece.names[number]);
      row.label = codes[number];
    }
    writer_.route(row);
    report_.nonzeros += row.count;
  }
  report_.rows += piece.rows.size();
  rows_routed_ = report_.rows;
  lines_before_ += piece.lines;
}

int32_t Packer::label_code(std::string_view name) {
  const int32_t code = writer_.label_code(name);
  const LabelNames& names = writer_.info().label_names;
  if (names.memory_bytes() > plan_.names_bytes)
    fail(ErrorKind::memory, {give_at_least("memory", size_of_at_least(kMemoryForNames))},
         "the names of {} labels do not fit in `memory` {}", names.size(), human_bytes(options_.memory_bytes));
  return code;
}

void Packer::refuse(const Piece& piece, const BadLine& bad) {
  const std::string_view text(reinterpret_cast<const char*>(piece.text.text.data()) + bad.begin, bad.length);
  if (++report_.bad_rows > options_.max_bad_rows) {
    const std::string message =
        describe_bad_line(source_.name(piece.text.input), lines_before_ + bad.line + 1, bad, text);
    if (options_.max_bad_rows > 0)
      fail(ErrorKind::input, "{}\nthis is bad row {}, and `max_bad_rows` allows {}", message, report_.bad_rows,
           options_.max_bad_rows);
    throw Error(ErrorKind::input, message,
                {say("skip such rows with `max_bad_rows` N and keep them in a file with `rejects` FILE")});
  }
  if (weights_) weights_->next();
  if (rejects_.is_open()) {
    const std::string line = std::string(text) + "\n";
    rejects_.write_next({reinterpret_cast<const unsigned char*>(line.data()), line.size()});
  }
}

}  // namespace

PackReport pack(const std::vector<std::string>& inputs, const std::string& store, const PackOptions& options,
                const PackContext& context) {
  const PackPlan plan(options, nullptr);  // refuses impossible sizes before anything is created
  if (options.names == "-" && std::find(inputs.begin(), inputs.end(), "-") != inputs.end())
    fail(ErrorKind::usage, {say("save the names in a file")},
         "the rows and the `names` of features cannot both come from standard input");
  StoreWriter writer(store);
  return Packer(inputs, writer, options, context).run();
}

PackReport append(const std::vector<std::string>& inputs, const std::string& store, const PackOptions& options,
                  const PackContext& context) {
  const std::unique_ptr<StoreWriter> writer = StoreWriter::append_to(store, options.tag);
  return Packer(inputs, *writer, options, context).run();
}

}  // namespace linblock
