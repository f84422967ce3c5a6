#include "store/text/line_reader.h"

#include "base/error.h"

namespace linblock {

namespace {
constexpr size_t kPieceBytes = size_t{64} << 10;
}

LineReader::LineReader(const std::string& path, std::string what, size_t longest_line)
    : path_(path), what_(std::move(what)), source_({path}, kPieceBytes, longest_line) {}

bool LineReader::next(std::string_view& line) {
  while (true) {
    if (at_ == piece_.size) {
      if (!source_.next(piece_)) return false;
      if (piece_.too_long)
        fail(ErrorKind::input, "'{}' has a line ({}) that is no {}: one a line is expected", path_, number_ + 1, what_);
      at_ = 0;
    }
    const std::string_view rest(reinterpret_cast<const char*>(piece_.text.data()) + at_, piece_.size - at_);
    const size_t end = rest.find('\n');
    line = rest.substr(0, end);
    at_ += end + 1;
    ++number_;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    if (!line.empty()) return true;
  }
}

}  // namespace linblock
