// Row weights: a text file with one number a row, beside the data.
#pragma once

#include <cstdint>
#include <string>

#include "store/text/line_reader.h"

namespace linblock {

class WeightReader {
 public:
  explicit WeightReader(const std::string& path);

  // Throws ErrorKind::input for a line that is no weight, and at the end of the file.
  float next();
  // Throws ErrorKind::input where weights are left over.
  void expect_end(uint64_t rows);

 private:
  std::string path_;
  LineReader lines_;
  uint64_t count_ = 0;
};

}  // namespace linblock
