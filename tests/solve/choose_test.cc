#include "solve/choose.h"

#include <gtest/gtest.h>

#include "solve/solve.h"
#include "support/memory_folder.h"
#include "support/small_problems.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

class ChosenMethod : public testing::Test {
 protected:
  Choice choice_for(size_t rows, uint32_t features, const std::string& loss, const Context& context = {}) const {
    const MemoryFolder folder;
    const Store store = write_store(folder, make_data(rows, features, 1), rows);
    return choose_method(problem_for(store, loss, 1), context);
  }
};

TEST_F(ChosenMethod, IsNewtonWhereFeaturesAreFewAndTheLossIsSmooth) {
  for (const char* loss : {"squared-hinge", "logistic"}) {
    const Choice choice = choice_for(1000, 3, loss);
    EXPECT_TRUE(std::holds_alternative<Newton>(choice.method)) << loss;
    EXPECT_EQ(choice.reason, std::string(loss) + ", 1,000 rows x 3 features: newton, because features are few");
  }
}

TEST_F(ChosenMethod, IsDualForTheHinge) {
  const Choice choice = choice_for(1000, 3, "hinge");
  EXPECT_TRUE(std::holds_alternative<Dual>(choice.method));
  EXPECT_EQ(choice.reason, "hinge, 1,000 rows x 3 features: dual, because the hinge has a corner");
}

TEST_F(ChosenMethod, IsDualWhereFeaturesAreMany) {
  EXPECT_EQ(choice_for(1000, 100, "logistic").reason,
            "logistic, 1,000 rows x 100 features: dual, because features are many");
}

// With a quarter of the memory to spare: whatever newton is chosen for, it can also be planned for.
TEST_F(ChosenMethod, IsDualWhereTheMarginsOfNewtonOrTheRowsDoNotFit) {
  const MemoryFolder folder;
  const Store store = write_store(folder, make_data(20000, 30, 1), 500);
  const Problem problem = problem_for(store, "logistic", 1);
  bool dual = false;
  bool newton = false;
  bool margins_fit = false;
  for (uint64_t memory = uint64_t{6} << 20; memory < uint64_t{24} << 20; memory += uint64_t{256} << 10) {
    const Context context{.memory_bytes = memory};
    const Choice choice = choose_method(problem, context);
    EXPECT_FALSE(newton && std::holds_alternative<Dual>(choice.method)) << "more memory, and no longer newton";
    if (std::holds_alternative<Newton>(choice.method)) {
      newton = true;
      Context held = context;
      held.reserved_bytes = memory / 4;
      EXPECT_NE(make_plan(problem, Newton{}, held).rows, RowsHeld::streamed) << "each of its passes would be a reading";
    } else {
      dual = true;
      const bool streamed = choice.reason.find("the rows do not fit the memory") != std::string::npos;
      EXPECT_TRUE(streamed || choice.reason.find("margins of newton do not fit") != std::string::npos);
      EXPECT_FALSE(margins_fit && !streamed) << "more memory, and no longer room for the margins";
      margins_fit = margins_fit || streamed;
    }
  }
  EXPECT_TRUE(dual);
  EXPECT_TRUE(margins_fit);
  EXPECT_TRUE(newton);
}

}  // namespace
}  // namespace linblock
