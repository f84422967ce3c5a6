#include "learn/examples.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>

#include "base/dot.h"
#include "base/error.h"
#include "base/file.h"
#include "store/core/sample.h"
#include "store/core/unpack.h"
#include "store/text/text_source.h"

namespace linblock {

namespace {

constexpr size_t kPieceBytes = size_t{128} << 10;
constexpr size_t kThreadBytes = size_t{1} << 20;  // a piece of text, its rows, and what is made of them
constexpr uint64_t kRowsAReport = 1024;           // of a store

void stop_if_told(const ReadContext& context) {
  if (context.stop != nullptr && *context.stop) fail(ErrorKind::interrupted, "interrupted");
}

int32_t code_of(std::string_view name, LabelNames& names) {
  const int32_t code = names.add(name);
  // Those of a model, and as many others.
  if (names.size() > 2 * format::kMostLabels || names.bytes() > 2 * format::kMostLabelNames)
    fail(ErrorKind::input, "the rows have too many different labels that the model does not know: {} so far",
         names.size());
  return code;
}

void recode_labels(ParsedRows& rows, LabelNames& names) {
  const LabelNames& found = rows.label_names();
  std::vector<int32_t> codes(found.size());
  for (size_t number = 0; number < codes.size(); ++number) codes[number] = code_of(found[number], names);
  rows.recode_labels(codes);
}

// The code of each label of a store, whose labels may be numbers where others are names.
std::map<int32_t, int32_t> codes_of_store(const Store& store, const ExampleOptions& options) {
  std::map<int32_t, int32_t> codes;
  const StoreInfo& info = store.info();
  if (options.names == nullptr) return codes;
  if (!options.word_labels && !info.label_names.empty())
    fail(ErrorKind::input, {say("give the classes numbers in the text, and pack it again")},
         "the labels of '{}' are words, and those that it is compared with are numbers", store.path());
  if (!options.word_labels) return codes;
  for (const auto& [label, rows] : info.labels) codes[label] = code_of(info.label_names.show(label), *options.names);
  return codes;
}

// Each thread reads a piece, under a lock, then parses it and works on it alone. The end of the work is done in turn,
// by the order of the pieces, and so are complaints: a piece that is wrong is reported after all pieces before it.
class PiecesOfText {
 public:
  using Work = std::function<void(const ParsedRows&, const std::function<void()>&)>;

  PiecesOfText(const std::vector<std::string>& inputs, const ExampleOptions& options, const Work& work)
      : options_(options),
        work_(work),
        source_(inputs, kPieceBytes, std::max<uint64_t>(options.memory_bytes / 16, kPieceBytes),
                options.memory_bytes / 3) {}

  // Returns how many rows there were.
  uint64_t run(const Team& team) {
    const uint64_t fitting = options_.memory_bytes / 3 / kThreadBytes;
    team.for_each(std::clamp<uint64_t>(fitting, 1, team.size()), [&](size_t) { work_on_pieces(); });
    if (failure_) std::rethrow_exception(failure_);
    return rows_done_;
  }

 private:
  struct Abandoned {};  // an earlier piece failed

  struct Claim {
    uint64_t number = 0;
    TextPiece text = {};
    ParsedRows rows = {};
    ReadProgress progress = {};
  };

  void work_on_pieces() {
    Claim claim;
    while (true) {
      std::unique_lock reading(reading_mutex_);
      claim.number = claimed_++;
      // The piece behind the last has no turn, and whoever claims one after it must not wait for its own.
      if (ended_) return;
      try {
        stop_if_told(options_.context);
        if (!source_.next(claim.text)) {
          ended_ = true;
          return;
        }
        claim.progress = {.bytes_read = source_.bytes_read(), .total_bytes = source_.total_bytes()};
        // There is memory for one very long line.
        const bool alone = claim.text.size > 2 * kPieceBytes;
        if (!alone) reading.unlock();
        work_on(claim);
        if (alone) claim = {};
      } catch (const Abandoned&) {
        return;
      } catch (...) {
        if (reading.owns_lock()) reading.unlock();
        fail_in_turn(claim.number, std::current_exception());
        return;
      }
    }
  }

  void work_on(Claim& claim) {
    const TextPiece& text = claim.text;
    ParsedRows& rows = claim.rows;
    bool has_codes = !options_.word_labels || options_.names == nullptr;
    const auto wait = [&] {
      if (!wait_for_turn(claim.number)) throw Abandoned();
      if (!has_codes) recode_labels(rows, *options_.names);
      has_codes = true;
    };
    if (text.too_long) {
      wait();
      fail(ErrorKind::memory, {say("give more `memory`")}, "{}:{}:1: this line is too long for the memory",
           source_.name(text.input), lines_before(text) + 1);
    }
    parse_svmlight(
        {text.text.data(), text.size},
        {.index_zero = options_.index_base == 0, .label_optional = true, .word_labels = options_.word_labels}, rows);
    if (!rows.bad().empty()) {
      wait();
      const BadLine& bad = rows.bad().front();
      const std::string_view line(reinterpret_cast<const char*>(text.text.data()) + bad.begin, bad.length);
      throw Error(ErrorKind::input,
                  describe_bad_line(source_.name(text.input), lines_before(text) + bad.line + 1, bad, line));
    }
    if (options_.normalized) scale_to_unit_length(rows);
    work_(rows, wait);
    wait();
    lines_ = lines_before(text) + rows.lines();
    rows_done_ += rows.size();
    claim.progress.rows = rows_done_;
    options_.context.observer(claim.progress);
    const std::lock_guard lock(turn_mutex_);
    ++turn_;
    turn_changed_.notify_all();
  }

  uint64_t lines_before(const TextPiece& piece) const { return piece.first ? 0 : lines_; }

  // False: there will be none, since an earlier piece failed.
  bool wait_for_turn(uint64_t number) {
    std::unique_lock lock(turn_mutex_);
    turn_changed_.wait(lock, [&] { return turn_ == number || failure_; });
    return !failure_;
  }

  void fail_in_turn(uint64_t number, std::exception_ptr failure) {
    if (!wait_for_turn(number)) return;
    const std::lock_guard lock(turn_mutex_);
    failure_ = std::move(failure);
    turn_changed_.notify_all();
  }

  const ExampleOptions& options_;
  const Work& work_;

  std::mutex reading_mutex_;  // of what follows
  TextSource source_;
  uint64_t claimed_ = 0;
  bool ended_ = false;

  std::mutex turn_mutex_;  // of what follows; and whose turn it is has the rest to itself
  std::condition_variable turn_changed_;
  uint64_t turn_ = 0;
  std::exception_ptr failure_;
  uint64_t lines_ = 0;  // of this input, up to here
  uint64_t rows_done_ = 0;
};

[[noreturn]] void fail_without_rows(const std::vector<std::string>& inputs) {
  fail(ErrorKind::input, "'{}' has no rows: only blank lines and comments", inputs.front());
}

uint64_t for_each_row_of_store(const std::string& path, const ExampleOptions& options,
                               const std::function<void(const Example&)>& visit) {
  const Store store = Store::open(path);
  const bool scale = options.normalized && !store.info().normalized;
  const std::map<int32_t, int32_t> codes = codes_of_store(store, options);
  std::vector<float> scaled;
  uint64_t count = 0;
  const uint64_t rows = store.info().rows;
  for_each_row_in_order(store, [&](const Row& row) {
    stop_if_told(options.context);
    // All buckets are read at once, a little ahead of the rows: the bytes are those of the rows so far.
    if (count++ % kRowsAReport == 0) {
      const double share = static_cast<double>(count) / static_cast<double>(rows);
      options.context.observer({.bytes_read = static_cast<uint64_t>(share * static_cast<double>(store.bytes())),
                                .total_bytes = store.bytes(),
                                .rows = count});
    }
    const auto code = codes.find(row.label);
    Example example{.label = code == codes.end() ? row.label : code->second, .index = row.index, .value = row.value};
    if (const double length = scale ? std::sqrt(squared_norm(row.value)) : 0; length > 0) {
      scaled.assign(row.value.begin(), row.value.end());
      for (float& value : scaled) value = static_cast<float>(value / length);
      example.value = scaled;
    }
    visit(example);
  });
  return rows;
}

}  // namespace

bool is_store(const std::string& path) {
  return path_kind(path) == PathKind::directory && path_kind(manifest_path(path)) == PathKind::file;
}

void check_test_inputs(const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    if (input == "-" || path_kind(input) == PathKind::other)
      fail(ErrorKind::usage, "`test` is read again after each pass: give a file, not standard input or a pipe");
    if (path_kind(input) == PathKind::absent) fail(ErrorKind::input, "`test`: there is no '{}'", input);
    if (path_kind(input) == PathKind::directory && !is_store(input))
      fail(ErrorKind::input, "`test`: '{}' is a folder and not a store", input);
  }
}

bool are_store(const std::vector<std::string>& inputs) { return inputs.size() == 1 && is_store(inputs.front()); }

uint64_t for_each_example(const std::vector<std::string>& inputs, const ExampleOptions& options,
                          const std::function<void(const Example&)>& visit) {
  if (!are_store(inputs))
    return for_each_piece(inputs, options, 1, [&](const ParsedRows& rows, const std::function<void()>& wait) {
      wait();
      for (size_t i = 0; i < rows.size(); ++i) visit(example_of(rows, i));
    });
  const uint64_t rows = for_each_row_of_store(inputs.front(), options, visit);
  if (rows == 0) fail_without_rows(inputs);
  return rows;
}

uint64_t for_each_piece(const std::vector<std::string>& inputs, const ExampleOptions& options, const Team& team,
                        const std::function<void(const ParsedRows& rows, const std::function<void()>& wait)>& work) {
  const uint64_t rows = PiecesOfText(inputs, options, work).run(team);
  if (rows == 0) fail_without_rows(inputs);
  return rows;
}

Example example_of(const ParsedRows& rows, size_t number) {
  return {.label = rows.labeled(number) ? std::optional(rows.label(number)) : std::nullopt,
          .index = rows.index(number),
          .value = rows.value(number)};
}

}  // namespace linblock
