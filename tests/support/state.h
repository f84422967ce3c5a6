// A store that changes, and a model of it that keeps its state and goes on from it.
#pragma once

#include <gtest/gtest.h>

#include "learn/state.h"
#include "learn/warm_start.h"
#include "store/core/remove.h"
#include "support/learning.h"

namespace linblock::test {

class State : public testing::Test {
 protected:
  void pack(const std::vector<OwnedRow>& rows) {
    std::filesystem::remove_all(store_);
    pack_rows(rows, store_, small_options());
    options_.inputs = {store_};
    next_id_ = rows.size();
  }
  void append(std::vector<OwnedRow> rows) {
    append_rows(rows, store_, small_options());
    next_id_ += rows.size();
  }
  void remove(uint64_t first, uint64_t step) {
    RowList list;
    for (uint64_t id = first; id < next_id_; id += step) list.ids.push_back(id);
    remove_rows(store_, list);
  }
  TrainReport trained(const Context& context = {}) {
    said_.clear();
    TrainObserver observer;
    observer.say = [&](const std::string& sentence) { said_ += sentence + "\n"; };
    return train(options_, context, observer, false);
  }
  // The state that is gone on from below.
  TrainReport keep(const Context& context = {}) {
    options_.keep_state = state_path(model_);
    TrainReport report = trained(context);
    options_.keep_state.clear();
    return report;
  }
  TrainReport warm(const Context& context = {}) {
    options_.warm = model_;
    TrainReport report = trained(context);
    options_.warm.clear();
    return report;
  }
  // Every weight that a warm start begins with is the sum of alpha y x over its own duals, and no dual is out of
  // bounds.
  WarmStart expect_weights_of_duals(uint64_t memory_bytes = uint64_t{1} << 30, const std::string& duals_file = "",
                                    const HeldOut& held_out = {}) {
    const Store store = Store::open(store_);
    Problem problem = make_problem(store, options_, choose_classes(store.info(), options_));
    for (Task& task : problem.tasks) task.held_out = held_out;
    std::vector<std::vector<double>> given(problem.tasks.size(), std::vector<double>(problem.weights(), 0));
    WarmStart start = warm_start(state_path(model_), options_, problem, duals_file, {.memory_bytes = memory_bytes},
                                 [&](size_t task, size_t begin, std::span<const double> v) {
                                   std::copy(v.begin(), v.end(), given[task].begin() + static_cast<ptrdiff_t>(begin));
                                 });
    for (size_t task = 0; task < problem.tasks.size(); ++task) {
      Solution& solution = start.solutions[task];
      std::vector<double> v(problem.weights(), 0);
      double largest = 0;
      Chunk chunk;
      RowBuffer buffer;
      for (uint32_t number = 0; number < store.chunks().size(); ++number) {
        store.read(number, chunk);
        solution.duals.fetch({&number, 1});
        for (size_t i = 0; i < chunk.rows(); ++i) {
          const double alpha = solution.duals.page(number)[i];
          EXPECT_TRUE(!chunk.removed(i) || alpha == 0) << "a removed row has a dual";
          EXPECT_TRUE(!held_out.holds(chunk.id(i)) || alpha == 0) << "a row that is held out has a dual";
          if (alpha == 0) continue;
          const Row row = chunk.row(i, buffer);
          const double sign = row.label == problem.tasks[task].positive ? 1 : -1;
          for (size_t k = 0; k < row.index.size(); ++k) v[row.index[k]] += sign * alpha * double{row.value[k]};
          if (problem.has_bias()) v.back() += sign * alpha * problem.bias;
        }
      }
      for (const double one : v) largest = std::max(largest, std::abs(one));
      for (size_t j = 0; j < v.size(); ++j) {
        EXPECT_NEAR(given[task][j], v[j], 1e-9 * std::max(1.0, largest)) << "task " << task << " weight " << j;
        EXPECT_EQ(solution.weights[j], static_cast<float>(given[task][j]));
      }
    }
    return start;
  }
  // The same optimum as from nothing, certified.
  void expect_like_cold() {
    const TrainReport cold = trained();
    const TrainReport again = warm();
    ASSERT_EQ(again.summary.certificates.size(), cold.summary.certificates.size());
    for (size_t i = 0; i < cold.summary.certificates.size(); ++i) {
      EXPECT_LE(again.summary.certificates[i].gap(), options_.solve.tolerance);
      EXPECT_NEAR(again.summary.certificates[i].primal, cold.summary.certificates[i].primal,
                  2 * options_.solve.tolerance * cold.summary.certificates[i].primal);
    }
    EXPECT_EQ(again.model.labels, cold.model.labels);
    EXPECT_EQ(again.model.features, cold.model.features);
  }

  const Folder folder_;
  const std::string store_ = folder_ / "store";
  const std::string model_ = folder_ / "model";
  TrainOptions options_{
      .pack = small_options(),
      .loss = Hinge{},
      .cost = 0.1,
      .solve = {.method = Dual{.inner = 1}, .tolerance = 1e-5, .max_passes = 50000, .chunks_per_block = 1}};
  uint64_t next_id_ = 0;
  std::string said_;
};

}  // namespace linblock::test
