#include "learn/test_rows.h"

#include <algorithm>
#include <bit>
#include <map>

#include "base/bytes.h"
#include "base/checksum.h"
#include "base/dot.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "learn/examples.h"
#include "objective/class_certificate.h"
#include "solve/core/chunk_sums.h"

namespace linblock {

namespace {

// The file is a sequence of pieces of equal size: a checksum, the number of parts, and the parts. A part has (some of)
// the nonzeros of one row: label, count, whether more parts of this row follow, feature numbers, values.
constexpr size_t kPieceWords = 16384;
constexpr size_t kPieceHead = 3;
constexpr size_t kPartHead = 3;
constexpr size_t kMostNonzeros = (kPieceWords - kPieceHead - kPartHead) / 2;

uint64_t sum_of(std::span<const unsigned char> piece, uint64_t number) {
  return checksum(piece.subspan(sizeof(uint64_t)), number);
}

// The best decision about each row so far, and its label: two numbers per row.
constexpr const char* kBest = "best";
constexpr size_t kBestPiece = 4096;

// How many rows the best constant answer gets right. Classes other than two are labels themselves.
uint64_t largest_class(const Classes& classes, const std::map<int32_t, uint64_t>& counts) {
  uint64_t largest = 0;
  for (const int32_t answer : classes.labels) {
    uint64_t right = 0;
    if (classes.labels.size() == 2) {
      for (const auto& [label, rows] : counts) right += classes.is_right(label, answer) ? rows : 0;
    } else if (const auto own = counts.find(answer); own != counts.end()) {
      right = own->second;
    }
    largest = std::max(largest, right);
  }
  return largest;
}

}  // namespace

class TestRows::Writer {
 public:
  explicit Writer(const std::string& path) : file_(File::create(path, "")) { begin_piece(); }

  void add(int32_t label, std::span<const uint32_t> index, std::span<const float> value) {
    do {
      const size_t count = std::min(index.size(), kMostNonzeros);
      if (used_ + kPartHead + 2 * count > kPieceWords) write_piece();
      put(std::bit_cast<uint32_t>(label));
      put(static_cast<uint32_t>(count));
      put(index.size() > count ? 1 : 0);
      for (const uint32_t number : index.first(count)) put(number);
      for (const float x : value.first(count)) put(std::bit_cast<uint32_t>(x));
      ++piece_[kPieceHead - 1];
      index = index.subspan(count);
      value = value.subspan(count);
    } while (!index.empty());
  }
  // Returns the number of pieces.
  uint64_t finish() {
    write_piece();
    file_.close();
    return pieces_;
  }

 private:
  void put(uint32_t word) { piece_[used_++] = word; }
  void begin_piece() {
    piece_.assign(kPieceWords, 0);
    used_ = kPieceHead;
  }
  void write_piece() {
    const std::span<unsigned char> bytes = as_writable_raw(std::span(piece_));
    store_le(bytes.data(), sum_of(bytes, pieces_++));
    file_.write_next(bytes);
    begin_piece();
  }

  File file_;
  std::vector<uint32_t> piece_;
  size_t used_ = 0;
  uint64_t pieces_ = 0;
};

TestRows::TestRows(const TrainOptions& options, const Store& store, const Classes& classes, std::string path)
    : options_(options), store_(store), classes_(classes), path_(std::move(path)) {}

TestRows::~TestRows() {
  if (pieces_ > 0) remove_quietly(rows_path());
}

void TestRows::read(const Context& context) {
  if (!wanted()) return;
  if (path_.empty()) fail(ErrorKind::usage, "`test` needs a `checkpoint`, where the test rows are kept");
  const StoreInfo& info = store_.info();
  // Opened again: its feature map, for which training has no room, is gone at the end.
  const Store again = Store::open(store_.path());
  if (again.info().features_checksum != info.features_checksum)
    fail(ErrorKind::io, "'{}' was replaced by another process: run the command again", store_.path());
  const FeatureMap& features = again.features();
  const uint64_t held = kProgramBytes + 2 * directory_bytes(store_) + features.memory_bytes();
  LabelNames names = classes_.label_names;
  const ExampleOptions reading{.index_base = info.index_base,
                               .normalized = info.normalized,
                               .memory_bytes = context.memory_bytes - std::min(context.memory_bytes, held),
                               .word_labels = !names.empty(),
                               .names = &names,
                               .context = {.observer =
                                               [&](const ReadProgress& done) {
                                                 if (done.total_bytes == 0) return;
                                                 context.observer.reading("of the test rows",
                                                                          static_cast<double>(done.bytes_read) /
                                                                              static_cast<double>(done.total_bytes));
                                               },
                                           .stop = context.stop}};
  Writer file(rows_path());
  pieces_ = 1;  // there is something to remove
  std::vector<uint32_t> index;
  std::vector<float> value;
  std::map<int32_t, uint64_t> counts;
  rows_ = for_each_example(options_.test, reading, [&](const Example& example) {
    if (!example.label) fail(ErrorKind::input, "`test`: a row has no label, so it cannot be tested on");
    index.clear();
    value.clear();
    for (size_t k = 0; k < example.index.size(); ++k) {
      if (example.index[k] >= info.feature_numbers()) continue;
      index.push_back(features.number(example.index[k]));
      value.push_back(example.value[k]);
    }
    if (store_.info().labels.contains(*example.label)) ++counts[*example.label];  // no others: they may be too many
    file.add(*example.label, index, value);
  });
  pieces_ = file.finish();
  baseline_ = static_cast<double>(largest_class(classes_, counts)) / static_cast<double>(std::max<uint64_t>(rows_, 1));
  context.observer.reading("of the test rows", 1);
}

void TestRows::for_each(const std::vector<std::span<const float>>& weights, const Visitor& visit) const {
  const File file = File::open_read(rows_path());
  const bool together = classes_.all_at_once && !weights.empty();
  std::vector<double> decisions(together ? classes_.columns() : weights.size());
  std::vector<double> of_part(decisions.size());
  Buffer piece(kPieceWords * sizeof(uint32_t));
  bool first = true;  // part of its row
  for (uint64_t number = 0; number < pieces_; ++number) {
    file.read_exactly_at(piece.span(), number * piece.size());
    if (load_le<uint64_t>(piece.data()) != sum_of(piece.span(), number))
      fail(ErrorKind::damaged, "'{}' was not read back as it was written: is the disk sound?", rows_path());
    const auto* at = reinterpret_cast<const uint32_t*>(piece.data());
    const uint32_t parts = at[kPieceHead - 1];
    at += kPieceHead;
    for (uint32_t part = 0; part < parts; ++part) {
      const auto label = std::bit_cast<int32_t>(at[0]);
      const size_t count = at[1];
      const bool more = at[2] != 0;
      at += kPartHead;
      const std::span<const uint32_t> index(at, count);
      const std::span<const float> value(reinterpret_cast<const float*>(at + count), count);
      at += 2 * count;
      if (together) exact_scores({.index = index, .value = value}, first ? options_.bias : -1, weights[0], of_part);
      for (size_t i = 0; i < weights.size() && !together; ++i) {
        of_part[i] = exact_dot(index, value, weights[i].data());
        if (first && options_.bias >= 0) of_part[i] += options_.bias * double{weights[i].back()};
      }
      for (size_t i = 0; i < decisions.size(); ++i) decisions[i] = first ? of_part[i] : decisions[i] + of_part[i];
      first = !more;
      if (!more) visit(label, decisions);
    }
  }
}

TestResult TestRows::test(const std::vector<std::span<const float>>& weights, std::optional<double> threshold) const {
  TestResult result{.baseline = baseline_};
  for_each(weights, [&](int32_t label, std::span<const double> decisions) {
    ++result.rows;
    if (classes_.is_right(label, classes_.label_of(decisions, threshold))) ++result.correct;
  });
  return result;
}

// A file for each group, from that of the group before: memory holds a piece of either. The one before stays until the
// next group is done, since this one may be trained again after a kill.
void TestRows::add(const std::vector<std::span<const float>>& weights, size_t first) {
  std::optional<FieldReader> before;
  if (groups_ > 0) before.emplace(best_path(groups_));
  {
    SnapshotWriter file(best_path(groups_ + 1));
    FieldWriter to(file);
    to.begin<double>(kBest, 2 * rows_);
    std::vector<double> piece;
    std::vector<double> earlier;
    uint64_t row = 0;
    for_each(weights, [&](int32_t, std::span<const double> decisions) {
      if (before && row % kBestPiece == 0) {
        earlier.resize(2 * std::min<uint64_t>(kBestPiece, rows_ - row));
        before->take_part(kBest, 2 * row, std::span(earlier));
      }
      const auto largest = std::max_element(decisions.begin(), decisions.end());
      double decision = *largest;
      double label = classes_.labels[first + static_cast<size_t>(largest - decisions.begin())];
      if (const size_t at = 2 * (row % kBestPiece); before && earlier[at] >= decision) {
        decision = earlier[at];
        label = earlier[at + 1];
      }
      piece.insert(piece.end(), {decision, label});
      if (++row % kBestPiece != 0 && row < rows_) return;
      to.add_piece(std::span<const double>(piece));
      piece.clear();
    });
    file.commit();
  }
  if (groups_ > 1) remove_quietly(best_path(groups_ - 1));
  ++groups_;
}

TestResult TestRows::result() const {
  const FieldReader best(best_path(groups_));
  TestResult result{.baseline = baseline_};
  std::vector<double> piece;
  for_each({}, [&](int32_t label, std::span<const double>) {
    const uint64_t at = 2 * (result.rows % kBestPiece);
    if (at == 0) {
      piece.resize(2 * std::min<uint64_t>(kBestPiece, rows_ - result.rows));
      best.take_part(kBest, 2 * result.rows, std::span(piece));
    }
    ++result.rows;
    if (classes_.is_right(label, static_cast<int32_t>(piece[at + 1]))) ++result.correct;
  });
  return result;
}

void TestRows::save(FieldWriter& to) const {
  to("rows", rows_);
  to("groups", uint64_t{groups_});
}

void TestRows::restore(FieldReader& from) {
  const auto rows = from.take<uint64_t>("rows");
  groups_ = from.take<uint64_t>("groups");
  if (rows != rows_)
    fail(ErrorKind::input, {start_over()}, "`test`: there were {} rows when training began, and there are {} now",
         grouped(rows), grouped(rows_));
}

}  // namespace linblock
