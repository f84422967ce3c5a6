// For tests of learning: data of several classes, folds as text, memory for so many tasks at a time, runs that are
// stopped again and again.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "learn/cross_validate.h"
#include "learn/train.h"
#include "solve/solve.h"
#include "support/errors.h"
#include "support/packing.h"
#include "support/small_problems.h"

namespace linblock::test {

// Labels 1 to `classes`, each row nearest to its class in a noisy way.
inline std::vector<OwnedRow> class_rows(size_t count, uint32_t features, int32_t classes, uint32_t seed,
                                        double noise = 0.5, uint64_t first_id = 0) {
  std::mt19937 truth_random(99);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> truth(static_cast<size_t>(classes), std::vector<float>(features));
  for (auto& weights : truth)
    for (float& weight : weights) weight = normal(truth_random);
  std::mt19937 random(seed);
  std::vector<OwnedRow> rows(count);
  for (size_t i = 0; i < count; ++i) {
    OwnedRow& row = rows[i];
    row.id = first_id + i;
    std::vector<double> scores(truth.size());
    for (uint32_t j = 0; j < features; ++j) {
      if (random() % 10 >= 6) continue;
      row.index.push_back(j + 1);
      row.value.push_back(normal(random));
      for (size_t c = 0; c < truth.size(); ++c) scores[c] += row.value.back() * truth[c][j];
    }
    for (double& score : scores) score += noise * std::sqrt(features) * normal(random);
    row.label = 1 + static_cast<int32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
  }
  for (int32_t c = 0; c < classes; ++c) rows[static_cast<size_t>(c)].label = c + 1;
  return rows;
}

inline std::vector<OwnedRow> two_classes(size_t count, uint32_t features, uint32_t seed, double noise = 0.5) {
  std::vector<OwnedRow> rows = class_rows(count, features, 2, seed, noise);
  for (OwnedRow& row : rows) row.label = row.label == 1 ? 1 : -1;
  return rows;
}

// Rows of fold `fold`, or all the others.
inline std::vector<OwnedRow> rows_of_fold(const std::vector<OwnedRow>& rows, uint64_t seed, uint32_t fold,
                                          uint32_t folds, bool held_out) {
  std::vector<OwnedRow> found;
  for (const OwnedRow& row : rows)
    if ((HeldOut::part_of(seed, row.id, folds) == fold) == held_out) found.push_back(row);
  return found;
}

// The most memory in which no more than `most` of the problem's tasks are solved together.
inline uint64_t memory_for_tasks(const Problem& problem, const SolveOptions& options, size_t most,
                                 const std::string& checkpoint, uint64_t reserved_bytes = 0) {
  uint64_t few = 0;
  uint64_t many = uint64_t{1} << 30;
  while (many - few > 512) {
    const uint64_t middle = few + (many - few) / 2;
    Context context{.memory_bytes = middle, .reserved_bytes = reserved_bytes};
    context.checkpoint.path = checkpoint;
    size_t at_once = 0;
    try {
      at_once = tasks_at_once(problem, options, context);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::memory) << error.what();
    }
    (at_once > most ? many : few) = middle;
  }
  return few;
}

// Where a life ends.
enum class StopAt { block, reading, pass };

// Runs `work(context, observer)` with a stop at the first such place until it ends by itself, which every fourth life
// may do; returns how often it was stopped. `places`: taken in turn.
template <typename Work>
int with_stops(Context context, const std::vector<StopAt>& places, Work&& work) {
  int stops = 0;
  for (int life = 0;; ++life) {
    if (life > 5000) throw std::runtime_error("it does not come any farther");
    std::atomic<bool> stop = false;
    context.stop = &stop;
    context.checkpoint.every_seconds = 0;
    const StopAt place = places[static_cast<size_t>(life) % places.size()];
    int left = life % 4 == 3 ? 7 : 1;
    const auto maybe = [&](StopAt here) {
      if (here == place && --left == 0) stop = true;
    };
    TrainObserver observer;
    observer.block = [&](const BlockReport&) { maybe(StopAt::block); };
    observer.reading = [&](std::string_view, double) { maybe(StopAt::reading); };
    observer.pass = [&](const PassReport&, std::optional<double>) { maybe(StopAt::pass); };
    try {
      work(context, observer);
      return stops;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::interrupted) throw;
    }
    ++stops;
  }
}

}  // namespace linblock::test
