// Rows kept across blocks come back as they stood in their chunks, in no more memory than was given.
#include "store/blocks/row_cache.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/fields.h"
#include "support/errors.h"
#include "support/memory_folder.h"
#include "support/working_set.h"

namespace linblock::test {
namespace {

// Rows of 0 to 12 features whose values are of one kind, so that a chunk is written with that encoding.
std::vector<OwnedRow> rows_of(const std::string& kind, size_t count = 300) {
  std::vector<OwnedRow> rows(count);
  for (size_t i = 0; i < count; ++i) {
    OwnedRow& row = rows[i];
    row.label = i % 3 == 0 ? 1 : -1;
    for (uint32_t k = 0; k < i % 13; ++k) {
      row.index.push_back(1 + k * 37 + static_cast<uint32_t>(i % 30));
      const auto number = static_cast<float>(i * 13 + k);
      row.value.push_back(kind == "ones"         ? 1.0F
                          : kind == "per row"    ? number - static_cast<float>(k) - 500
                          : kind == "dictionary" ? static_cast<float>((i + k) % 5) - 2
                                                 : 1 / (number + 1));
    }
  }
  return rows;
}

class ValuesOfAKind : public testing::TestWithParam<const char*> {
 protected:
  const MemoryFolder folder_;
  const Store store_ = write_rows(folder_ / "store", rows_of(GetParam()));
};

TEST_P(ValuesOfAKind, ComeBackAsTheyWere) {
  for (const bool decoded : {false, true}) {
    WorkingSet kept(store_, kPlenty, false, decoded);
    ASSERT_EQ(kept.add_all(), 300U);
    EXPECT_EQ(kept.difference(), "");
  }
}

TEST_P(ValuesOfAKind, ArePointedToWhereAllChunksStayInMemory) {
  for (const bool decoded : {false, true}) {
    WorkingSet kept(store_, kPlenty, true, decoded);
    ASSERT_EQ(kept.add_all(), 300U);
    EXPECT_EQ(kept.difference(), "");
    if (!decoded) continue;
    RowBuffer buffer;
    const Row row = kept.chunks()[0].row(5, buffer);
    EXPECT_EQ(kept.cache().row(5, buffer).index.data(), row.index.data());
    EXPECT_EQ(kept.cache().row(5, buffer).value.data(), row.value.data());
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ValuesOfAKind, testing::Values("ones", "per row", "dictionary", "each"),
                         [](const auto& kind) {
                           const std::string name = kind.param;
                           return name == "per row" ? "per_row" : name;
                         });

class RowCaches : public testing::Test {
 protected:
  Store make_store(const std::vector<OwnedRow>& rows) { return write_rows(folder_ / "store", rows); }

  const MemoryFolder folder_;
};

TEST_F(RowCaches, BringBackWideRowsBesideNarrowOnes) {
  std::vector<OwnedRow> rows = rows_of("each", 40);
  for (size_t i = 0; i < rows.size(); i += 3) {
    rows[i].index.push_back(static_cast<uint32_t>(3'000'000'000 + i));
    rows[i].value.push_back(0.25);
  }
  const Store store = make_store(rows);
  WorkingSet kept(store, kPlenty);
  ASSERT_EQ(kept.add_all(), rows.size());
  RowBuffer buffer;
  EXPECT_TRUE(kept.chunks()[0].encoded(0, buffer).wide) << "no test of wide rows";
  EXPECT_FALSE(kept.chunks()[0].encoded(1, buffer).wide) << "no test of narrow rows";
  EXPECT_EQ(kept.difference(), "");
}

TEST_F(RowCaches, BringBackWeights) {
  std::vector<OwnedRow> rows = rows_of("per row", 40);
  for (size_t i = 0; i < rows.size(); ++i) rows[i].weight = static_cast<float>(i) / 8;
  const Store store = make_store(rows);
  WorkingSet kept(store, kPlenty);
  ASSERT_EQ(kept.add_all(), rows.size());
  RowBuffer buffer;
  EXPECT_EQ(kept.cache().row(12, buffer).weight, 1.5F);
  EXPECT_EQ(kept.difference(), "");
}

TEST_F(RowCaches, BringBackRowsWithoutFeatures) {
  const Store store = make_store({{.label = 1}, {.label = -1, .index = {3}, .value = {2}}, {.label = 7}});
  for (const bool resident : {false, true}) {
    WorkingSet kept(store, kPlenty, resident);
    ASSERT_EQ(kept.add_all(), 3U);
    RowBuffer buffer;
    EXPECT_TRUE(kept.cache().row(2, buffer).index.empty());
    EXPECT_EQ(kept.cache().row(2, buffer).label, 7);
    EXPECT_EQ(kept.difference(), "");
  }
}

TEST_F(RowCaches, AreNeverFullerThanTheirCapacity) {
  const Store store = make_store(rows_of("each"));
  WorkingSet all(store, kPlenty);
  all.add_all();
  const uint64_t everything = all.cache().used();
  for (const bool resident : {false, true}) {
    size_t before = 0;
    for (const uint64_t bytes : {uint64_t{0}, uint64_t{47}, uint64_t{500}, uint64_t{5000}, everything - 1}) {
      WorkingSet kept(store, bytes, resident);
      const size_t fitting = kept.add_all();
      EXPECT_LE(kept.cache().used(), bytes);
      EXPECT_GE(fitting, before) << bytes << " bytes";
      EXPECT_EQ(kept.difference(), "") << bytes << " bytes";
      before = fitting;
    }
    EXPECT_EQ(before, resident ? 300U : 299U) << "one byte too few costs one row where rows are copied";
  }
}

TEST_F(RowCaches, AreFilledToTheLastByte) {
  const Store store = make_store(rows_of("each"));
  WorkingSet all(store, kPlenty);
  all.add_all();
  WorkingSet kept(store, all.cache().used());
  EXPECT_EQ(kept.add_all(), 300U);
  EXPECT_EQ(kept.cache().used(), kept.cache().capacity());
  EXPECT_EQ(kept.difference(), "");
}

TEST_F(RowCaches, SayBeforehandWhatARowWillTake) {
  const Store store = make_store(rows_of("dictionary"));
  for (const bool resident : {false, true}) {
    WorkingSet kept(store, kPlenty, resident);
    RowBuffer buffer;
    for (uint32_t row = 0; row < 20; ++row) {
      const uint64_t before = kept.cache().used();
      const uint64_t said = kept.cache().bytes_of(kept.chunks()[0].encoded(row, buffer));
      ASSERT_TRUE(kept.add(0, row));
      EXPECT_EQ(kept.cache().used() - before, said);
      EXPECT_EQ(kept.cache().bytes_of(row), said);
    }
  }
}

TEST_F(RowCaches, DropRowsAndKeepTheOrderOfTheOthers) {
  const Store store = make_store(rows_of("each"));
  for (const bool resident : {false, true}) {
    WorkingSet kept(store, kPlenty, resident);
    kept.add_all();
    std::vector<uint8_t> every_third(300, 0);
    for (size_t i = 1; i < 300; i += 3) every_third[i] = 1;
    kept.keep(every_third);
    EXPECT_EQ(kept.cache().size(), 100U);
    EXPECT_EQ(kept.difference(), "");
    kept.keep(std::vector<uint8_t>(100, 1));
    EXPECT_EQ(kept.cache().size(), 100U);
    EXPECT_EQ(kept.difference(), "");
    kept.keep(std::vector<uint8_t>(100, 0));
    EXPECT_EQ(kept.cache().size(), 0U);
    EXPECT_EQ(kept.cache().used(), 0U);
  }
}

TEST_F(RowCaches, HaveRoomAgainForAsMuchAsWasDropped) {
  const Store store = make_store(rows_of("each"));
  WorkingSet kept(store, 6000);
  const size_t fitting = kept.add_all();
  ASSERT_LT(fitting, 300U);
  std::vector<uint8_t> keep(fitting, 1);
  keep[7] = 0;
  const RowCache::Origin dropped = kept.cache().origin(7);
  kept.keep(keep);
  EXPECT_TRUE(kept.add(dropped.chunk, dropped.row));
  EXPECT_EQ(kept.cache().size(), fitting);
  EXPECT_EQ(kept.difference(), "");
}

TEST_F(RowCaches, AreTheSameAfterASnapshot) {
  const Store store = make_store(rows_of("each"));
  for (const bool resident : {false, true}) {
    WorkingSet before(store, 9000, resident);
    const size_t fitting = before.add_all();
    std::vector<uint8_t> keep(fitting, 1);
    keep[0] = keep[5] = keep[fitting - 1] = 0;
    before.keep(keep);
    SnapshotWriter file(folder_ / "snapshot");
    FieldWriter to(file);
    to("kept", before.cache());
    file.commit();

    WorkingSet after(store, 9000, resident);
    FieldReader from(folder_ / "snapshot");
    from("kept", after.cache());
    from.finish();
    after.expect_the_rows_of(before);
    EXPECT_EQ(after.difference(), "");
    EXPECT_EQ(after.cache().used(), before.cache().used());
    EXPECT_TRUE(after.add(0, 2));
    EXPECT_EQ(after.difference(), "");
  }
}

TEST_F(RowCaches, RefuseASnapshotOfMoreThanTheyHold) {
  const Store store = make_store(rows_of("each"));
  for (const bool resident : {false, true}) {
    WorkingSet large(store, kPlenty, resident);
    large.add_all();
    SnapshotWriter file(folder_ / "snapshot");
    FieldWriter to(file);
    to("kept", large.cache());
    file.commit();
    WorkingSet small(store, 3000, resident);
    FieldReader from(folder_ / "snapshot");
    EXPECT_THAT([&] { from("kept", small.cache()); }, fails_with(ErrorKind::damaged, "kept rows of a checkpoint"));
  }
}

// Added and dropped in any order, beside a plain list.
RC_GTEST_PROP(RowCacheProperty, HoldsWhatAListOfTheSameRowsHolds, ()) {
  const auto rows = *arbitrary_rows(*rc::gen::element<uint32_t>(0, 1), *rc::gen::arbitrary<bool>());
  const auto width_set = *rc::gen::inRange<unsigned>(0, static_cast<unsigned>(format::kWidthSets.size()));
  const MemoryFolder folder;
  const Store store = write_rows(folder / "store", rows, width_set);
  WorkingSet kept(store, *rc::gen::inRange<uint64_t>(0, 200 * rows.size() + 1), *rc::gen::arbitrary<bool>(),
                  *rc::gen::arbitrary<bool>());
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 20; ++i) {
      const auto chunk = *rc::gen::inRange<uint32_t>(0, static_cast<uint32_t>(kept.chunks().size()));
      kept.add(chunk, *rc::gen::inRange<uint32_t>(0, static_cast<uint32_t>(kept.chunks()[chunk].rows())));
    }
    RC_ASSERT(kept.difference() == "");
    kept.keep(*rc::gen::container<std::vector<uint8_t>>(kept.cache().size(), rc::gen::element<uint8_t>(0, 1)));
    RC_ASSERT(kept.difference() == "");
  }
}

}  // namespace
}  // namespace linblock::test
