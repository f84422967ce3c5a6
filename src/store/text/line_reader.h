// A text file with one short thing a line: a weight, a row id, an event. Plain or compressed; "-" is standard input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/text/text_source.h"

namespace linblock {

class LineReader {
 public:
  // `what` stands on a line, for messages.
  LineReader(const std::string& path, std::string what, size_t longest_line = size_t{64} << 10);

  // The next line that is not blank, without the blanks around it; false at the end.
  bool next(std::string_view& line);
  // Of the line that next() gave, from 1.
  uint64_t number() const { return number_; }

 private:
  std::string path_;
  std::string what_;
  TextSource source_;
  TextPiece piece_;
  size_t at_ = 0;
  uint64_t number_ = 0;
};

}  // namespace linblock
