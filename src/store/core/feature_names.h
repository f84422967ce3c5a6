// NAMES: the names of a store's features. They are written once, when the store is packed, and read in their order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
#include "store/core/manifest.h"

namespace linblock {

// What is wrong with the name of a feature, as the end of a sentence; empty: nothing.
std::string wrong_with_feature_name(std::string_view name);

// Told the names in the order of their features. `index` is the feature's index in the data.
using FeatureNameVisitor = std::function<void(uint64_t index, std::string_view name)>;

// From a text with one name a line, the first feature's on the first; an empty line: that feature has none. Throws
// ErrorKind::input for what is not such a text.
FeatureNamesInfo write_feature_names(const std::string& text, const std::string& to);

// The names of an open store; copies share the file. A piece of it is in memory at a time.
class FeatureNames {
 public:
  FeatureNames() = default;
  static FeatureNames open(const std::string& store, const StoreInfo& info);

  bool empty() const { return file_ == nullptr; }
  // Throws ErrorKind::damaged, at the latest when the last name was told.
  void each(const FeatureNameVisitor& visit) const;
  // Reads everything.
  void check() const;

 private:
  std::shared_ptr<const File> file_;
  FeatureNamesInfo info_;
  uint64_t index_base_ = 0;
};

}  // namespace linblock
