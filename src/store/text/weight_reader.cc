#include "store/text/weight_reader.h"

#include <charconv>
#include <cmath>

#include "base/error.h"

namespace linblock {

WeightReader::WeightReader(const std::string& path) : path_(path), lines_(path, "weight") {}

float WeightReader::next() {
  std::string_view line;
  if (!lines_.next(line))
    fail(ErrorKind::input, "'{}' has {} weights, and the data has more rows: one number a row is expected", path_,
         count_);
  ++count_;
  double weight = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), weight);
  if (error != std::errc() || end != line.data() + line.size())
    fail(ErrorKind::input, "{}:{}:1: the weight '{}' is not a number", path_, lines_.number(), line.substr(0, 40));
  const auto rounded = static_cast<float>(weight);
  if (!(weight >= 0) || !std::isfinite(rounded))
    fail(ErrorKind::input, "{}:{}:1: the weight '{}' is not a number from 0 to 3.4e38", path_, lines_.number(), line);
  return rounded;
}

void WeightReader::expect_end(uint64_t rows) {
  std::string_view line;
  if (lines_.next(line))
    fail(ErrorKind::input, "'{}' has more weights than the {} rows of the data: one number a row is expected", path_,
         rows);
}

}  // namespace linblock
