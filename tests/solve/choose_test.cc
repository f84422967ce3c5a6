#include "solve/choose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "solve/core/difficulty.h"
#include "solve/solve.h"
#include "store/core/compact.h"
#include "store/core/remove.h"
#include "support/memory_folder.h"
#include "support/small_problems.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

constexpr double kLoose = 0.01;

// Rows whose mean squared length is this.
Data data_of_length(size_t rows, uint32_t features, double squared_length) {
  Data data = make_data(rows, features, 1);
  double squares = 0;
  for (const OwnedRow& row : data.rows)
    for (const float value : row.value) squares += double{value} * double{value};
  const double factor = std::sqrt(squared_length * static_cast<double>(rows) / squares);
  for (OwnedRow& row : data.rows)
    for (float& value : row.value) value = static_cast<float>(factor * double{value});
  return data;
}

class ChosenMethod : public testing::Test {
 protected:
  static Choice choice_for(size_t rows, uint32_t features, double squared_length, const std::string& loss,
                           double tolerance = kLoose) {
    const MemoryFolder folder;
    const Store store = write_store(folder, data_of_length(rows, features, squared_length), rows);
    return choose_method(problem_for(store, loss, 1), {}, tolerance);
  }
};

TEST_F(ChosenMethod, IsNewtonWhereRowsAreMany) {
  for (const char* loss : {"hinge", "squared-hinge", "logistic"}) {
    const Choice choice = choice_for(1000, 3, 30, loss);
    EXPECT_TRUE(std::holds_alternative<Newton>(choice.method)) << loss;
    EXPECT_EQ(choice.reason,
              std::string(loss) + ", 1,000 rows x 3 features: newton, because rows are many for each feature");
  }
}

TEST_F(ChosenMethod, IsDualForTheHingeOfShortRowsToALooseGap) {
  EXPECT_EQ(choice_for(1000, 3, 3, "hinge").reason,
            "hinge, 1,000 rows x 3 features: dual, because rows are short for this cost");
  EXPECT_TRUE(std::holds_alternative<Newton>(choice_for(1000, 3, 3, "hinge", 1e-4).method));
  EXPECT_TRUE(std::holds_alternative<Newton>(choice_for(1000, 3, 3, "squared-hinge").method));
}

TEST_F(ChosenMethod, IsDualWhereRowsAreFew) {
  for (const char* loss : {"hinge", "logistic"})
    EXPECT_EQ(choice_for(1000, 100, 3, loss).reason,
              std::string(loss) + ", 1,000 rows x 100 features: dual, because rows are few for each feature");
}

TEST_F(ChosenMethod, IsNewtonForLongRows) {
  EXPECT_EQ(choice_for(1000, 100, 1e4, "hinge").reason,
            "hinge, 1,000 rows x 100 features: newton, because rows are long for this cost");
  for (const char* loss : {"hinge", "squared-hinge", "logistic"}) {
    EXPECT_TRUE(std::holds_alternative<Newton>(choice_for(1000, 100, 1e4, loss).method)) << loss;
    EXPECT_TRUE(std::holds_alternative<Newton>(choice_for(150, 250, 1e4, loss).method)) << loss;
    EXPECT_TRUE(std::holds_alternative<Dual>(choice_for(100, 250, 1e4, loss).method)) << "few rows for each feature";
  }
}

// With a quarter of the memory to spare: whatever newton is chosen for, it can also be planned for.
TEST_F(ChosenMethod, IsDualWhereNewtonDoesNotFit) {
  const MemoryFolder folder;
  const Store store = write_store(folder, data_of_length(20000, 30, 150), 500);
  const Problem problem = problem_for(store, "hinge", 1);
  bool newton = false;
  bool streamed = false;
  for (uint64_t memory = uint64_t{6} << 20; memory < uint64_t{24} << 20; memory += uint64_t{256} << 10) {
    const Context context{.memory_bytes = memory};
    const Choice choice = choose_method(problem, context, kLoose);
    EXPECT_FALSE(newton && std::holds_alternative<Dual>(choice.method)) << "more memory, and no longer newton";
    if (std::holds_alternative<Dual>(choice.method)) {
      EXPECT_THAT(choice.reason, testing::HasSubstr("newton and its samples of rows do not fit in memory"));
      continue;
    }
    newton = true;
    Context held = context;
    held.reserved_bytes = memory / 4;
    streamed = streamed || make_plan(problem, Newton{}, held).rows == RowsHeld::streamed;
  }
  EXPECT_TRUE(newton);
  EXPECT_TRUE(streamed) << "rows that do not fit are no reason against it";
}

class ForeseenPasses : public testing::Test {
 protected:
  std::string words(const Problem& problem, const AnyMethod& method) const {
    return plain_text(foresee_passes(problem, make_plan(problem, method, {})));
  }
  const MemoryFolder folder_;
};

TEST_F(ForeseenPasses, AreSaidWithACostThatHelps) {
  const Store store = write_store(folder_, data_of_length(1000, 800, 1e4), 1000);
  Problem problem = problem_for(store, "logistic", 0.5);
  EXPECT_NEAR(*difficulty(problem), 5000, 1);
  EXPECT_EQ(
      words(problem, Dual{}),
      "this may take hundreds of passes: the cost times the mean squared length of a row is 5e+03, and dual is slow "
      "above 200. Lower the cost to about 0.01, scale the columns, or run 'linblock tune', which begins with small "
      "costs");
  problem.tasks.front().cost = 0.01;
  EXPECT_EQ(words(problem, Dual{}), "") << "the cost that was named";
}

TEST_F(ForeseenPasses, AreNotThoseOfSamples) {
  for (const uint32_t features : {100, 800}) {
    const MemoryFolder folder;
    const Store store = write_store(folder, data_of_length(1000, features, 1e4), 1000);
    for (const char* loss : {"hinge", "squared-hinge", "logistic"}) {
      EXPECT_EQ(words(problem_for(store, loss, 1), Newton{}), "") << loss;
      EXPECT_NE(words(problem_for(store, loss, 1), Dual{}), "") << loss;
    }
  }
}

TEST_F(ForeseenPasses, CountTheBiasAndClassWeights) {
  const Store store = write_store(folder_, data_of_length(1000, 10, 50), 1000);
  Problem problem = problem_for(store, "hinge", 1, 10);
  EXPECT_NEAR(*difficulty(problem), 150, 0.1);
  problem.class_weights = {{1, 4}};
  EXPECT_NEAR(*difficulty(problem), 600, 0.1);
  problem.class_weights = {{1, 0.5}, {-1, 0.25}};
  EXPECT_NEAR(*difficulty(problem), 75, 0.1);
}

TEST_F(ForeseenPasses, SuggestUnitLengthForDocumentsOnly) {
  Data counts = data_of_length(100, 300, 1e5);
  const Store table = write_store(folder_, counts, 100);
  EXPECT_EQ(words(problem_for(table, "hinge", 1), Dual{}).find("normalize"), std::string::npos) << "negative values";
  for (OwnedRow& row : counts.rows)
    for (float& value : row.value) value = std::abs(value);
  const MemoryFolder other;
  const Store documents = write_store(other, counts, 100);
  EXPECT_NE(words(problem_for(documents, "hinge", 1), Dual{}).find("(or the rows: normalize)"), std::string::npos);
}

// Of which nothing is known before all rows have been read: as the default was before it could be.
TEST_F(ForeseenPasses, AreNotSaidOfAStoreThatDoesNotKnowItsSquares) {
  Data data = data_of_length(1000, 10, 1e4);
  data.rows.push_back({.id = 1000, .label = 1, .index = {1}, .value = {1e15F}});
  const std::string path = folder_ / "store";
  write_store(folder_, data, 2000);
  remove_rows(path, {.ids = {1000}});
  const Store store = Store::open(path);
  ASSERT_FALSE(difficulty(problem_for(store, "hinge", 1)));
  EXPECT_EQ(words(problem_for(store, "hinge", 1), Dual{}), "");
  EXPECT_TRUE(std::holds_alternative<Newton>(choose_method(problem_for(store, "hinge", 1), {}, kLoose).method));
  compact(path, {});
  const Store again = Store::open(path);
  EXPECT_NE(words(problem_for(again, "hinge", 1), Dual{}), "");
}

}  // namespace
}  // namespace linblock
