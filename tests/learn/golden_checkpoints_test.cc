// Checkpoints and a state, written once and kept: they can be read, and lead where they did then.
//
// A checkpoint belongs to one version of the program. To write these anew after a change of version, of a field, or of
// what the plan makes of the memory:
//   learn_tests --gtest_also_run_disabled_tests --gtest_filter='*WriteGoldenCheckpoints'
#include <gtest/gtest.h>

#include <regex>

#include "support/state.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

const std::string kGolden = std::string(LINBLOCK_GOLDEN) + "/checkpoints";

struct Case {
  std::string name;
  TrainOptions options;
  int blocks = 0;  // after which it was stopped, in the last group that it came to
  int groups = 1;  // that it came to
  std::string store = "store";
};

TrainOptions options_of(const AnyMethod& method) {
  TrainOptions options;
  options.loss = SquaredHinge{};
  options.bias = 1;
  options.positive = 1;
  options.solve = {.method = method, .tolerance = 1e-4, .max_passes = 1000, .chunks_per_block = 1};
  return options;
}

std::vector<Case> cases() {
  std::vector<Case> all = {{"dual", options_of(Dual{.inner = 1}), 5},
                           {"newton", options_of(Newton{}), 5},
                           {"trust-region", options_of(Newton{}), 5, 1, "wide"},
                           {"grouped", options_of(Dual{.inner = 1}), 4, 2}};
  all.back().options.positive.reset();
  all.back().options.calibrate = 0.2;
  return all;
}

// Weights as text that keeps their bits, one per line.
std::string text_of_weights(const TrainReport& report) {
  std::string text;
  const auto add = [&](const auto& weights) {
    for (const auto weight : weights) text += fmt::format("{:a}\n", double{weight});
  };
  add(report.model.weights);
  std::vector<float> column(report.columns.rows());
  for (size_t i = 0; i < report.columns.size(); ++i) {
    report.columns.read(i, 0, column);
    add(column);
  }
  return text;
}

uint64_t memory_of(const std::string& golden) { return std::stoull(read_file(golden + "/memory")); }

class GoldenCheckpoints : public testing::Test {
 protected:
  TrainReport trained(const Case& which, const std::string& store, uint64_t memory_bytes, const std::string& checkpoint,
                      int groups = 1000, int blocks = 0) {
    TrainOptions options = which.options;
    options.inputs = {store};
    std::atomic<bool> stop = false;
    Context context{.memory_bytes = memory_bytes, .stop = &stop};
    context.checkpoint.path = checkpoint;
    TrainObserver observer;
    observer.say = [&](const std::string& sentence) { said_ += sentence + "\n"; };
    observer.plan = [&](const Plan&) { --groups; };
    observer.block = [&](const BlockReport&) {
      if (groups <= 0 && --blocks == 0) stop = true;
    };
    return train(options, context, observer, false);
  }

  const Folder folder_;
  std::string said_;
};

TEST_F(GoldenCheckpoints, AreResumedToTheModelOfThen) {
  std::filesystem::copy(kGolden, folder_ / "golden", std::filesystem::copy_options::recursive);
  for (const Case& which : cases()) {
    const std::string golden = folder_ / "golden/" + which.name;
    said_.clear();
    const TrainReport report = trained(which, folder_ / "golden/" + which.store, memory_of(golden), golden + "/STATE");
    EXPECT_TRUE(contains(said_, "resuming from the checkpoint")) << which.name << ": " << said_;
    EXPECT_EQ(text_of_weights(report), read_file(golden + "/weights")) << which.name;
  }
}

// As docs/format.md spells it.
std::string documented_name(std::string name) {
  name = std::regex_replace(name, std::regex("\\.[0-9]+"), ".N");
  name = std::regex_replace(name, std::regex("^summary\\.plan\\."), "plan.");
  name = std::regex_replace(name, std::regex("(evaluation\\.accumulator\\.N\\.sums|sample\\.cache)\\..*"), "$1...");
  name = std::regex_replace(name, std::regex("sample\\.known\\.[a-z_]+$"), "sample.known.X");
  return std::regex_replace(name, std::regex("totals\\.(alphas|squares|saved_losses\\.sum)\\.[a-z]+$"), "totals.X.sum");
}

TEST_F(GoldenCheckpoints, HaveOnlyFieldsThatAreInTheDocumentation) {
  const std::string text = read_file(std::string(LINBLOCK_GOLDEN) + "/../../docs/format.md");
  size_t fields = 0;
  for (const char* file : {"dual/STATE", "newton/STATE", "trust-region/STATE", "grouped/STATE", "grouped/STATE.stages",
                           "grouped/STATE.column-0", "model.state"}) {
    for (const std::string& name : SnapshotReader(kGolden + "/" + file).names()) {
      EXPECT_TRUE(contains(text, "`" + documented_name(name) + "`")) << file << ": " << name;
      ++fields;
    }
  }
  EXPECT_GT(fields, 100U);
}

class GoldenState : public State {
 protected:
  static TrainOptions options() {
    TrainOptions options = options_of(Dual{.inner = 1});
    options.inputs = {kGolden + "/store"};
    return options;
  }
};

TEST_F(GoldenState, IsWhatAWarmStartBeginsWith) {
  const TrainOptions golden = options();
  const Store store = Store::open(kGolden + "/store");
  const Problem problem = make_problem(store, golden, choose_classes(store.info(), golden));
  const WarmStart start = warm_start(state_path(kGolden + "/model"), golden, problem, "", {});
  EXPECT_EQ(start.known_rows, store.info().rows);
  EXPECT_EQ(start.new_rows, 0U);
  ASSERT_EQ(start.solutions.size(), 1U);
  std::string weights;
  for (const float weight : start.solutions[0].weights) weights += fmt::format("{:a}\n", double{weight});
  EXPECT_EQ(weights, read_file(kGolden + "/model.weights"));
  options_ = golden;
  const TrainReport cold = trained();
  options_.warm = kGolden + "/model";
  EXPECT_LT(trained().summary.passes, cold.summary.passes);
}

// Stops a run in each case, and writes down where it would have ended.
TEST_F(GoldenCheckpoints, DISABLED_WriteGoldenCheckpoints) {
  std::filesystem::remove_all(kGolden);
  std::filesystem::create_directories(kGolden);
  std::vector<OwnedRow> rows = class_rows(120, 12, 3, 1);
  pack_rows(rows, kGolden + "/store", small_options());
  // With so many features newton has its trust region.
  rows[0].index.push_back(3000);
  rows[0].value.push_back(0.5F);
  pack_rows(rows, kGolden + "/wide", small_options());
  for (const char* name : {"/store", "/wide"}) std::filesystem::remove(kGolden + name + ".svm");
  for (const Case& which : cases()) {
    const std::string golden = kGolden + "/" + which.name;
    const std::string store = kGolden + "/" + which.store;
    std::filesystem::create_directories(golden);
    const Store opened = Store::open(store);
    const Problem problem = make_problem(opened, which.options, choose_classes(opened.info(), which.options));
    const uint64_t memory =
        which.groups == 1 ? uint64_t{1} << 26 : memory_for_tasks(problem, which.options.solve, 1, golden + "/STATE");
    write_file(golden + "/memory", fmt::format("{}\n", memory));
    EXPECT_THAT([&] { trained(which, store, memory, golden + "/STATE", which.groups, which.blocks); },
                fails_with(ErrorKind::interrupted, "resumes from here"));
    write_file(golden + "/weights", text_of_weights(trained(which, store, memory, folder_ / "STATE")));
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) std::filesystem::remove(entry.path());
  }
  TrainOptions options = options_of(Dual{.inner = 1});
  options.inputs = {kGolden + "/store"};
  options.keep_state = state_path(kGolden + "/model");
  train(options, {}, {}, false);
  options.keep_state.clear();
  const Store opened = Store::open(kGolden + "/store");
  const Problem problem = make_problem(opened, options, choose_classes(opened.info(), options));
  std::string weights;
  const WarmStart start = warm_start(state_path(kGolden + "/model"), options, problem, "", {});
  for (const float weight : start.solutions[0].weights) weights += fmt::format("{:a}\n", double{weight});
  write_file(kGolden + "/model.weights", weights);
}

}  // namespace
}  // namespace linblock
