// The names of features in a model: lines between the weights and what follows them (docs/format.md, "Models"). Only
// features with a weight that is not 0 have one there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
#include "store/core/feature_names.h"

namespace linblock {

class Json;

// Tells the names again whenever it is called; null: there are none.
using FeatureNameSource = std::function<void(const FeatureNameVisitor&)>;

inline constexpr uint64_t kMostModelNames = uint64_t{1} << 20;
inline constexpr uint64_t kMostModelNameBytes = uint64_t{1} << 24;  // of the lines

// The lines of a model file.
struct ModelNames {
  uint64_t count = 0;
  uint64_t bytes = 0;

  bool empty() const { return count == 0; }
  bool fit() const { return count <= kMostModelNames && bytes <= kMostModelNameBytes; }
  Json json() const;
  // Throws JsonError for numbers that json() does not write.
  static ModelNames from(const Json& json);

  static std::string line(uint64_t index, std::string_view name);
  // Reads the lines a piece at a time. Throws ErrorKind::damaged for others than line() writes, with increasing
  // indices.
  void each(const File& file, uint64_t begin, const FeatureNameVisitor& visit) const;
  // The file stays open, and is what it was when it was opened.
  FeatureNameSource source(std::shared_ptr<const File> file, uint64_t begin) const;
};

}  // namespace linblock
