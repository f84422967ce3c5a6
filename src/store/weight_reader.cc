#include "store/weight_reader.h"

#include <charconv>
#include <cmath>

#include "base/error.h"

namespace linblock {

namespace {
constexpr size_t kPieceBytes = size_t{64} << 10;
}

WeightReader::WeightReader(const std::string& path) : path_(path), source_({path}, kPieceBytes, kPieceBytes) {}

float WeightReader::next() {
  std::string_view line;
  if (!next_line(line))
    fail(ErrorKind::input, "'{}' has {} weights, and the data has more rows: one number a row is expected", path_,
         count_);
  ++count_;
  double weight = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), weight);
  if (error != std::errc() || end != line.data() + line.size())
    fail(ErrorKind::input, "{}:{}:1: the weight '{}' is not a number", path_, line_, line.substr(0, 40));
  const auto rounded = static_cast<float>(weight);
  if (!(weight >= 0) || !std::isfinite(rounded))
    fail(ErrorKind::input, "{}:{}:1: the weight '{}' is not a number from 0 to 3.4e38", path_, line_, line);
  return rounded;
}

void WeightReader::expect_end(uint64_t rows) {
  std::string_view line;
  if (next_line(line))
    fail(ErrorKind::input, "'{}' has more weights than the {} rows of the data: one number a row is expected", path_,
         rows);
}

bool WeightReader::next_line(std::string_view& line) {
  while (true) {
    if (at_ == piece_.size) {
      if (!source_.next(piece_)) return false;
      if (piece_.too_long)
        fail(ErrorKind::input, "'{}' has a line that is no weight: one number a row is expected", path_);
      at_ = 0;
    }
    const std::string_view rest(reinterpret_cast<const char*>(piece_.text.data()) + at_, piece_.size - at_);
    const size_t end = rest.find('\n');
    line = rest.substr(0, end);
    at_ += end + 1;
    ++line_;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    if (!line.empty()) return true;
  }
}

}  // namespace linblock
