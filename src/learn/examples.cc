#include "learn/examples.h"

#include <algorithm>
#include <cmath>

#include "base/dot.h"
#include "base/error.h"
#include "base/file.h"
#include "store/core/sample.h"
#include "store/core/unpack.h"
#include "store/text/svmlight.h"
#include "store/text/text_source.h"

namespace linblock {

namespace {

constexpr size_t kPieceBytes = size_t{128} << 10;
constexpr uint64_t kRowsAReport = 1024;  // of a store

void stop_if_told(const ReadContext& context) {
  if (context.stop != nullptr && *context.stop) fail(ErrorKind::interrupted, "interrupted");
}

uint64_t for_each_row_of_text(const std::vector<std::string>& inputs, const ExampleOptions& options,
                              const std::function<void(const Example&)>& visit) {
  TextSource source(inputs, kPieceBytes, std::max<uint64_t>(options.memory_bytes / 16, kPieceBytes),
                    options.memory_bytes / 3);
  TextPiece piece;
  ParsedRows rows;
  uint64_t line = 0;
  uint64_t count = 0;
  while (source.next(piece)) {
    stop_if_told(options.context);
    options.context.observer({.bytes_read = source.bytes_read(), .total_bytes = source.total_bytes(), .rows = count});
    if (piece.first) line = 0;
    if (piece.too_long)
      fail(ErrorKind::memory, {say("give more `memory`")}, "{}:{}:1: this line is too long for the memory",
           source.name(piece.input), line + 1);
    parse_svmlight({piece.text.data(), piece.size}, {.index_zero = options.index_base == 0, .label_optional = true},
                   rows);
    if (!rows.bad().empty()) {
      const BadLine& bad = rows.bad().front();
      const std::string_view text(reinterpret_cast<const char*>(piece.text.data()) + bad.begin, bad.length);
      throw Error(ErrorKind::input, describe_bad_line(source.name(piece.input), line + bad.line + 1, bad, text));
    }
    line += rows.lines();
    if (options.normalized) scale_to_unit_length(rows);
    const ParsedRows& parsed = rows;
    for (size_t i = 0; i < rows.size(); ++i)
      visit({.label = rows.labelled(i) ? std::optional(rows.label(i)) : std::nullopt,
             .index = parsed.index(i),
             .value = parsed.value(i)});
    count += rows.size();
  }
  return count;
}

uint64_t for_each_row_of_store(const std::string& path, const ExampleOptions& options,
                               const std::function<void(const Example&)>& visit) {
  const Store store = Store::open(path);
  const bool scale = options.normalized && !store.info().normalized;
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
    Example example{.label = row.label, .index = row.index, .value = row.value};
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

uint64_t for_each_example(const std::vector<std::string>& inputs, const ExampleOptions& options,
                          const std::function<void(const Example&)>& visit) {
  const bool store = inputs.size() == 1 && is_store(inputs.front());
  const uint64_t rows =
      store ? for_each_row_of_store(inputs.front(), options, visit) : for_each_row_of_text(inputs, options, visit);
  if (rows == 0) fail(ErrorKind::input, "'{}' has no rows: only blank lines and comments", inputs.front());
  return rows;
}

}  // namespace linblock
