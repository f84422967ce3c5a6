#include "objective/row_set.h"

#include <gtest/gtest.h>

#include "base/fields.h"
#include "objective/problem.h"
#include "support/folder.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

TEST(RowSet, HoldsWhatWasSetAndNothingElse) {
  RowSet set(130);
  for (const uint64_t id : {0, 63, 64, 129}) set.set(id);
  set.clear(63);
  set.put(64, false);
  set.put(65, true);
  for (uint64_t id = 0; id < 130; ++id) EXPECT_EQ(set.has(id), id == 0 || id == 65 || id == 129) << id;
  EXPECT_EQ(set.count(), 3U);
  EXPECT_EQ(RowSet::bytes(130), 24U);
  EXPECT_EQ(RowSet(0).count(), 0U);
}

TEST(RowSet, ComesBackFromASnapshot) {
  const Folder folder;
  RowSet set(1000);
  for (uint64_t id = 3; id < 1000; id += 7) set.set(id);
  SnapshotWriter file(folder / "file");
  FieldWriter to(file);
  to("rows", set);
  file.commit();
  RowSet other(1000);
  FieldReader from(folder / "file");
  from("rows", other);
  EXPECT_EQ(other, set);
  RowSet smaller(500);
  EXPECT_ANY_THROW(from("rows", smaller));
}

TEST(RowSet, AddsToTheRowsThatAreHeldOut) {
  const HeldOut fold{.seed = 1, .parts = 3, .first = 1, .last = 2};
  RowSet set(100);
  set.set(5);
  set.set(50);
  HeldOut both = fold;
  both.outliers = &set;
  const HeldOut only{.outliers = &set};
  for (uint64_t id = 0; id < 100; ++id) {
    EXPECT_EQ(only.holds(id), set.has(id));
    EXPECT_EQ(both.holds(id), set.has(id) || fold.holds(id));
  }
}

}  // namespace
}  // namespace linblock
