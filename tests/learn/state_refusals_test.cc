// States that are not gone on from, and runs that leave them alone.
#include <gtest/gtest.h>

#include "support/state.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

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
  options_.class_weight.factors = {{1, 2.0}};
  refused("class weights: none then,");
  options_.solve.method = Pegasos{};
  refused("solver: dual then, pegasos now");
  pack(two_classes(200, 6, 16));
  refused("store: ");
}

TEST_F(State, ThatIsMissingOrDamagedIsRefused) {
  pack(two_classes(200, 6, 17));
  expect_error(ErrorKind::input, {"there is no", "model.state", "train that model with keep_state"}, [&] { warm(); });
  options_.warm.clear();
  keep();
  const std::string good = read_file(state_path(model_));
  for (const size_t size : {size_t{0}, size_t{5}, good.size() / 3, good.size() - 1}) {
    write_file(state_path(model_), good.substr(0, size));
    expect_error(ErrorKind::damaged, {"model.state", "(train that model with keep_state) (use solver newton"},
                 [&] { warm(); });
  }
  for (size_t at = 3; at < good.size(); at += good.size() / 23) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    write_file(state_path(model_), bad);
    expect_error(ErrorKind::damaged, {"model.state", "(train that model with keep_state) (use solver newton"},
                 [&] { warm(); });
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
