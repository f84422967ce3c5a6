// The weights of a model, a column for each classifier, in the order of original feature indices. In memory, or a group
// of them in a file where they do not all fit: then a model is written that was never in memory as a whole.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fields.h"
#include "base/team.h"
#include "store/core/store.h"

namespace linblock {

class ModelColumns {
 public:
  ModelColumns() = default;
  // Files are named `path` and a number; an empty path keeps columns in memory.
  explicit ModelColumns(std::string path) : path_(std::move(path)) {}

  size_t size() const { return columns_.size() + places_.size(); }
  // The next columns: weights by the store's feature numbers, and the bias behind them.
  void add(const Store& store, std::vector<std::vector<float>> group, const Team& team);
  // A group that an earlier run has put into its file.
  void add_from_file();
  // Weights of one column, from row `first` on; the bias is the last row.
  void read(size_t column, uint64_t first, std::span<float> out) const;
  // So many rows a column has.
  uint64_t rows() const;

 private:
  std::string next_file() const { return fmt::format("{}-{}", path_, files_.size()); }

  std::string path_;
  std::vector<std::vector<float>> columns_;
  std::vector<std::unique_ptr<FieldReader>> files_;  // one per group
  struct ModelColumn {
    const FieldReader* file = nullptr;
    std::string name = {};
    uint64_t rows = 0;
  };
  std::vector<ModelColumn> places_;
};

// In place, since a second copy may not fit: weights by feature number become weights by original index. `width`: so
// many of each feature, side by side.
void sort_by_index(const Store& store, std::vector<float>& weights, size_t width = 1);

}  // namespace linblock
