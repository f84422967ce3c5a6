// Dual values of an earlier run: a method that minimizes over the weights alone begins with them, where the problem is
// the same in everything, and nowhere else.
#include "learn/dual_bounds.h"

#include <gtest/gtest.h>

#include "learn/start_weights.h"
#include "store/core/remove.h"
#include "support/learning.h"
#include "support/memory_folder.h"
#include "support/models.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

class KnownDuals : public testing::Test {
 protected:
  void SetUp() override {
    pack_rows(class_rows(400, 30, 3, 5), store_, small_options());
    options_.inputs = {store_};
  }

  TrainReport saved(const std::string& name) {
    TrainReport report = train(options_, {}, {}, false);
    save_trained(folder_ / name, options_, report, 1);
    return report;
  }
  // One pass from the weights and the dual values of that model.
  TrainReport one_pass_from(const std::string& name, const AnyMethod& method) {
    TrainOptions options = options_;
    options.solve.method = method;
    options.solve.max_passes = 1;
    options.solve.tolerance = 1e-9;
    options.warm = name.empty() ? "" : folder_ / name;
    return train(options, {}, {}, false);
  }
  // Of the first class.
  bool is_taken_over(const Problem& problem) const {
    const StartWeights start = start_weights(folder_ / "model", problem);
    return std::isfinite(start.solutions.front().known_dual);
  }
  Problem problem_of(const Store& store) const {
    return make_problem(store, options_, choose_classes(store.info(), options_));
  }

  const MemoryFolder folder_;
  const std::string store_ = folder_ / "store";
  TrainOptions options_{.solve = {.tolerance = 1e-4, .max_passes = 20000}};
};

TEST_F(KnownDuals, CountForAnotherMethodOnTheSameProblem) {
  for (const char* loss : {"squared-hinge", "logistic"}) {
    options_.loss = loss_of(loss);
    const TrainReport known = saved("model");
    for (const AnyMethod& method : {AnyMethod(Newton{}), AnyMethod(Primal{}), AnyMethod(Cmls{})}) {
      if (!supports(method, options_.loss)) continue;
      const bool steps_conservatively = std::holds_alternative<Cmls>(method);  // away from the optimum too
      const TrainReport found = one_pass_from("model", method);
      for (size_t i = 0; i < 3; ++i) {
        const Certificate& before = known.summary.certificates[i];
        const Certificate& now = found.summary.certificates[i];
        EXPECT_GE(now.dual, before.dual - 1e-9 * before.dual) << loss << ", " << name_of(method);
        EXPECT_LE(now.dual, now.primal);
        EXPECT_LE(now.gap(), steps_conservatively ? 0.1 : 2e-4) << loss << ", " << name_of(method);
      }
      EXPECT_GT(one_pass_from("", method).summary.largest_gap(), 2e-4)
          << "one pass is not enough without them: " << loss << ", " << name_of(method);
    }
  }
}

TEST_F(KnownDuals, AreInTheModelWithTheirLabels) {
  const TrainReport report = saved("model");
  const Model model = load_model(folder_ / "model");
  ASSERT_EQ(model.bounds.by_label.size(), 3U);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(model.bounds.by_label.at(model.labels[i]), report.summary.certificates[i].dual);
}

TEST_F(KnownDuals, CountForOneOfTheClassesToo) {
  saved("model");
  options_.positive = 2;
  const Store store = Store::open(store_);
  EXPECT_TRUE(is_taken_over(problem_of(store)));
}

TEST_F(KnownDuals, AreNotTakenOverWhereAnythingIsDifferent) {
  options_.bias = 1;
  options_.loss = HuberHinge{.huber = 0.5};
  saved("model");
  const Store store = Store::open(store_);
  const Problem same = problem_of(store);
  ASSERT_TRUE(is_taken_over(same));
  const auto expect_other = [&](const char* what, const auto& change) {
    Problem problem = same;
    change(problem);
    EXPECT_FALSE(is_taken_over(problem)) << what;
  };
  const auto all_tasks = [](const auto& change) {
    return [change](Problem& problem) {
      for (Task& task : problem.tasks) change(task);
    };
  };
  expect_other("cost", all_tasks([](Task& task) { task.cost = std::nextafter(task.cost, 2); }));
  expect_other("label", [](Problem& problem) {
    problem.tasks = {{.positive = 1}};
    problem.tasks.front().positive = 9;
    problem.tasks.push_back({.positive = 1});  // which the model knows
  });
  expect_other("loss", [](Problem& problem) { problem.loss = SquaredHinge{}; });
  expect_other("option of the loss", [](Problem& problem) { problem.loss = HuberHinge{.huber = 0.25}; });
  expect_other("bias", [](Problem& problem) { problem.bias = 2; });
  expect_other("no bias", [](Problem& problem) { problem.bias = -1; });
  expect_other("free bias", [](Problem& problem) { problem.free_bias = true; });
  expect_other("class weight", [](Problem& problem) { problem.class_weights[2] = 2; });
  expect_other("truncated", [](Problem& problem) { problem.truncate = 1; });
  const HeldOut held = {.seed = 1, .parts = 10, .first = 0, .last = 1};
  expect_other("held out", all_tasks([&](Task& task) { task.held_out = held; }));
}

// Which rows those are depends on their ids, and the same rows may have others in another store.
TEST_F(KnownDuals, OfModelsThatHeldRowsOutAreNotKept) {
  options_.calibrate = 0.2;
  saved("model");
  EXPECT_TRUE(load_model(folder_ / "model").bounds.empty());
}

TEST_F(KnownDuals, AreTakenOverByTheSameRowsAlone) {
  saved("model");
  const auto taken = [&](const std::string& path) {
    const Store store = Store::open(path);
    return is_taken_over(problem_of(store));
  };
  EXPECT_TRUE(taken(store_));
  const std::string other = folder_ / "other";
  pack_rows(class_rows(400, 30, 3, 6), other, small_options());
  EXPECT_FALSE(taken(other));
  const std::string grown = folder_ / "grown";
  copy_store(store_, grown);
  EXPECT_TRUE(taken(grown)) << "a copy is the same store";
  append_rows({{400, 1, 1, {1}, {1}}}, grown, small_options());
  EXPECT_FALSE(taken(grown));
  remove_rows(grown, {.ids = {400}});
  EXPECT_TRUE(taken(grown)) << "its rows are the same again";
  PackOptions compressed = small_options();
  compressed.codec = "zstd";
  const std::string zipped = folder_ / "zipped";
  pack_rows(class_rows(400, 30, 3, 5), zipped, compressed);
  EXPECT_TRUE(taken(zipped)) << "the same rows in another codec: a model must not depend on it";
  remove_rows(store_, {.ids = {7}});
  EXPECT_FALSE(taken(store_));
}

TEST_F(KnownDuals, OfMethodsThatProveNothingAreNotKept) {
  options_.loss = Hinge{};
  options_.solve.method = Pegasos{};
  options_.solve.max_passes = 2;
  saved("model");
  EXPECT_TRUE(load_model(folder_ / "model").bounds.empty());
  options_.solve.method = Dual{};
  options_.truncate = 1;
  saved("model");
  EXPECT_TRUE(load_model(folder_ / "model").bounds.empty());
  options_.truncate.reset();
  options_.solve.method = CrammerSinger{};
  saved("model");
  EXPECT_TRUE(load_model(folder_ / "model").bounds.empty());
}

// MODEL.json has no checksum that protects it, and the model's own section has.
TEST_F(KnownDuals, AreNeverTakenFromBesideTheModel) {
  saved("model");
  const std::string whole = read_file(folder_ / "model");
  Model model = load_model(folder_ / "model");
  const DualBounds bounds = model.bounds;
  model.bounds = {};
  save_model(folder_ / "model", model, kPlainMetadata, 1);
  write_file(folder_ / "model.json", fmt::format("{{\n \"program\": \"linblock\", \"bounds\": {{\"problem\": \"x\", "
                                                 "\"duals\": [[1, {}]]}}}}",
                                                 bounds.by_label.at(1)));
  EXPECT_TRUE(load_model(folder_ / "model").bounds.empty());
  // One digit of a dual value.
  const size_t at = whole.find("\"duals\":[[1,") + 12;
  ASSERT_LT(at, whole.size());
  std::string changed = whole;
  changed[at] = changed[at] == '9' ? '8' : '9';
  write_file(folder_ / "model", changed);
  expect_error(ErrorKind::damaged, {"checksum does not match"}, [&] { load_model(folder_ / "model"); });
}

TEST_F(KnownDuals, SurviveStopsAnywhere) {
  saved("model");
  for (const AnyMethod& method : {AnyMethod(Newton{}), AnyMethod(Primal{})}) {
    options_.solve.method = method;
    options_.solve.tolerance = 1e-6;
    options_.solve.chunks_per_block = 1;
    options_.warm = folder_ / "model";
    const TrainReport whole = train(options_, {}, {}, false);
    Context context;
    context.checkpoint.path = folder_ / "STATE";
    TrainReport found;
    const int stops =
        with_stops(context, {StopAt::block, StopAt::pass}, [&](const Context& life, const TrainObserver& observer) {
          found = train(options_, life, observer, false);
          if (found.summary.termination == Termination::interrupted) fail(ErrorKind::interrupted, "stopped");
        });
    EXPECT_GE(stops, 2) << name_of(method);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(found.summary.certificates[i].primal, whole.summary.certificates[i].primal) << name_of(method);
      EXPECT_EQ(found.summary.certificates[i].dual, whole.summary.certificates[i].dual) << name_of(method);
    }
    std::filesystem::remove(folder_ / "STATE");
  }
}

}  // namespace
}  // namespace linblock
