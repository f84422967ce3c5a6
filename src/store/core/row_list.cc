#include "store/core/row_list.h"

#include <charconv>

#include "base/error.h"
#include "store/text/line_reader.h"

namespace linblock {

namespace {

std::optional<uint64_t> read_id(std::string_view text) {
  uint64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return id;
}

}  // namespace

std::optional<RowRange> RowRange::read(std::string_view text) {
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) return {};
  const std::optional<uint64_t> first = read_id(text.substr(0, dash));
  const std::optional<uint64_t> last = read_id(text.substr(dash + 1));
  if (!first || !last || *last < *first) return {};
  return RowRange{.first = *first, .last = *last};
}

std::optional<RowRanges> RowRanges::read(std::string_view text) {
  RowRanges all;
  while (true) {
    const size_t comma = text.find(',');
    const std::optional<RowRange> range = RowRange::read(text.substr(0, comma));
    if (!range) return {};
    all.ranges.push_back(*range);
    if (comma == std::string_view::npos) return all;
    text.remove_prefix(comma + 1);
  }
}

std::string RowRanges::show() const {
  std::string text;
  for (const RowRange& range : ranges) text += fmt::format("{}{}-{}", text.empty() ? "" : ",", range.first, range.last);
  return text;
}

RowList read_row_list(const std::string& path) {
  LineReader lines(path, "row id");
  RowList rows{.name = path};
  std::string_view line;
  while (lines.next(line)) {
    line = line.substr(0, line.find('#'));
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    if (line.empty()) continue;
    if (const std::optional<uint64_t> id = read_id(line)) {
      rows.ids.push_back(*id);
      rows.lines.push_back(lines.number());
    } else if (std::optional<RowRange> range = RowRange::read(line)) {
      range->line = lines.number();
      rows.ranges.push_back(*range);
    } else {
      fail(ErrorKind::input,
           "{}:{}:1: '{}' is not a row id, a whole number from 0 up, nor a range such as 100-200; nothing was removed",
           path, lines.number(), line.substr(0, 40));
    }
  }
  if (rows.ids.empty() && rows.ranges.empty())
    fail(ErrorKind::input, "'{}' lists no rows: one row id or range a line is expected", path);
  return rows;
}

}  // namespace linblock
