// The svmlight parser: whole lines in, labels, indices and values out, and an exact place and reason for what is wrong.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "store/text/label_names.h"

namespace linblock {

// A line that was refused. Offsets and numbers are within the parsed text.
struct BadLine {
  uint64_t line = 0;  // 0-based
  size_t column = 0;  // 1-based
  size_t begin = 0;
  size_t length = 0;  // without the end of the line
  size_t rows_before = 0;
  std::string reason;  // what is wrong, and the remedy, as library text
};

// Rows side by side; its memory is used again for the next text.
class ParsedRows {
 public:
  size_t size() const { return rows_; }
  int32_t label(size_t row) const { return labels()[row]; }
  std::span<const uint32_t> index(size_t row) const { return {indices() + begin(row), end(row) - begin(row)}; }
  std::span<const float> value(size_t row) const { return {values() + begin(row), end(row) - begin(row)}; }
  std::span<float> value(size_t row) { return {values() + begin(row), end(row) - begin(row)}; }
  std::span<const uint32_t> all_indices() const { return {indices(), rows_ == 0 ? 0 : end(rows_ - 1)}; }

  // Where labels are words: a label is the number of its word here, by first appearance in this text.
  const LabelNames& label_names() const { return names_; }
  // Labels get the codes that these names have elsewhere: `codes`, by number here.
  void recode_labels(std::span<const int32_t> codes);

  uint64_t lines() const { return lines_; }
  bool labeled(size_t row) const {
    return unlabeled_.empty() || !std::binary_search(unlabeled_.begin(), unlabeled_.end(), row);
  }
  const std::vector<BadLine>& bad() const { return bad_; }

 private:
  friend class SvmlightParser;
  size_t begin(size_t row) const { return row == 0 ? 0 : end(row - 1); }
  size_t end(size_t row) const { return reinterpret_cast<const uint32_t*>(ends_.data())[row]; }
  const int32_t* labels() const { return reinterpret_cast<const int32_t*>(labels_.data()); }
  const uint32_t* indices() const { return reinterpret_cast<const uint32_t*>(indices_.data()); }
  const float* values() const { return reinterpret_cast<const float*>(values_.data()); }
  float* values() { return reinterpret_cast<float*>(values_.data()); }

  size_t rows_ = 0;
  uint64_t lines_ = 0;
  std::vector<size_t> unlabeled_;  // rows without a label, in order
  LabelNames names_;
  Buffer labels_;
  Buffer ends_;
  Buffer indices_;
  Buffer values_;
  std::vector<BadLine> bad_;
};

struct SvmlightOptions {
  bool index_zero = true;       // false: index 0 is an error, the data is numbered from 1
  bool label_optional = false;  // a line may begin with a feature; its label is then 0
  bool word_labels = false;     // labels are words, numbers too; their names are found in the rows
  size_t most_bad = 0;          // after more bad lines than this, the rest of the text is not looked at
};

// Whether the first row has a label that is a word, and not a number or a broken one. Nothing: there is no row.
std::optional<bool> has_word_labels(std::span<const unsigned char> text, const SvmlightOptions& options);

// `text` ends with a newline and may be read 64 bytes further (Buffer::kSlack).
void parse_svmlight(std::span<const unsigned char> text, const SvmlightOptions& options, ParsedRows& rows);

// "data.svm:12:7: reason", the line (a window of a long one) and a caret under the place.
std::string describe_bad_line(std::string_view file, uint64_t line, const BadLine& bad, std::string_view text);

}  // namespace linblock
