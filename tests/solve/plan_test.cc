// The plan says what was asked for, fits in memory, and where it cannot, the refusal has the numbers.
#include <gtest/gtest.h>

#include "base/memory.h"
#include "base/random.h"
#include "support/errors.h"
#include "support/streamed.h"
#include "support/tight_memory.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

class Plans : public testing::Test {
 protected:
  static void SetUpTestSuite() { rows_ = new ManyChunks(24); }
  static void TearDownTestSuite() { delete rows_; }

  Plan plan(const AnyMethod& method, uint64_t memory_bytes, const std::string& checkpoint = "") const {
    return make_plan(problem_, method, context_with(memory_bytes, checkpoint));
  }
  uint64_t streaming() const { return streaming_memory(problem_); }

  static inline const ManyChunks* rows_ = nullptr;
  const Problem problem_ = problem_for(rows_->store, "hinge", 1, 1);
};

TEST_F(Plans, GiveKeptRowsTheShareThatWasAskedFor) {
  for (const Schedule schedule : {Schedule::recomposed, Schedule::fixed}) {
    for (const double share : {0.0, 0.3, 0.5, 0.6}) {
      const Plan found = plan(Dual{.schedule = schedule, .cache_fraction = share}, streaming());
      ASSERT_EQ(found.rows, RowsHeld::streamed);
      const auto both = static_cast<double>(found.window_bytes + found.cache_bytes);
      EXPECT_NEAR(static_cast<double>(found.cache_bytes), share * both, 2) << share;
    }
  }
}

TEST_F(Plans, LeaveTheWindowAFewChunksWhateverShareIsAskedFor) {
  const Plan found = plan(Dual{.cache_fraction = 0.999}, streaming());
  EXPECT_GE(found.window_bytes, 4 * uint64_t{12} << 10) << "a chunk of these takes three pages and more";
  EXPECT_GT(found.cache_bytes, 0U);
  EXPECT_EQ(found.window_bytes + found.cache_bytes, plan(Dual{.cache_fraction = 0}, streaming()).window_bytes);
}

TEST_F(Plans, KeepRowsOfRecomposedBlocksByThemselvesAndOfFixedOnesWhenAsked) {
  EXPECT_GT(plan(Dual{}, streaming()).cache_bytes, 0U);
  EXPECT_EQ(plan(Dual{.schedule = Schedule::fixed}, streaming()).cache_bytes, 0U);
  EXPECT_GT(plan(Dual{.schedule = Schedule::fixed, .cache_fraction = 0.5}, streaming()).cache_bytes, 0U);
}

TEST_F(Plans, KeepRowsWithoutMemoryOfTheirOwnWhereAllAreHere) {
  const uint64_t much = uint64_t{1} << 30;
  const Plan found = plan(Dual{}, much);
  EXPECT_EQ(found.rows, RowsHeld::decoded);
  EXPECT_GT(found.cache_bytes, 0U);
  EXPECT_LT(found.cache_bytes, found.window_bytes / 8);
  EXPECT_EQ(plan(Dual{.cache_fraction = 0}, much).cache_bytes, 0U);
}

TEST_F(Plans, KeepNoRowsForOtherMethods) {
  for (const AnyMethod& method : {AnyMethod(Pegasos{}), AnyMethod(Average{}), AnyMethod(Subsample{})})
    for (const uint64_t memory : {least_memory(problem_, Average{}) + (100 << 10), uint64_t{1} << 30})
      EXPECT_EQ(plan(method, memory).cache_bytes, 0U) << name_of(method);
}

TEST_F(Plans, TakeTheRoundsThatWereAskedForAndMoreWhereTheDiskIsSlow) {
  const Plan asked = plan(Dual{.inner = 7}, streaming());
  EXPECT_EQ(asked.inner, 7U);
  EXPECT_EQ(plan(Dual{}, streaming()).inner, 1U);
  EXPECT_EQ(plan(Dual{}, streaming()).idle, 0);
  const Plan slow = plan(Dual{.disk_rate = uint64_t{10} << 20}, streaming());
  EXPECT_GT(slow.inner, 1U);
  EXPECT_GT(slow.idle, 1);
  EXPECT_GT(plan(Dual{.disk_rate = uint64_t{1} << 20}, streaming()).idle, slow.idle);
  EXPECT_EQ(plan(Dual{.inner = 3, .disk_rate = 1}, streaming()).inner, 3U);
  EXPECT_EQ(plan(Dual{.disk_rate = 1}, uint64_t{1} << 30).inner, 1U) << "nothing is read";
}

TEST_F(Plans, PutDualsThatDoNotFitIntoAFileWhereThereIsACheckpoint) {
  const uint64_t memory = memory_without_duals(problem_);
  const Plan found = plan(Dual{}, memory, "somewhere");
  EXPECT_TRUE(found.duals_in_file);
  EXPECT_LT(found.bytes("duals"), 300 * Duals::kBytesPerRow);
  EXPECT_EQ(found.cache_bytes, 0U) << "rows are kept only beside their duals";
  EXPECT_FALSE(plan(Dual{}, uint64_t{1} << 30, "somewhere").duals_in_file);
  expect_error(ErrorKind::memory, {"duals of 300 rows 2.6 KB"}, [&] { plan(Dual{}, memory); });
}

TEST_F(Plans, KeepRowsOnlyBesideDualsInMemory) {
  for (const size_t rows_per_chunk : {20, 40, 60, 100}) {
    const Folder own;
    const Store store = write_store(own, rows_->data, rows_per_chunk);
    const Problem problem = problem_for(store, "hinge", 1);
    const uint64_t least = least_memory(problem, Dual{}, "somewhere");
    for (uint64_t memory = least; memory < least + (400 << 10); memory += 4 << 10) {
      const Plan found = make_plan(problem, Dual{}, context_with(memory, "somewhere"));
      ASSERT_FALSE(found.duals_in_file && found.cache_bytes > 0)
          << rows_per_chunk << " rows a chunk, memory " << memory << ": " << found.describe();
    }
  }
}

// v is made in the window, or beside rows that all stay.
TEST_F(Plans, FitTheMemoryTheyWereMadeFor) {
  for (const AnyMethod& method :
       {AnyMethod(Dual{}), AnyMethod(Dual{.cache_fraction = 0.7}), AnyMethod(Dual{.cache_fraction = 0}),
        AnyMethod(Dual{.schedule = Schedule::fixed}), AnyMethod(Pegasos{}), AnyMethod(Average{}),
        AnyMethod(Subsample{}), AnyMethod(CrammerSinger{})}) {
    for (const char* checkpoint : {"", "somewhere"}) {
      const uint64_t least = least_memory(problem_, method, checkpoint);
      for (uint64_t memory = least; memory < least + (2 << 20); memory += 10 << 10) {
        const Plan found = plan(method, memory, checkpoint);
        const bool streamed = found.rows == RowsHeld::streamed;
        const uint64_t planned = found.bytes("weights") + found.bytes("duals") + found.window_bytes +
                                 found.cache_bytes + (streamed ? 0 : found.certify_bytes);
        ASSERT_LE(planned + kProgramBytes, memory) << name_of(method) << ": " << found.describe();
        ASSERT_TRUE(!streamed || found.certify_bytes + found.certify_window_bytes <= found.window_bytes);
        ASSERT_GE(found.certify_bytes, sizeof(double));
      }
    }
  }
}

TEST_F(Plans, HoldMoreOfTheRowsTheMoreMemoryThereIs) {
  const uint64_t least = least_memory(problem_, Dual{});
  std::vector<RowsHeld> seen;
  for (uint64_t memory = least; memory < least + (4 << 20); memory += 16 << 10) {
    const RowsHeld held = plan(Dual{}, memory).rows;
    if (seen.empty() || held != seen.back()) seen.push_back(held);
  }
  EXPECT_EQ(seen, (std::vector{RowsHeld::streamed, RowsHeld::encoded, RowsHeld::decoded}));
}

TEST_F(Plans, AreRefusedWithTheNumbersAndTheRemedies) {
  expect_error(ErrorKind::memory,
               {"weights of 26 features 104 bytes", "duals of 300 rows 2.6 KB", "chunk table",
                "memory allows " + human_bytes(kProgramBytes), "The largest part: the program itself", "give memory"},
               [&] { plan(Dual{}, kProgramBytes); });
  const std::optional<Error> without_duals = error_of([&] { plan(Pegasos{}, kProgramBytes); });
  ASSERT_TRUE(without_duals.has_value());
  EXPECT_FALSE(contains(without_duals->what(), "duals")) << without_duals->what();
}

TEST_F(Plans, AreMadeInTheMemoryThatARefusalAdvises) {
  for (const AnyMethod& method :
       {AnyMethod(Dual{}), AnyMethod(Dual{.schedule = Schedule::fixed}), AnyMethod(Newton{}), AnyMethod(Pegasos{}),
        AnyMethod(Average{}), AnyMethod(Subsample{}), AnyMethod(CrammerSinger{})}) {
    const std::optional<Error> error = error_of([&] { plan(method, kProgramBytes); });
    ASSERT_TRUE(error.has_value()) << name_of(method);
    EXPECT_NO_THROW(plan(method, read_size(advised(*error, "memory")).value())) << error->what();
  }
}

TEST_F(Plans, ThatCannotBeNameWhatTakesMost) {
  Data data = make_data(20, 3, 1);
  data.rows[0].index.push_back(4'000'000);
  data.rows[0].value.push_back(1);
  const ManyChunks wide(std::move(data));
  const Problem problem = problem_for(wide.store, "squared-hinge", 1, 1);
  const auto refused = [&](const Problem& what, const AnyMethod& method, const std::vector<std::string>& words) {
    expect_error(ErrorKind::memory, words, [&] { make_plan(what, method, context_with(kProgramBytes + (1 << 20))); });
  };
  refused(problem, Dual{}, {"The largest part: weights", "(use fewer features)"});
  refused(problem, Newton{}, {"The largest part: weights", "(use solver dual)"});
  Problem folds = problem;
  folds.tasks.assign(5, problem.tasks[0]);
  refused(folds, Dual{}, {"The largest part: weights", "(use fewer folds)"});
}

TEST_F(Plans, SeeFewFeaturesForManyRows) {
  EXPECT_FALSE(plan(Dual{}, streaming()).few_features) << "300 rows, 26 weights";
  const ManyChunks few = ManyChunks::with_few_features();
  const Problem problem = problem_for(few.store, "hinge", 1);
  const auto sees = [&](const AnyMethod& method) {
    return make_plan(problem, method, context_with(streaming_memory(problem))).few_features;
  };
  EXPECT_TRUE(sees(Dual{}));
  EXPECT_TRUE(sees(Dual{.inner = 3}));
  EXPECT_FALSE(sees(Dual{.schedule = Schedule::fixed})) << "the paper's blocks are solved as the paper does";
  EXPECT_FALSE(sees(Pegasos{}));
}

TEST_F(Plans, AreTheSameAfterASnapshot) {
  Plan plan{.rows = RowsHeld::encoded,
            .duals_in_file = true,
            .parts = {{.name = "weights", .bytes = 11}, {.name = "margins", .bytes = 12}},
            .window_bytes = 13,
            .cache_bytes = 14,
            .certify_bytes = 15,
            .certify_window_bytes = 16,
            .chunks_per_block = 17,
            .few_features = true,
            .inner = 18,
            .idle = 19,
            .kept_rows = 20};
  const MemoryFolder folder;
  const auto through_a_snapshot = [&](const Plan& before) {
    SnapshotWriter file(folder / "plan");
    FieldWriter to(file);
    to("plan", before);
    file.commit();
    return FieldReader(folder / "plan").take<Plan>("plan");
  };
  const Plan after = through_a_snapshot(plan);
  EXPECT_EQ(after.rows, RowsHeld::encoded);
  EXPECT_TRUE(after.duals_in_file);
  EXPECT_EQ(after.bytes("weights"), 11U);
  EXPECT_EQ(after.bytes("margins"), 12U);
  EXPECT_EQ(after.window_bytes, 13U);
  EXPECT_EQ(after.cache_bytes, 14U);
  EXPECT_EQ(after.certify_bytes, 15U);
  EXPECT_EQ(after.certify_window_bytes, 16U);
  EXPECT_EQ(after.chunks_per_block, 17U);
  EXPECT_TRUE(after.few_features);
  EXPECT_EQ(after.inner, 18U);
  EXPECT_EQ(after.idle, 19);
  EXPECT_EQ(after.kept_rows, 20U);
  plan.chunks_per_block = 0;
  EXPECT_THAT([&] { through_a_snapshot(plan); }, fails_with(ErrorKind::damaged, "plan"));
}

uint64_t planned_bytes(const Plan& plan) {
  return plan.bytes("weights") + plan.bytes("duals") + plan.window_bytes + plan.cache_bytes +
         (plan.rows == RowsHeld::streamed ? 0 : plan.certify_bytes) + kProgramBytes;
}

TEST(PlansOfManyTasks, FitTheMemoryTheyWereMadeFor) {
  const ManyChunks rows(make_classes(300, 24, 20, 1));
  const Problem problem = tasks_for(rows.store, "hinge", std::vector<double>(20, 1.0), 1);
  for (const AnyMethod& method :
       {AnyMethod(Dual{}), AnyMethod(Dual{.cache_fraction = 0.5}), AnyMethod(Dual{.schedule = Schedule::fixed}),
        AnyMethod(Pegasos{}), AnyMethod(Average{}), AnyMethod(Subsample{})}) {
    for (const char* checkpoint : {"", "somewhere"}) {
      const uint64_t least = least_memory(problem, method, checkpoint);
      for (uint64_t memory = least; memory < least + (2 << 20); memory += 10 << 10) {
        const Plan found = make_plan(problem, method, context_with(memory, checkpoint));
        ASSERT_LE(planned_bytes(found), memory) << name_of(method) << ": " << found.describe();
        ASSERT_EQ(found.tasks, 20U);
        ASSERT_GE(found.bytes("weights"), 20 * problem.weights() * sizeof(float));
      }
    }
  }
}

TEST(PlansOfManyTasks, TakeAsManyTasksAsFitAndNoneMore) {
  const ManyChunks rows(make_classes(300, 24, 20, 1));
  const Problem problem = tasks_for(rows.store, "hinge", std::vector<double>(20, 1.0), 1);
  size_t last = 0;
  for (uint64_t memory = least_memory(only_task(problem, 0), Dual{}); last < 20; memory += 4 << 10) {
    const Context context = context_with(memory);
    const size_t most = tasks_at_once(problem, {}, context);
    ASSERT_GE(most, last) << "more memory, fewer tasks";
    ASSERT_LT(memory, uint64_t{64} << 20) << "it never fits";
    Problem part = problem;
    part.tasks.resize(most);
    EXPECT_LE(planned_bytes(make_plan(part, Dual{}, context)), memory);
    if (most < 20) {
      part.tasks = {problem.tasks.begin(), problem.tasks.begin() + static_cast<ptrdiff_t>(most) + 1};
      EXPECT_THAT([&] { make_plan(part, Dual{}, context); }, fails_with(ErrorKind::memory, "tasks"));
    }
    last = most;
  }
  EXPECT_THAT([&] { tasks_at_once(problem, {}, context_with(kProgramBytes)); },
              fails_with(ErrorKind::memory, "weights"));
}

TEST(PlansOfFixedBlocks, RefuseABlockThatIsLargerThanTheWindow) {
  const ManyChunks rows(24);
  const Problem problem = problem_for(rows.store, "hinge", 0.1);
  const uint64_t memory = streaming_memory(problem);
  int refused = 0;
  for (size_t blocks = 1; blocks <= 60; ++blocks) {
    const Dual method{.schedule = Schedule::fixed, .blocks = blocks, .inner = 1, .cache_fraction = 0};
    const auto plan = [&] { return make_plan(problem, method, context_with(memory)); };
    std::vector<Solution> solutions;
    if (const auto error = error_of(plan)) {
      EXPECT_EQ(error->kind(), ErrorKind::memory);
      EXPECT_TRUE(contains(error->what(), "a fixed block of")) << error->what();
      EXPECT_TRUE(contains(words_of(*error), blocks == 60 ? "schedule recomposed" : "more blocks")) << words_of(*error);
      ++refused;
      continue;
    }
    const Summary summary = solve(problem, {.method = method, .max_passes = 2}, solutions, context_with(memory));
    EXPECT_EQ(summary.plan.rows, RowsHeld::streamed);
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 30);
}

// A row's place in a block is a number of 32 bits: a block cannot have any number of chunks.
TEST(PlansOfFixedBlocks, HaveBlocksOfNoMoreChunksThanABlockCanHave) {
  const MemoryFolder folder;
  StoreWriter writer(folder / "store");
  writer.begin({.shuffle = false, .chunk_bytes = 4096});
  Random random(3);
  const std::vector<uint32_t> index = {1, 2, 3};
  for (int i = 0; i < 1000000; ++i) {
    const auto x = static_cast<float>(random.unit() - 0.5);
    const std::vector<float> value = {x, static_cast<float>(random.unit()), 1};
    writer.add({.label = x + random.unit() > 0.5 ? 1 : -1, .index = index, .value = value});
  }
  writer.commit();
  const Store store = Store::open(folder / "store");
  ASSERT_GT(store.chunks().size(), uint64_t{1} << (32 - Block::kRowBits)) << "too few chunks to be a test";
  const Problem problem = problem_for(store, "hinge", 1e-4);
  std::vector<Solution> expected;
  const Summary right = solve(problem, {.tolerance = 1e-3, .max_passes = 100}, expected);
  std::vector<Solution> solutions;
  const Summary found =
      solve(problem, {.method = Dual{.schedule = Schedule::fixed}, .tolerance = 1e-3, .max_passes = 30}, solutions);
  EXPECT_EQ(found.termination, Termination::converged);
  EXPECT_NEAR(found.certificates[0].primal, right.certificates[0].primal, 2e-3 * right.certificates[0].primal);
}

TEST(FixedBlocks, LetNoRowRest) {
  const ManyChunks rows(24);
  const Problem problem = problem_for(rows.store, "hinge", 1, 1);
  for (const Schedule schedule : {Schedule::fixed, Schedule::recomposed}) {
    uint64_t resting = 0;
    Context context;
    std::vector<Solution> solutions;
    context.observer.pass = [&](const PassReport&) {
      for (const uint8_t passes_out : solutions.at(0).duals.all_passes_out())
        resting += (passes_out & 0x7f) != 0 ? 1 : 0;
    };
    Dual method{.schedule = schedule, .inner = 2};
    if (schedule == Schedule::fixed) method.blocks = 8;
    solve(problem, {.method = method, .tolerance = 1e-7, .max_passes = 20}, solutions, context);
    EXPECT_EQ(resting > 0, schedule == Schedule::recomposed);
  }
}

// Rows of two features: their duals alone are more than the memory has room for.
class ManyTinyRows : public testing::Test {
 protected:
  static constexpr uint64_t kRows = 60000;

  const MemoryFolder folder_;
  const Store store_ = write_tiny_rows(folder_ / "store", kRows);
  const Problem problem_ = problem_for(store_, "hinge", 0.01);
};

TEST_F(ManyTinyRows, HaveTheirDualsInAFile) {
  const uint64_t memory = least_memory(problem_, Dual{}, "somewhere") + (20 << 10);
  expect_error(ErrorKind::memory, {"duals of 60,000 rows 527 KB"},
               [&] { make_plan(problem_, Dual{}, context_with(memory)); });
  const SolveOptions options{.tolerance = 1e-3};
  std::vector<Solution> solutions;
  const Summary small = solve(problem_, options, solutions, context_with(memory, folder_ / "STATE"));
  ASSERT_TRUE(small.plan.duals_in_file);
  EXPECT_LT(small.plan.bytes("duals"), uint64_t{100} << 10);
  EXPECT_NE(small.plan.describe().find("(the others in a file)"), std::string::npos) << small.plan.describe();
  EXPECT_EQ(small.termination, Termination::converged);
  EXPECT_LE(small.certificates[0].dual, small.certificates[0].primal);
  solutions.clear();
  const Summary large = solve(problem_, options, solutions);
  EXPECT_FALSE(large.plan.duals_in_file);
  EXPECT_NEAR(small.certificates[0].primal, large.certificates[0].primal, 1e-3 * large.certificates[0].primal);
}

TEST_F(ManyTinyRows, HaveMemoryForTheDualsOfABlock) {
  int in_file = 0;
  const uint64_t least = least_memory(problem_, Dual{}, "somewhere");
  for (uint64_t memory = least; memory < least + (600 << 10); memory += 20 << 10) {
    const Plan plan = make_plan(problem_, Dual{}, context_with(memory, "somewhere"));
    if (!plan.duals_in_file) continue;
    ++in_file;
    EXPECT_GE(plan.bytes("duals"), plan.chunks_per_block * kRows / store_.chunks().size() * Duals::kBytesPerRow)
        << plan.describe();
  }
  EXPECT_GT(in_file, 10);
}

// Where the duals are in a file, those of a block are all that is in memory, whatever a block is made of.
TEST_F(ManyTinyRows, HaveBlocksWhoseDualsFitForEveryMethod) {
  const Problem many{
      .store = &store_, .tasks = std::vector<Task>(20, Task{.positive = 1, .cost = 0.01}), .loss = Hinge{}};
  int resident = 0;
  for (const AnyMethod& method :
       {AnyMethod(Dual{.schedule = Schedule::fixed}), AnyMethod(Dual{.schedule = Schedule::fixed, .blocks = 20}),
        AnyMethod(Average{}), AnyMethod(Dual{}), AnyMethod(Subsample{})}) {
    for (const Problem* problem : {&problem_, &many}) {
      const uint64_t least = least_memory(*problem, method, "somewhere");
      for (const uint64_t more : {0, 100, 300, 9000}) {
        const uint64_t memory = least + (more << 10);
        const Plan plan = make_plan(*problem, method, context_with(memory, "somewhere"));
        if (!plan.duals_in_file) continue;
        if (plan.rows != RowsHeld::streamed) ++resident;
        size_t largest = 0;
        Context context = context_with(memory, folder_ / "STATE");
        context.checkpoint.every_seconds = 1e9;
        context.observer.block = [&](const BlockReport& block) { largest = std::max<size_t>(largest, block.rows); };
        std::vector<Solution> solutions;
        std::filesystem::remove(folder_ / "STATE");
        solve(*problem, {.method = method, .tolerance = 0.5, .max_passes = 1}, solutions, context);
        EXPECT_LE(largest * Duals::kBytesPerRow * problem->tasks.size(), plan.bytes("duals"))
            << name_of(method) << " in " << more << " KB more than the least: " << plan.describe();
      }
    }
  }
  EXPECT_GT(resident, 0) << "rows that stay while their duals do not are what is to be tested";
}

}  // namespace
}  // namespace linblock
