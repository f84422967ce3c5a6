// Any bytes as svmlight text: rows that keep their promises, or bad lines with a place inside the text.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "store/chunk/format.h"
#include "store/text/svmlight.h"

#if defined(__has_feature) && __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace {

using namespace linblock;

void require(bool promise) {
  if (!promise) std::abort();
}

void check_rows(const ParsedRows& rows, const SvmlightOptions& options) {
  require(options.word_labels || rows.label_names().empty());
  for (size_t row = 0; row < rows.size(); ++row) {
    if (options.word_labels && rows.labeled(row)) {
      require(rows.label(row) >= 0 && static_cast<size_t>(rows.label(row)) < rows.label_names().size());
      require(wrong_with_label(rows.label_names()[static_cast<size_t>(rows.label(row))]).empty());
    }
    require(rows.index(row).size() == rows.value(row).size());
    uint64_t smallest_allowed = options.index_zero ? 0 : 1;
    for (const uint32_t index : rows.index(row)) {
      require(index >= smallest_allowed && index <= format::kLargestIndex);
      smallest_allowed = uint64_t{index} + 1;
    }
    for (const float value : rows.value(row)) require(std::isfinite(value));
  }
}

void check_bad_lines(const ParsedRows& rows, const SvmlightOptions& options, std::string_view text) {
  require(rows.bad().size() <= options.most_bad + 1);
  for (const BadLine& bad : rows.bad()) {
    require(bad.begin + bad.length < text.size());
    require(bad.column >= 1 && bad.column <= bad.length + 1);
    require(bad.line < rows.lines() && bad.rows_before <= rows.size() && !bad.reason.empty());
    const std::string_view line = text.substr(bad.begin, bad.length);
    require(line.find('\n') == std::string_view::npos);
    require(describe_bad_line("file", bad.line + 1, bad, line).back() == '^');
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Buffer text;
  static ParsedRows rows;
  ASAN_UNPOISON_MEMORY_REGION(text.data(), text.capacity());
  const bool ended = size == 0 || data[size - 1] == '\n';
  text.resize(size + (ended ? 0 : 1));
  std::copy(data, data + size, text.data());
  if (!ended) text.data()[size] = '\n';
  const size_t used = text.size() + Buffer::kSlack;
  ASAN_POISON_MEMORY_REGION(text.data() + used, text.capacity() - used);
  for (const SvmlightOptions& options :
       {SvmlightOptions{.index_zero = true, .most_bad = SIZE_MAX - 1}, SvmlightOptions{.index_zero = false},
        SvmlightOptions{.word_labels = true, .most_bad = SIZE_MAX - 1},
        SvmlightOptions{.label_optional = true, .word_labels = true}}) {
    parse_svmlight(text.span(), options, rows);
    check_rows(rows, options);
    check_bad_lines(rows, options, {reinterpret_cast<const char*>(text.data()), text.size()});
  }
  return 0;
}
