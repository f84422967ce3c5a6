// The state beside a model: what a warm start takes over, and that it leads where a cold start leads.
#include "learn/state.h"

#include <gtest/gtest.h>

#include <set>

#include "store/compact.h"
#include "store/remove.h"
#include "support/learning.h"
#include "support/tight_memory.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

struct Setting {
  const char* name;
  const char* loss;
  int32_t classes;
  double bias;
};

std::ostream& operator<<(std::ostream& out, const Setting& setting) { return out << setting.name; }

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
    WarmStart start = warm_start(state_path(model_), options_, problem, duals_file, memory_bytes,
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
      .solve = {.method = DualBlock{.inner = 1}, .tolerance = 1e-5, .max_passes = 50000, .chunks_per_block = 1}};
  uint64_t next_id_ = 0;
  std::string said_;
};

class StateOf : public State, public testing::WithParamInterface<Setting> {
 protected:
  void SetUp() override {
    options_.loss = loss_of(GetParam().loss);
    options_.bias = GetParam().bias;
  }
  std::vector<OwnedRow> rows(size_t count, uint32_t seed, uint32_t features = 12) const {
    return class_rows(count, features, GetParam().classes, seed);
  }
};

TEST_P(StateOf, OfTheSameRowsIsTheModelItself) {
  pack(rows(500, 1));
  const TrainReport first = keep();
  const WarmStart start = expect_weights_of_duals();
  EXPECT_EQ(start.known_rows, 500U);
  EXPECT_EQ(start.new_rows, 0U);
  EXPECT_EQ(start.gone_rows, 0U);
  EXPECT_LT(warm().summary.passes, first.summary.passes);
  EXPECT_TRUE(contains(said_, "500 rows keep their duals, 0 are new, 0 are gone")) << said_;
}

TEST_P(StateOf, TakesInAppendedRows) {
  pack(rows(600, 2));
  keep();
  append(rows(60, 3));
  const WarmStart start = expect_weights_of_duals();
  EXPECT_EQ(start.known_rows, 600U);
  EXPECT_EQ(start.new_rows, 60U);
  expect_like_cold();
}

TEST_P(StateOf, LetsGoOfRemovedRows) {
  pack(rows(600, 4));
  keep();
  remove(3, 10);
  const WarmStart start = expect_weights_of_duals();
  EXPECT_EQ(start.known_rows, 540U);
  EXPECT_EQ(start.gone_rows, 60U);
  EXPECT_FALSE(start.recomputed);
  expect_like_cold();
}

TEST_P(StateOf, FindsRowsThatCompactHasMoved) {
  pack(rows(400, 5));
  append(rows(50, 6));
  keep();
  remove(7, 10);
  append(rows(30, 7));
  compact(store_, {});
  const WarmStart start = expect_weights_of_duals();
  EXPECT_EQ(start.known_rows, 450U - 45);
  EXPECT_EQ(start.new_rows, 30U);
  EXPECT_EQ(start.gone_rows, 45U);
  EXPECT_TRUE(start.recomputed);
  expect_like_cold();
}

TEST_P(StateOf, LetsGoOfADroppedSegment) {
  pack(rows(500, 8));
  append(rows(50, 9));
  keep();
  remove_segment(store_, 2);
  const WarmStart start = expect_weights_of_duals();
  EXPECT_EQ(start.known_rows, 500U);
  EXPECT_EQ(start.gone_rows, 50U);
  expect_like_cold();
}

TEST_P(StateOf, GrowsWithNewFeaturesAndShrinksWithThem) {
  pack(rows(400, 10, 8));
  keep();
  append(rows(60, 11, 40));
  expect_weights_of_duals();
  expect_weights_of_duals(64);  // one feature at a time
  expect_like_cold();
  keep();
  remove_segment(store_, 2);
  expect_weights_of_duals();
  expect_like_cold();
}

TEST_P(StateOf, AppendedAndRemovedAgainIsTheFirstModel) {
  pack(rows(400, 12));
  options_.solve.tolerance = 1e-7;
  const TrainReport first = keep();
  append(rows(40, 13));
  options_.keep_state = state_path(model_);
  warm();
  options_.keep_state.clear();
  RowList list;
  for (uint64_t id = 400; id < 440; ++id) list.ids.push_back(id);
  remove_rows(store_, list);
  expect_weights_of_duals();
  const TrainReport last = warm();
  for (size_t i = 0; i < first.summary.certificates.size(); ++i)
    EXPECT_NEAR(last.summary.certificates[i].primal, first.summary.certificates[i].primal,
                2e-7 * first.summary.certificates[i].primal);
}

// Where a gap is small, the last passes of both are the same work; and single runs differ by chance.
TEST_P(StateOf, NeedsFewerPassesThanFromNothing) {
  options_.solve = {.method = DualBlock{.inner = 1, .cache_fraction = 0}, .tolerance = 0.01};
  options_.cost = 0.05;
  for (const bool removing : {false, true}) {
    int cold_passes = 0;
    int warm_passes = 0;
    for (uint32_t seed = 1; seed <= 3; ++seed) {
      pack(rows(1000, seed, 60));
      keep();
      if (removing)
        remove(4, 10);
      else
        append(rows(100, 10 + seed, 60));
      cold_passes += trained().summary.passes;
      warm_passes += warm().summary.passes;
    }
    EXPECT_LT(warm_passes, cold_passes) << (removing ? "a tenth removed" : "a tenth appended");
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, StateOf,
                         testing::Values(Setting{"hinge", "hinge", 2, -1}, Setting{"hinge_bias", "hinge", 2, 1},
                                         Setting{"squared_classes", "squared-hinge", 3, 2},
                                         Setting{"logistic", "logistic", 2, -1}),
                         [](const auto& setting) { return std::string(setting.param.name); });

TEST_F(State, LearnsAClassThatIsNew) {
  pack(class_rows(400, 10, 3, 1));
  keep();
  std::vector<OwnedRow> more = class_rows(80, 10, 3, 2);
  for (size_t i = 0; i < more.size(); i += 2) more[i].label = 9;
  append(more);
  expect_weights_of_duals();
  expect_like_cold();
}

TEST_F(State, LearnsAThirdClass) {
  pack(class_rows(400, 10, 2, 3));
  keep();
  std::vector<OwnedRow> more = class_rows(60, 10, 2, 4);
  for (OwnedRow& row : more) row.label = -5;
  append(more);
  expect_weights_of_duals();
  expect_like_cold();
}

TEST_F(State, ForgetsAClassThatHasVanished) {
  std::vector<OwnedRow> rows = class_rows(400, 10, 4, 5);
  pack(rows);
  keep();
  for (const int32_t vanishing : {2, 4}) {
    RowList list;
    for (const OwnedRow& row : rows)
      if (row.label == vanishing) list.ids.push_back(row.id);
    remove_rows(store_, list);
    expect_weights_of_duals();
    expect_like_cold();
  }
}

TEST_F(State, KeepsRowsWithoutWeightOutOfIt) {
  std::vector<OwnedRow> rows = two_classes(300, 8, 6);
  for (size_t i = 0; i < rows.size(); ++i) rows[i].weight = i % 4 == 0 ? 0.0F : static_cast<float>(1 + i % 3);
  pack(rows);
  keep();
  remove(1, 9);
  std::vector<OwnedRow> more = two_classes(30, 8, 7);
  for (OwnedRow& row : more) row.weight = 0.5F;
  append(more);
  expect_weights_of_duals();
  expect_like_cold();
}

TEST_F(State, RowsThatAreHeldOutNowLoseTheirDuals) {
  pack(two_classes(400, 8, 21));
  keep();
  const HeldOut held_out{.seed = 1, .parts = 4, .first = 0, .last = 1};
  expect_weights_of_duals(uint64_t{1} << 30, "", held_out);
  remove(2, 9);
  expect_weights_of_duals(uint64_t{1} << 30, "", held_out);
  compact(store_, {});
  expect_weights_of_duals(uint64_t{1} << 30, "", held_out);
}

TEST_F(State, RowsRemovedBeforeItWasMadeStayOut) {
  pack(two_classes(400, 8, 8));
  remove(0, 7);
  keep();
  remove(3, 7);
  expect_weights_of_duals();
  append(two_classes(40, 8, 9));
  compact(store_, {});
  expect_weights_of_duals();
  expect_like_cold();
}

TEST_F(State, SeveralGroupsOfTasksAreOneState) {
  std::vector<OwnedRow> rows = class_rows(300, 8, 5, 10);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].index.push_back(static_cast<uint32_t>(100'000 + 10 * i));
    rows[i].value.push_back(0.2F);
  }
  pack(rows);
  options_.solve.tolerance = 1e-4;
  const Store store = Store::open(store_);
  const Problem problem = make_problem(store, options_, choose_classes(store.info(), options_));
  Context context;
  context.checkpoint.path = folder_ / "STATE";
  context.memory_bytes = memory_for_tasks(problem, options_.solve, 2, context.checkpoint.path);
  EXPECT_GT(keep(context).groups, 2U);
  std::filesystem::remove(folder_ / "STATE.stages");
  expect_weights_of_duals(context.memory_bytes);
  remove(0, 10);
  expect_weights_of_duals(context.memory_bytes);
  expect_like_cold();
  const TrainReport grouped = warm(context);
  EXPECT_GT(grouped.groups, 2U);
  EXPECT_LE(grouped.summary.largest_gap(), options_.solve.tolerance);
}

// So little memory that duals travel in a file.
class StateInAFile : public State {
 protected:
  void SetUp() override {
    StoreWriter writer(store_);
    writer.begin({.buckets = 60, .chunk_bytes = 4096});
    for (const OwnedRow& row : class_rows(4000, 3, 2, 1)) writer.add(row.view());
    writer.commit();
    options_.inputs = {store_};
    options_.solve = {.method = DualBlock{.inner = 1}, .tolerance = 1e-3, .max_passes = 20000};
    next_id_ = 4000;
    context_.checkpoint.path = folder_ / "STATE";
    set_memory();
  }
  void set_memory() {
    const Store store = Store::open(store_);
    const Problem problem = make_problem(store, options_, choose_classes(store.info(), options_));
    context_.memory_bytes = least_memory_where(problem, DualBlock{.inner = 1}, context_.checkpoint.path,
                                               [](const Plan& plan) { return plan.tasks > 0; });
  }
  void forget() {
    for (const std::string& name : names_in(folder_.path()))
      if (name.starts_with("STATE")) std::filesystem::remove(folder_ / name);
  }
  TrainReport checked(TrainReport report) {
    EXPECT_TRUE(report.summary.plan.duals_in_file) << report.summary.plan.describe();
    return report;
  }
  Context context_;
};

TEST_F(StateInAFile, IsTheSameStateAndTheSameStart) {
  checked(keep(context_));
  forget();
  remove(5, 10);
  append(class_rows(300, 3, 2, 2));
  const WarmStart start = expect_weights_of_duals(uint64_t{1} << 30, folder_ / "duals");
  EXPECT_EQ(start.known_rows, 3600U);
  set_memory();
  const TrainReport again = checked(warm(context_));
  EXPECT_LE(again.summary.largest_gap(), options_.solve.tolerance);
  const TrainReport cold = trained();
  EXPECT_NEAR(again.summary.certificates[0].primal, cold.summary.certificates[0].primal,
              2e-3 * cold.summary.certificates[0].primal);
}

TEST_F(StateInAFile, StoppedAnywhereAWarmRunEndsWithTheSameBits) {
  checked(keep(context_));
  forget();
  std::vector<OwnedRow> more = class_rows(300, 3, 2, 2);
  for (size_t i = 0; i < more.size(); i += 3) more[i].label = 7;  // a task that begins with nothing
  append(more);
  set_memory();
  options_.warm = model_;
  TrainReport whole = checked(train(options_, context_, {}, false));
  forget();
  TrainReport result;
  with_stops(
      context_, {StopAt::block, StopAt::certificate, StopAt::pass, StopAt::block},
      [&](const Context& life, const TrainObserver& observer) { result = train(options_, life, observer, false); });
  save_trained(folder_ / "whole", options_, whole, 1);
  save_trained(folder_ / "parts", options_, result, 1);
  EXPECT_EQ(read_file(folder_ / "whole"), read_file(folder_ / "parts"));
}

TEST_F(State, StoppedAnywhereAWarmRunEndsWithTheSameBitsAndKeepsTheSameState) {
  pack(class_rows(400, 10, 3, 11));
  keep();
  append(class_rows(60, 10, 3, 12));
  options_.warm = model_;
  options_.keep_state = folder_ / "whole.state";
  TrainReport whole = trained();
  save_trained(folder_ / "whole", options_, whole, 1);
  EXPECT_EQ(names_in(folder_.path()).size(), 7U)
      << "no parts of the state are left: " << testing::PrintToString(names_in(folder_.path()));
  options_.keep_state = folder_ / "parts.state";
  Context context;
  context.checkpoint.path = folder_ / "STATE";
  TrainReport result;
  const int stops = with_stops(context, {StopAt::block, StopAt::certificate, StopAt::pass},
                               [&](const Context& life, const TrainObserver& observer) {
                                 EXPECT_FALSE(std::filesystem::exists(folder_ / "parts.state"))
                                     << "kept before the run has ended well";
                                 result = train(options_, life, observer, false);
                               });
  EXPECT_GE(stops, 5);
  save_trained(folder_ / "parts", options_, result, 1);
  EXPECT_EQ(read_file(folder_ / "whole"), read_file(folder_ / "parts"));
  EXPECT_EQ(read_file(folder_ / "whole.state"), read_file(folder_ / "parts.state"));
}

TEST_F(State, OfPegasosIsItsWeightsAndSteps) {
  pack(two_classes(400, 10, 13));
  options_.solve = {.method = Pegasos{}, .max_passes = 5};
  const TrainReport first = keep();
  append(two_classes(40, 20, 14));
  const Store store = Store::open(store_);
  const Problem problem = make_problem(store, options_, choose_classes(store.info(), options_));
  const WarmStart start = warm_start(state_path(model_), options_, problem, "", uint64_t{1} << 30);
  EXPECT_EQ(start.solutions[0].steps, 5U * 400);
  EXPECT_EQ(start.solutions[0].weights.size(), problem.weights());
  std::vector<float> weights = start.solutions[0].weights;
  sort_by_index(store, weights);
  weights.resize(first.model.weights.size());
  EXPECT_EQ(weights, first.model.weights);
  // The objective after one more pass is near that of many, and far from that of a first pass.
  options_.solve.max_passes = 1;
  const double cold = trained().summary.certificates[0].primal;
  const double again = warm().summary.certificates[0].primal;
  EXPECT_LT(again, cold);
  EXPECT_TRUE(contains(said_, "2000 steps")) << said_;
}

TEST_F(State, OfOtherOptionsOrAnotherStoreIsRefusedWithWhatDiffers) {
  pack(two_classes(200, 6, 15));
  keep();
  const TrainOptions same = options_;
  const auto refused = [&](const std::string& words) {
    expect_error(ErrorKind::usage, {"does not belong to this store and these options", words}, [&] { warm(); });
    options_ = same;
  };
  options_.cost = 3;
  refused("cost: 0.1 then, 3 now");
  options_.loss = Logistic{};
  refused("loss: hinge then, logistic now");
  options_.bias = 1;
  refused("bias: -1 then, 1 now");
  options_.class_weights = {{1, 2.0}};
  refused("class weights: none then,");
  options_.solve.method = Pegasos{};
  refused("solver: dual then, pegasos now");
  pack(two_classes(200, 6, 16));
  refused("store: ");
}

TEST_F(State, ThatIsMissingOrDamagedIsRefused) {
  pack(two_classes(200, 6, 17));
  expect_error(ErrorKind::input, {"there is no", "model.state", "--keep-state"}, [&] { warm(); });
  options_.warm.clear();
  keep();
  const std::string good = read_file(state_path(model_));
  for (const size_t size : {size_t{0}, size_t{5}, good.size() / 3, good.size() - 1}) {
    write_file(state_path(model_), good.substr(0, size));
    expect_error(ErrorKind::damaged, {"model.state"}, [&] { warm(); });
  }
  for (size_t at = 3; at < good.size(); at += good.size() / 23) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    write_file(state_path(model_), bad);
    expect_error(ErrorKind::damaged, {"model.state"}, [&] { warm(); });
  }
  write_file(state_path(model_), good);
  EXPECT_NO_THROW(warm());
}

TEST_F(State, IsNotTouchedByARunThatFails) {
  pack(two_classes(200, 6, 18));
  keep();
  const std::string good = read_file(state_path(model_));
  append(two_classes(20, 6, 19));
  options_.keep_state = state_path(model_);
  options_.warm = model_;
  const std::atomic<bool> stop = true;
  Context context;
  context.checkpoint.path = folder_ / "STATE";
  context.stop = &stop;
  expect_error(ErrorKind::interrupted, {}, [&] { train(options_, context, {}, false); });
  EXPECT_EQ(read_file(state_path(model_)), good);
}

// What a run of another solver has left in the same folder is not taken for a part of this one's state.
TEST_F(State, IsNotMixedWithWhatAnotherSolverHasLeft) {
  pack(two_classes(200, 6, 20));
  Context context;
  context.checkpoint.path = folder_ / "STATE";
  const SolveOptions solve = options_.solve;
  options_.solve = {.method = Pegasos{}, .max_passes = 2};
  keep(context);
  options_.solve = solve;
  options_.fresh = true;
  keep(context);
  options_.fresh = false;
  EXPECT_EQ(expect_weights_of_duals().known_rows, 200U);
}

}  // namespace
}  // namespace linblock
