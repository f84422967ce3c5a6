#include <gtest/gtest.h>

#include "base/error.h"
#include "solve/solve.h"
#include "support/errors.h"
#include "support/stopping.h"
#include "support/tight_memory.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

TEST(Checkpoint, EveryFlippedByteIsRefused) {
  const Folder folder;
  const Store store = write_store(folder, make_data(20, 3, 2), 10);
  const Problem problem = problem_for(store, "hinge", 1);
  std::atomic<bool> stop = true;
  Context context{.stop = &stop};
  context.checkpoint.path = folder / "STATE";
  std::vector<Solution> solutions;
  EXPECT_THROW(solve(problem, {.tolerance = 1e-9}, solutions, context), Error);
  const std::string good = read_file(folder / "STATE");
  ASSERT_GT(good.size(), 100U);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    write_file(folder / "STATE", bad);
    solutions.clear();
    try {
      solve(problem, {.tolerance = 1e-9}, solutions, context);
      FAIL() << "byte " << i << " was not noticed";
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::damaged) << "byte " << i << ": " << error.what();
    }
  }
}

// A checkpoint in the second pass of a run whose duals are in a file, and what becomes of that file.
class DualsBesideACheckpoint : public testing::Test {
 protected:
  void SetUp() override {
    StoppedRun run;
    ASSERT_FALSE(live(problem_, options_, context_, 40, run));
    ASSERT_TRUE(std::filesystem::exists(duals_));
    ASSERT_TRUE(FieldReader(rows_.folder / "STATE").take<Plan>("plan").duals_in_file);
  }
  void expect_refused() {
    std::vector<Solution> solutions;
    EXPECT_THAT([&] { solve(problem_, options_, solutions, context_); }, fails_with(ErrorKind::damaged, duals_));
  }

  const ManyChunks rows_{24};
  const Problem problem_ = problem_for(rows_.store, "hinge", 0.1);
  const SolveOptions options_{.method = Dual{.inner = 1}, .tolerance = 1e-6};
  const Context context_ = context_with(memory_without_duals(problem_), rows_.folder / "STATE");
  const std::string duals_ = rows_.folder / "STATE.duals";
};

TEST_F(DualsBesideACheckpoint, AreRefusedWhenTheyAreDamaged) {
  std::string bytes = read_file(duals_);
  for (char& byte : bytes) byte = static_cast<char>(byte ^ 0x04);
  write_file(duals_, bytes);
  expect_refused();
}

TEST_F(DualsBesideACheckpoint, AreRefusedWhenTheyAreGone) {
  std::filesystem::remove(duals_);
  expect_refused();
}

TEST_F(DualsBesideACheckpoint, AreForgottenWithIt) {
  std::filesystem::remove(rows_.folder / "STATE");
  std::vector<Solution> anew;
  const Summary found = solve(problem_, options_, anew, context_);
  std::vector<Solution> whole;
  const Summary expected =
      solve(problem_, options_, whole, context_with(context_.memory_bytes, rows_.folder / "OTHER"));
  EXPECT_EQ(found.passes, expected.passes);
  EXPECT_EQ(anew[0].weights, whole[0].weights);
}

}  // namespace
}  // namespace linblock
