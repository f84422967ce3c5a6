// What the weights of models say: the largest of each class, and how far two models are from each other. Models are
// read row by row, so that they need not fit in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "learn/evaluate.h"
#include "learn/model.h"

namespace linblock {

struct FeatureWeight {
  uint64_t feature = 0;  // its index in the data
  double weight = 0;
  std::string name = {};  // empty: it has none
};

// One column of a model: decisions above 0 speak for `label`.
struct ColumnWeights {
  int32_t label = 0;
  std::vector<FeatureWeight> largest = {};  // by size, whatever the sign; equal sizes by feature
  uint64_t nonzeros = 0;                    // of all weights without the bias
  double norm = 0;                          // likewise
  double bias = 0;                          // what the constant feature adds to a decision
};

// `count`: how many of each column at most.
std::vector<ColumnWeights> largest_weights(ModelRows& rows, size_t count);

struct WeightChange {
  uint64_t feature = 0;
  double before = 0;
  double after = 0;
  std::string name = {};  // in the newer model, or else in the older one; empty: none

  double size() const;
};

struct ColumnDifference {
  int32_t label = 0;  // of the older model
  double cosine = 0;  // of the two columns without the bias; 1 where both are zero
  double norm_before = 0;
  double norm_after = 0;
  double bias_before = 0;
  double bias_after = 0;
  double threshold_before = 0;  // of the decision; of two columns, of their difference
  double threshold_after = 0;
  std::vector<WeightChange> largest = {};  // by how much they change
};

// By label: of two classes, models may have them in either order. Throws ErrorKind::input where the models tell other
// labels apart.
std::vector<ColumnDifference> difference_of(const std::string& before, const std::string& after, size_t count);

// Rows to which two models give other labels.
struct LabelChanges {
  uint64_t rows = 0;
  uint64_t changed = 0;
  uint64_t correct_before = 0;  // of rows with a label
  uint64_t correct_after = 0;
  uint64_t labeled = 0;
};

// Both models are held in memory. Throws ErrorKind::usage where they read rows in different ways.
LabelChanges label_changes(const std::string& before, const std::string& after, const std::vector<std::string>& inputs,
                           uint64_t memory_bytes, const ReadContext& context = {});

}  // namespace linblock
