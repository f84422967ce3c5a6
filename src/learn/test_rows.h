// How many rows of some test data are classified rightly by weights that are still being trained. The rows are read
// once, before training, while the memory is free, and are written to a file by the store's feature numbers. So testing
// needs no memory of its own during training, and the plan of the training is the same without it. Text is not parsed
// again after each pass.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/fields.h"
#include "learn/prepare.h"
#include "learn/train.h"

namespace linblock {

class TestRows {
 public:
  // Files are named `path` and a word; they are in the directory of the checkpoint.
  TestRows(const TrainOptions& options, const Store& store, const Classes& classes, std::string path);
  // The file with the rows is gone when this is. What groups of tasks have left stays for a run that is resumed.
  ~TestRows();
  TestRows(const TestRows&) = delete;
  TestRows& operator=(const TestRows&) = delete;

  bool wanted() const { return !options_.test.empty(); }
  // Before anything else. A row without a label is ErrorKind::input.
  void read(const Context& context);
  // With weights for all tasks.
  TestResult test(const std::vector<std::span<const float>>& weights, std::optional<double> threshold = {}) const;
  // With weights for the next group of tasks, the first of which has number `first`. After the last group the result is
  // complete.
  void add(const std::vector<std::span<const float>>& weights, size_t first);
  TestResult result() const;

  void save(FieldWriter& to) const;
  void restore(FieldReader& from);

 private:
  class Writer;
  using Visitor = std::function<void(int32_t label, std::span<const double> decisions)>;

  void for_each(const std::vector<std::span<const float>>& weights, const Visitor& visit) const;
  std::string rows_path() const { return path_ + ".test"; }
  std::string best_path(size_t groups) const { return fmt::format("{}.best-{}", path_, groups); }

  const TrainOptions& options_;
  const Store& store_;
  const Classes& classes_;
  std::string path_;
  uint64_t rows_ = 0;
  double baseline_ = 0;
  uint64_t pieces_ = 0;  // of the file
  size_t groups_ = 0;    // of tasks, so far
};

}  // namespace linblock
