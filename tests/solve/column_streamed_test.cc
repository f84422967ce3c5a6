// Columns beyond the memory: read each pass, in blocks, in the memory that the plan has for them.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "base/memory.h"
#include "solve/columns/column_blocks.h"
#include "solve/core/pass_loop.h"
#include "support/column_problems.h"
#include "support/errors.h"
#include "support/stopping.h"
#include "support/tight_memory.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

// 60 features in a chunk each, in a folder in memory.
struct ManyColumns {
  ManyColumns() : data(make_data(90, 60, 1, 0.3)), rows(data) { write_columns(rows.store, 1); }
  const Data data;
  const ManyChunks rows;
  const Store& store = rows.store;
};

uint64_t streaming_memory_for(const Problem& problem, const AnyMethod& method) {
  const uint64_t least = least_memory(problem, method);
  const uint64_t enough =
      least_memory_where(problem, method, "", [](const Plan& plan) { return plan.rows != RowsHeld::streamed; });
  EXPECT_GT(enough, least + 65536);
  return least + (enough - least) / 2;
}

struct Case {
  AnyMethod method;
  const char* loss;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {{Primal{}, "squared-hinge"},
                                        {Primal{}, "logistic"},
                                        {Primal{.exponential = Exponential::stored}, "logistic"},
                                        {Primal{.order = ColumnOrder::cyclic}, "squared-hinge"},
                                        {Primal{.order = ColumnOrder::once}, "logistic"},
                                        {Primal{.order = ColumnOrder::online}, "squared-hinge"},
                                        {Cmls{}, "squared-hinge"}};
  return all;
}

TEST(StreamedColumns, ReachTheOptimumOfThoseInMemory) {
  const ManyColumns columns;
  for (const Case& one : cases()) {
    const Problem problem = problem_for(columns.store, one.loss, 0.5, 1);
    const uint64_t memory = streaming_memory_for(problem, one.method);
    const uint64_t encoded =
        least_memory_where(problem, one.method, "", [](const Plan& plan) { return plan.rows == RowsHeld::encoded; });
    double best = 0;
    for (const uint64_t bytes : {uint64_t{1} << 30, encoded, memory}) {
      Context context = context_with(bytes);
      size_t blocks = 0;
      context.observer.block = [&](const BlockReport& block) { blocks = block.blocks; };
      std::vector<Solution> solutions;
      const Summary summary =
          solve(problem, {.method = one.method, .tolerance = 1e-7, .max_passes = 5000}, solutions, context);
      EXPECT_EQ(summary.plan.rows == RowsHeld::streamed, bytes == memory);
      EXPECT_GT(blocks, 1U);
      if (best == 0) best = summary.certificates[0].primal;
      EXPECT_NEAR(summary.certificates[0].primal, best, 1e-6 * best) << one.loss;
      EXPECT_LE(summary.certificates[0].gap(), 1e-7);
    }
  }
}

TEST(StreamedColumns, EncodedColumnsGiveTheBitsOfDecodedOnes) {
  const ManyColumns columns;
  for (const Case& one : cases()) {
    const Problem problem = problem_for(columns.store, one.loss, 0.5, 1);
    const uint64_t encoded =
        least_memory_where(problem, one.method, "", [](const Plan& plan) { return plan.rows == RowsHeld::encoded; });
    const SolveOptions options{.method = one.method, .tolerance = 1e-4, .max_passes = 100};
    std::vector<Solution> there;
    solve(problem, options, there, context_with(encoded));
    std::vector<Solution> here;
    solve(problem, options, here);
    EXPECT_EQ(there[0].weights, here[0].weights) << one.loss;
  }
}

// Stopped after every block, and gone on from there.
TEST(StreamedColumns, ARunThatIsTakenUpAgainHasTheSameBits) {
  const ManyColumns columns;
  for (const Case& one : cases()) {
    const Problem problem = problem_for(columns.store, one.loss, 0.5, 1);
    for (const bool streamed : {true, false}) {
      const uint64_t memory = streamed ? streaming_memory_for(problem, one.method) : uint64_t{1} << 30;
      const SolveOptions options{.method = one.method, .tolerance = 1e-3, .max_passes = 12};
      std::vector<Solution> whole;
      double estimate = 0;
      Context context = context_with(memory);
      context.observer.pass = [&](const PassReport& pass) { estimate = pass.primal_estimate; };
      const Summary expected = solve(problem, options, whole, context);
      const StoppedRun run = run_with_stops(problem, options, context_with(memory, columns.rows.folder / "STATE"));
      EXPECT_GE(run.stops, streamed ? 2 * expected.passes : expected.passes);
      EXPECT_EQ(run.solutions[0].weights, whole[0].weights) << one.loss;
      EXPECT_EQ(run.summary.passes, expected.passes);
      EXPECT_EQ(run.summary.certificates[0].primal, expected.certificates[0].primal);
      EXPECT_EQ(run.summary.certificates[0].dual, expected.certificates[0].dual);
      EXPECT_EQ(run.last_estimate, estimate);
      EXPECT_EQ(run.summary.column_steps.steps, expected.column_steps.steps);
      std::filesystem::remove(columns.rows.folder / "STATE");
    }
  }
}

TEST(StreamedColumns, TasksOnSeveralThreadsHaveTheSameBits) {
  const ManyColumns columns;
  Problem problem = problem_for(columns.store, "squared-hinge", 0.5, 1);
  problem.tasks.push_back({.positive = -1, .cost = 2});
  problem.tasks.push_back({.positive = 1, .cost = 0.1, .held_out = {.seed = 1, .parts = 4, .first = 1, .last = 2}});
  const uint64_t memory = streaming_memory_for(problem, Primal{});
  std::vector<Solution> expected;
  for (const size_t threads : {1, 2, 4}) {
    Context context = context_with(memory);
    context.team = threads;
    std::vector<Solution> solutions;
    const Summary summary = solve(problem, {.method = Primal{}, .tolerance = 1e-4}, solutions, context);
    EXPECT_EQ(summary.plan.rows, RowsHeld::streamed);
    if (expected.empty()) expected = std::move(solutions);
    for (size_t i = 0; i < solutions.size(); ++i) EXPECT_EQ(solutions[i].weights, expected[i].weights) << threads;
  }
}

// Dense columns of 3000 rows do not fit chunks of 4 KB: each goes on over several of them.
class LongColumns : public testing::Test {
 protected:
  LongColumns() : store_(write_store(folder_, data_, 3000)) { write_columns(store_, kAllColumns, 4096); }

  const Folder folder_;
  const Data data_ = make_data(3000, 6, 2, 0.9);
  const Store store_;
};

TEST_F(LongColumns, GoOnOverSeveralChunksAndReachTheOptimum) {
  const Columns columns = Columns::open(store_);
  EXPECT_GT(columns.store().chunks().size(), 12U);
  EXPECT_GE(ColumnUnits(columns.store()).largest(), 2U);
  for (const Case& one : cases()) {
    const Problem problem = problem_for(store_, one.loss, 0.01, 1);
    std::vector<Solution> dual;
    const double best = solve(problem, {.tolerance = 1e-8, .max_passes = 20000}, dual).certificates[0].primal;
    const uint64_t streamed = least_memory(problem, one.method);
    const uint64_t encoded =
        least_memory_where(problem, one.method, "", [](const Plan& plan) { return plan.rows == RowsHeld::encoded; });
    for (const uint64_t memory : {streamed, encoded, uint64_t{1} << 30}) {
      std::vector<Solution> solutions;
      const Summary summary = solve(problem, {.method = one.method, .tolerance = 1e-7, .max_passes = 3000}, solutions,
                                    context_with(memory));
      EXPECT_NEAR(summary.certificates[0].primal, best, 1e-6 * best) << one.loss << " in " << memory;
    }
  }
}

TEST_F(LongColumns, StayTogetherInEveryOrder) {
  const Columns columns = Columns::open(store_);
  const ColumnUnits units(columns.store());
  for (const ColumnOrder order : {ColumnOrder::permuted, ColumnOrder::cyclic, ColumnOrder::once, ColumnOrder::online}) {
    std::set<std::vector<uint32_t>> seen;
    for (int pass = 1; pass <= 5; ++pass) {
      const BlockOrder blocks = units.order_of_pass(order, 1, 3, pass);
      EXPECT_EQ(std::set<uint32_t>(blocks.chunks.begin(), blocks.chunks.end()).size(), columns.store().chunks().size());
      EXPECT_EQ(blocks.ends.size(), 6U);  // one for each column, and no block begins within one
      seen.insert(blocks.chunks);
    }
    EXPECT_EQ(seen.size() > 1, order == ColumnOrder::permuted || order == ColumnOrder::online);
  }
}

TEST_F(LongColumns, AreRefusedWhereTheyDoNotFit) {
  // A memory that holds a few chunks and not the longest column.
  const Folder folder;
  const Store store = write_store(folder, make_data(60000, 3, 3, 1.0), 60000);
  write_columns(store, kAllColumns, 4096);
  const Problem problem = problem_for(store, "squared-hinge", 0.01);
  const uint64_t least = least_memory(problem, Primal{});
  std::vector<Solution> solutions;
  expect_error(ErrorKind::memory, {"a column that takes", "chunks", "give memory", "use solver newton"},
               [&] { solve(problem, {.method = Primal{}}, solutions, context_with(least - 4096)); });
}

TEST(StreamedColumns, TooLittleMemoryIsRefusedWithTheNumbers) {
  const ManyColumns columns;
  for (const AnyMethod& method : {AnyMethod(Primal{}), AnyMethod(Cmls{})}) {
    const Problem problem = problem_for(columns.store, "squared-hinge", 1, 1);
    const uint64_t least = least_memory(problem, method);
    std::vector<Solution> solutions;
    expect_error(ErrorKind::memory, {"weights of 62 features", "90 rows", "memory allows", "use solver newton or dual"},
                 [&] { solve(problem, {.method = method}, solutions, context_with(least - 2048)); });
    // And what is enough is enough, for rows at the end too.
    Context context = context_with(0);
    size_t rows = 0;
    context.rows_at_end = true;
    context.memory_bytes = std::max<uint64_t>(least, least_memory(problem, Dual{}));
    const SolveOptions options{.method = method, .max_passes = 2};
    Rows held;
    PassLoop loop(problem, options, solutions, context, held);
    while (loop.pass()) {
    }
    loop.read_rows([&](const Block& block) {
      for (const Chunk* chunk : block.chunks) rows += chunk->rows();
    });
    loop.finish();
    EXPECT_EQ(rows, 90U);
  }
}

TEST(StreamedColumns, AsManyTasksAsFitAreSolvedAtOnce) {
  const Folder folder;
  const Store store = write_store_with_columns(folder, make_data(20000, 3, 4), kAllColumns, 20000);
  Problem problem = problem_for(store, "squared-hinge", 1);
  problem.tasks.assign(10, problem.tasks[0]);
  const AnyMethod method = Primal{};
  const uint64_t for_four = [&] {
    Problem four = problem;
    four.tasks.resize(4);
    return least_memory(four, method);
  }();
  EXPECT_EQ(tasks_at_once(problem, {.method = method}, context_with(for_four)), 4U);
  EXPECT_EQ(tasks_at_once(problem, {.method = method}, context_with(uint64_t{1} << 30)), 10U);
}

// In a process of its own, whose memory can be watched.
TEST(StreamedColumns, HoldTheMemoryOfThePlan) {
  const Folder folder;
  constexpr uint32_t kFeatures = 120;
  {
    StoreWriter writer(folder / "store");
    writer.begin({.chunk_bytes = 64 << 10});
    Random random(3);
    std::vector<uint32_t> index(kFeatures);
    std::vector<float> value(kFeatures);
    for (uint32_t j = 0; j < kFeatures; ++j) index[j] = j + 1;
    for (int i = 0; i < 40000; ++i) {
      for (float& one : value) one = static_cast<float>(random.unit() - 0.5);
      writer.add({.label = value[0] + value[1] > 0.1F ? 1 : -1, .index = index, .value = value});
    }
    writer.commit();
  }
  const Store store = Store::open(folder / "store");
  write_columns(store);
  const Problem problem = problem_for(store, "logistic", 0.01, 1);
  constexpr uint64_t kMemory = uint64_t{16} << 20;
  ASSERT_GT(Columns::open(store).store().bytes(), kMemory + (kMemory >> 3));
  const pid_t child = ::fork();
  if (child == 0) {
    keep_heap_small();
    const uint64_t before = resident_bytes();
    Context context = context_with(kMemory);
    context.team = 2;
    std::vector<Solution> solutions;
    const Summary summary = solve(problem, {.method = Primal{}, .max_passes = 3}, solutions, context);
    const uint64_t grown = peak_resident_bytes() - before;
    const bool held = summary.plan.rows == RowsHeld::streamed && grown <= kMemory - kProgramBytes + (1 << 20);
    if (!held) fmt::print("grew by {} of {}\n", grown, kMemory - kProgramBytes);
    ::_exit(held ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace linblock
