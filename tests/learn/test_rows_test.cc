// Test rows: read once, kept in a file, looked at by all tasks at once or by one group of tasks after another.
#include "learn/test_rows.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "solve/core/pass.h"
#include "support/errors.h"
#include "support/memory_folder.h"
#include "support/packing.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

class RowsForGroups : public testing::Test {
 protected:
  RowsForGroups() {
    write_file(folder_ / "data.svm", "1 1:1 2:1e-9\n2 1:1 2:1e-9\n3 2:1\n4 1:-1\n");
    pack({folder_ / "data.svm"}, folder_ / "store", small_options());
    options_.test = {folder_ / "data.svm"};
  }

  const MemoryFolder folder_;
  TrainOptions options_;
};

TEST_F(RowsForGroups, AreJudgedAsByAllTasksAtOnceHoweverCloseTheDecisions) {
  const Store store = Store::open(folder_ / "store");
  const Classes classes = choose_classes(store.info(), options_);
  ASSERT_EQ(classes.labels, (std::vector<int32_t>{1, 2, 3, 4}));
  // By feature number. Of the first two rows, task 2 thinks a billionth more than task 1 does.
  std::vector<Solution> solutions(4);
  for (Solution& solution : solutions) solution.weights.assign(store.info().feature_numbers(), 0);
  solutions[0].weights[store.features().number(1)] = 1;
  solutions[1].weights[store.features().number(1)] = 1;
  solutions[1].weights[store.features().number(2)] = 1;
  solutions[2].weights[store.features().number(2)] = 2;
  solutions[3].weights[store.features().number(1)] = -1;
  TestRows whole(options_, store, classes, folder_ / "WHOLE");
  whole.read({});
  const TestResult expected = whole.test(weights_of(solutions));
  EXPECT_EQ(expected.rows, 4U);
  EXPECT_EQ(expected.correct, 3U) << "all but the first";
  for (size_t split = 1; split < 4; ++split) {
    TestRows parts(options_, store, classes, folder_ / "PARTS");
    parts.read({});
    const auto middle = static_cast<ptrdiff_t>(split);
    std::vector<Solution> first(4);
    for (size_t i = 0; i < 4; ++i) first[i].weights = solutions[i].weights;
    std::vector<Solution> second(std::make_move_iterator(first.begin() + middle), std::make_move_iterator(first.end()));
    first.resize(split);
    parts.add(weights_of(first), 0);
    parts.add(weights_of(second), split);
    EXPECT_EQ(parts.result().rows, 4U);
    EXPECT_EQ(parts.result().correct, 3U) << "groups of " << split << " and " << 4 - split;
  }
}

// Groups, with a kill after each and another one before what it left is noted.
TEST_F(RowsForGroups, ResumeBetweenGroups) {
  const Store store = Store::open(folder_ / "store");
  const Classes classes = choose_classes(store.info(), options_);
  const auto add = [&](size_t group, const char* from, const char* to) {
    TestRows rows(options_, store, classes, folder_ / "STATE");
    rows.read({});
    if (from != nullptr) {
      FieldReader state(folder_ / from);
      rows.restore(state);
    }
    constexpr std::array<float, 4> kOfFirst = {1, 5, 2, -3};
    constexpr std::array<float, 4> kOfSecond = {0, 0, 7, 0};
    std::vector<float> weights(store.info().feature_numbers(), 0);
    weights[store.features().number(1)] = kOfFirst[group];
    weights[store.features().number(2)] = kOfSecond[group];
    rows.add({weights}, group);
    if (to == nullptr) return TestResult();
    SnapshotWriter file(folder_ / to);
    FieldWriter fields(file);
    rows.save(fields);
    file.commit();
    return rows.result();
  };
  add(0, nullptr, "after-0");
  add(1, "after-0", nullptr);
  add(1, "after-0", "after-1");
  add(2, "after-1", nullptr);
  add(2, "after-1", "after-2");
  add(3, "after-2", nullptr);
  const TestResult result = add(3, "after-2", "after-3");
  EXPECT_EQ(result.rows, 4U);
  EXPECT_EQ(result.correct, 3U) << "all but the first, which goes to class 2";
  EXPECT_FALSE(std::filesystem::exists(folder_ / "STATE.test"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "STATE.best-1"));
}

TEST_F(RowsForGroups, OtherRowsThanBeforeAreRefused) {
  const Store store = Store::open(folder_ / "store");
  const Classes classes = choose_classes(store.info(), options_);
  {
    TestRows rows(options_, store, classes, folder_ / "STATE");
    rows.read({});
    SnapshotWriter file(folder_ / "saved");
    FieldWriter fields(file);
    rows.save(fields);
    file.commit();
  }
  write_file(folder_ / "data.svm", "1 1:1\n");
  TestRows rows(options_, store, classes, folder_ / "STATE");
  rows.read({});
  FieldReader state(folder_ / "saved");
  EXPECT_THAT([&] { rows.restore(state); },
              fails_with(ErrorKind::input, "4 rows when training began, and there are 1"));
}

// A row may be longer than a piece of the file, and end where a piece does.
TEST(RowsInAFile, OfAnyLengthHaveTheirOwnScores) {
  const MemoryFolder folder;
  std::string text;
  const std::vector<size_t> lengths = {1, 8188, 8189, 8190, 0, 16378, 16379, 30000, 3};
  for (const size_t length : lengths) {
    text += length % 2 == 0 ? "1" : "-1";
    for (size_t i = 1; i <= length; ++i) text += " " + std::to_string(i) + ":1";
    text += "\n";
  }
  write_file(folder / "data.svm", text);
  pack({folder / "data.svm"}, folder / "store", small_options());
  TrainOptions options;
  options.test = {folder / "data.svm"};
  options.bias = 1;
  const Store store = Store::open(folder / "store");
  const Classes classes = choose_classes(store.info(), options);
  TestRows rows(options, store, classes, folder / "STATE");
  rows.read({});
  for (size_t bound = 0; bound < lengths.size(); ++bound) {
    // Positive: rows that are longer than that one.
    std::vector<float> weights(store.info().feature_numbers() + 1, 1);
    weights.back() = -static_cast<float>(lengths[bound]) - 0.5F;
    uint64_t correct = 0;
    for (const size_t length : lengths) {
      const int32_t label = length % 2 == 0 ? 1 : -1;
      correct += (length > lengths[bound] ? classes.labels[0] : classes.labels[1]) == label ? 1 : 0;
    }
    EXPECT_EQ(rows.test({weights}).correct, correct) << lengths[bound];
    EXPECT_EQ(rows.test({weights}).rows, lengths.size());
  }
}

TEST_F(RowsForGroups, AFlippedBitIsDamage) {
  const Store store = Store::open(folder_ / "store");
  const Classes classes = choose_classes(store.info(), options_);
  TestRows rows(options_, store, classes, folder_ / "STATE");
  rows.read({});
  const std::string whole = read_file(folder_ / "STATE.test");
  const std::vector<std::vector<float>> weights(4, std::vector<float>(store.info().feature_numbers(), 0));
  const std::vector<std::span<const float>> spans(weights.begin(), weights.end());
  EXPECT_EQ(rows.test(spans).rows, 4U);
  for (const size_t at : {size_t{0}, size_t{9}, size_t{20}, whole.size() - 1}) {
    std::string broken = whole;
    broken[at] = static_cast<char>(broken[at] ^ 1);
    std::ofstream(folder_ / "STATE.test", std::ios::binary) << broken;
    EXPECT_THAT([&] { (void)rows.test(spans); }, fails_with(ErrorKind::damaged, "STATE.test")) << at;
  }
  std::ofstream(folder_ / "STATE.test", std::ios::binary) << whole.substr(0, whole.size() - 1);
  EXPECT_THAT([&] { (void)rows.test(spans); }, fails_with(ErrorKind::damaged, "STATE.test"));
}

TEST_F(RowsForGroups, NeedACheckpoint) {
  const Store store = Store::open(folder_ / "store");
  const Classes classes = choose_classes(store.info(), options_);
  TestRows rows(options_, store, classes, "");
  EXPECT_THAT([&] { rows.read({}); }, fails_with(ErrorKind::usage, "test needs a checkpoint"));
}

}  // namespace
}  // namespace linblock
