#include "objective/sparse_duals.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/small_problems.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

using Pairs = std::vector<ClassDual>;

Pairs some_pairs(Random& random, uint64_t classes) {
  Pairs pairs(random.below(6));
  for (ClassDual& one : pairs) one = {static_cast<uint32_t>(random.below(classes)), random.unit()};
  return pairs;
}

void expect_same(std::span<const ClassDual> found, const Pairs& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].number, expected[i].number);
    EXPECT_EQ(found[i].dual, expected[i].dual);
  }
}

// Rows of chunks, changed at random in blocks of two chunks, and what they should be.
class SparseDualsTest : public testing::Test {
 protected:
  void change(int blocks) {
    Random random(3);
    for (int i = 0; i < blocks; ++i) {
      const std::vector<uint32_t> chunks = {static_cast<uint32_t>(random.below(3)), 3};
      duals_.fetch(chunks);
      for (int k = 0; k < 30; ++k) {
        const uint32_t chunk = chunks[random.below(2)];
        const auto row = static_cast<uint32_t>(random.below(chunk == 3 ? 4 : 7));
        expect_same(duals_.row(chunk, row), rows_[7 * chunk + row]);
        rows_[7 * chunk + row] = some_pairs(random, classes_);
        duals_.set_row(chunk, row, rows_[7 * chunk + row]);
      }
      duals_.put_back(chunks);
    }
  }
  void expect_as_set(const SparseDuals& duals) const {
    size_t pairs = 0;
    for (uint32_t chunk = 0; chunk < 4; ++chunk) {
      const SparseDuals::Page page = duals.page(chunk);
      ASSERT_EQ(page.counts.size(), chunk == 3 ? 4U : 7U);
      size_t at = 0;
      for (size_t row = 0; row < page.counts.size(); ++row) {
        const Pairs& expected = rows_[7 * chunk + row];
        ASSERT_EQ(page.counts[row], expected.size());
        for (const ClassDual& one : expected) {
          EXPECT_EQ(page.classes[at], one.number);
          EXPECT_EQ(page.duals[at++], one.dual);
        }
      }
      EXPECT_EQ(at, page.classes.size());
      pairs += at;
    }
    EXPECT_EQ(duals.pairs(), pairs);
    EXPECT_EQ(duals.bytes(), 25 * 3 + pairs * 10);
  }

  const Folder folder_;
  const Store store_ = write_store(folder_, make_data(25, 3, 1), 7);
  SparseDuals duals_{store_};
  uint64_t classes_ = 65536;
  std::vector<Pairs> rows_ = std::vector<Pairs>(25);
};

TEST_F(SparseDualsTest, AreZeroAtFirst) {
  expect_as_set(duals_);
  EXPECT_FALSE(duals_.empty());
  EXPECT_TRUE(SparseDuals().empty());
}

TEST_F(SparseDualsTest, AreWhatWasSetAcrossManyBlocks) {
  change(40);
  expect_as_set(duals_);
}

TEST_F(SparseDualsTest, WithClassesThatTheStoreDoesNotHaveDoNotComeBack) {
  change(10);
  SnapshotWriter file(folder_ / "STATE");
  FieldWriter to(file);
  to("duals", duals_);
  file.commit();
  FieldReader from(folder_ / "STATE");
  SparseDuals found(store_);
  EXPECT_THROW(from("duals", found), Error);
}

TEST_F(SparseDualsTest, ComeBackFromASnapshot) {
  classes_ = store_.info().labels.size();
  change(10);
  duals_.passes_out(1)[2] = 2;
  SnapshotWriter file(folder_ / "STATE");
  FieldWriter to(file);
  to("duals", duals_);
  file.commit();
  FieldReader from(folder_ / "STATE");
  SparseDuals found(store_);
  from("duals", found);
  from.finish();
  expect_as_set(found);
  EXPECT_EQ(found.passes_out(1)[2], 2);
  found.wake_all();
  EXPECT_EQ(found.passes_out(1)[2], 0);
}

}  // namespace
}  // namespace linblock
