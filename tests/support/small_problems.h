// Small problems for solver tests: data, its store, and the same rows for the reference solver.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "objective/problem.h"
#include "store/core/store_writer.h"
#include "support/folder.h"
#include "support/reference.h"
#include "support/rows.h"

namespace linblock::test {

struct Data {
  std::vector<OwnedRow> rows;
  uint32_t features = 0;
};

inline Data make_data(size_t rows, uint32_t features, uint32_t seed, double share = 0.6) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<double> unit;
  Data data;
  data.features = features;
  std::vector<float> truth(features);
  for (float& weight : truth) weight = normal(random);
  for (size_t i = 0; i < rows; ++i) {
    OwnedRow row;
    double score = 0.5 * normal(random);
    for (uint32_t j = 0; j < features; ++j) {
      if (unit(random) > share) continue;
      row.index.push_back(j + 1);
      row.value.push_back(normal(random));
      score += row.value.back() * truth[j];
    }
    row.label = score > 0 ? 1 : -1;
    data.rows.push_back(row);
  }
  data.rows[0].label = 1;
  data.rows[1].label = -1;
  return data;
}

// Labels from 1 to `classes`, each of some row: the class whose own direction, with noise, fits the row best.
inline Data make_classes(size_t rows, uint32_t features, int32_t classes, uint32_t seed) {
  Data data = make_data(rows, features, seed);
  std::mt19937 random(seed + 1000);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> truth(static_cast<size_t>(classes), std::vector<float>(features));
  for (auto& direction : truth)
    for (float& weight : direction) weight = normal(random);
  for (size_t i = 0; i < rows; ++i) {
    OwnedRow& row = data.rows[i];
    float best = -std::numeric_limits<float>::infinity();
    for (int32_t label = 1; label <= classes; ++label) {
      float score = normal(random);
      for (size_t k = 0; k < row.index.size(); ++k)
        score += row.value[k] * truth[static_cast<size_t>(label) - 1][row.index[k] - 1];
      if (score <= best) continue;
      best = score;
      row.label = label;
    }
    if (i < static_cast<size_t>(classes)) row.label = static_cast<int32_t>(i) + 1;
  }
  return data;
}

// rows_per_chunk 1, 7 or all: what a block can be made of. The smallest chunk is 4 KB, so rows are cut by hand through
// segments: one append for each chunk.
inline Store write_store(const Folder& folder, const Data& data, size_t rows_per_chunk) {
  const std::string path = folder / "store";
  size_t next = 0;
  while (next < data.rows.size()) {
    std::unique_ptr<StoreWriter> writer;
    if (next == 0) {
      writer = std::make_unique<StoreWriter>(path);
      writer->begin({.shuffle = false});
    } else {
      writer = StoreWriter::append_to(path);
    }
    for (size_t i = 0; i < rows_per_chunk && next < data.rows.size(); ++i) writer->add(data.rows[next++].view());
    writer->commit();
  }
  return Store::open(path);
}

inline std::vector<DenseRow> dense(const Data& data, double cost, double bias,
                                   const std::map<int32_t, double>& weights = {}, int32_t positive = 1) {
  std::vector<DenseRow> rows;
  for (const OwnedRow& row : data.rows) {
    DenseRow out{.x = std::vector<double>(data.features, 0.0),
                 .y = row.label == positive ? 1.0 : -1.0,
                 .cost = cost * row.weight};
    if (const auto found = weights.find(row.label); found != weights.end()) out.cost *= found->second;
    for (size_t k = 0; k < row.index.size(); ++k) out.x[row.index[k] - 1] = row.value[k];
    if (bias >= 0) out.x.push_back(bias);
    rows.push_back(out);
  }
  return rows;
}

inline Problem problem_for(const Store& store, const std::string& loss, double cost, double bias = -1) {
  return {.store = &store, .tasks = {{.positive = 1, .cost = cost}}, .loss = loss_of(loss), .bias = bias};
}

// Every class against the rest; the costs differ, so that some tasks are done long before others.
inline Problem tasks_for(const Store& store, const std::string& loss, std::vector<double> costs, double bias = -1) {
  Problem problem{.store = &store, .loss = loss_of(loss), .bias = bias};
  int32_t label = 0;
  for (const double cost : costs) problem.tasks.push_back({.positive = ++label, .cost = cost});
  return problem;
}

inline Problem only_task(Problem problem, size_t number) {
  problem.tasks = {problem.tasks.at(number)};
  return problem;
}

}  // namespace linblock::test
