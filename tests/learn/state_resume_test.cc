// A warm run that is stopped and taken up again, and states whose duals are in a file.
#include <gtest/gtest.h>

#include "support/state.h"
#include "support/tight_memory.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

// So little memory that duals travel in a file.
class StateInAFile : public State {
 protected:
  void SetUp() override {
    StoreWriter writer(store_);
    writer.begin({.buckets = 60, .chunk_bytes = 4096});
    for (const OwnedRow& row : class_rows(4000, 3, 2, 1)) writer.add(row.view());
    writer.commit();
    options_.inputs = {store_};
    options_.solve = {.method = Dual{.inner = 1}, .tolerance = 1e-3, .max_passes = 20000};
    next_id_ = 4000;
    context_.checkpoint.path = folder_ / "STATE";
    set_memory();
  }
  void set_memory() {
    const Store store = Store::open(store_);
    const Problem problem = make_problem(store, options_, choose_classes(store.info(), options_));
    context_.memory_bytes = least_memory_where(problem, Dual{.inner = 1}, context_.checkpoint.path,
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
      context_, {StopAt::block, StopAt::reading, StopAt::pass, StopAt::block},
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
  const int stops = with_stops(
      context, {StopAt::block, StopAt::reading, StopAt::pass}, [&](const Context& life, const TrainObserver& observer) {
        EXPECT_FALSE(std::filesystem::exists(folder_ / "parts.state")) << "kept before the run has ended well";
        result = train(options_, life, observer, false);
      });
  EXPECT_GE(stops, 5);
  save_trained(folder_ / "parts", options_, result, 1);
  EXPECT_EQ(read_file(folder_ / "whole"), read_file(folder_ / "parts"));
  EXPECT_EQ(read_file(folder_ / "whole.state"), read_file(folder_ / "parts.state"));
}

}  // namespace
}  // namespace linblock
