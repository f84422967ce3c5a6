#include <gtest/gtest.h>

#include "base/error.h"
#include "solve/solver.h"
#include "support/small_problems.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

class Checkpoints : public testing::TestWithParam<const char*> {};

// Stops after every block in turn, as Ctrl-C does, and goes on in a new solve: the end must be the same bits.
TEST_P(Checkpoints, ARunStoppedAtEveryBlockEndsWithTheSameBits) {
  const Folder folder;
  const Data data = make_data(120, 6, 1);
  const Store store = write_store(folder, data, 10);
  const Problem problem = problem_for(store, GetParam(), 1);
  for (const Schedule schedule : {Schedule::recomposed, Schedule::fixed}) {
    const SolveOptions options{
        .method = DualBlock{.schedule = schedule, .inner = 2}, .tolerance = 1e-4, .max_passes = 500};
    // A small memory, so that there are several blocks: eight chunks at the least are one.
    std::vector<Solution> whole;
    const Summary expected = solve(problem, options, whole);
    std::vector<Solution> pieces;
    Summary summary;
    int stops = 0;
    while (true) {
      std::atomic<bool> stop = true;  // at the end of the first block
      Context context{.stop = &stop};
      context.checkpoint.path = folder / "STATE";
      pieces.clear();
      try {
        summary = solve(problem, options, pieces, context);
        break;
      } catch (const Error& error) {
        ASSERT_EQ(error.kind(), ErrorKind::interrupted) << error.what();
        ASSERT_LT(++stops, 10000);
      }
      if (stops >= expected.passes) {  // the last pass: let it end
        context.stop = nullptr;
        pieces.clear();
        summary = solve(problem, options, pieces, context);
        break;
      }
    }
    EXPECT_GT(stops, 1);
    EXPECT_EQ(pieces[0].weights, whole[0].weights);
    EXPECT_EQ(summary.certificates[0].primal, expected.certificates[0].primal);
    std::filesystem::remove(folder / "STATE");
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, Checkpoints, testing::Values("hinge", "squared-hinge", "logistic"));

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

}  // namespace
}  // namespace linblock
