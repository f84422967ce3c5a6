// Rows through a chunk and back: every encoding of every section, and rows moved from chunk to chunk.
#include "store/chunk/chunk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "base/random.h"
#include "store/chunk/row_encoder.h"
#include "support/rows.h"

namespace linblock {
namespace {

using format::Section;
using test::own;
using test::OwnedRow;
using Rows = std::vector<OwnedRow>;

constexpr uint64_t kFeatures = uint64_t{1} << 32;
constexpr unsigned kWidthSet = 3;

// Some rows, their values drawn by `value(random)` for each nonzero, or once a row.
struct Recipe {
  size_t rows = 20;
  size_t longest = 12;
  std::function<float(Random&)> value = [](Random&) { return 1.0F; };
  bool once_a_row = false;
};

Rows random_rows(uint64_t seed, const Recipe& recipe) {
  Random random(seed);
  Rows rows(recipe.rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].id = i;
    uint32_t next = static_cast<uint32_t>(random.below(100));
    const float value = recipe.value(random);
    for (uint64_t count = random.below(recipe.longest + 1); count > 0; --count) {
      rows[i].index.push_back(next);
      rows[i].value.push_back(recipe.once_a_row ? value : recipe.value(random));
      next += 1 + static_cast<uint32_t>(random.below(uint64_t{1} << random.below(28)));
    }
  }
  return rows;
}

float few_values(Random& random) { return static_cast<float>(random.below(7)) - 3.5F; }
float many_values(Random& random) { return static_cast<float>(random.unit()); }

void add_to(ChunkBuilder& builder, const OwnedRow& row) {
  EncodedRows encoded;
  const FeatureMap identity;
  RowEncoder(identity, kWidthSet).add(row.label, row.weight, row.index, row.value, encoded);
  builder.add(row.id, encoded[0]);
}

void fill(Chunk& chunk, const Rows& rows) {
  ChunkBuilder builder;
  for (const OwnedRow& row : rows) add_to(builder, row);
  ASSERT_EQ(builder.rows(), rows.size());
  builder.finish(kWidthSet, chunk.raw());
  ASSERT_TRUE(builder.empty());
  chunk.parse(kFeatures, "a chunk");
}

Rows read(const Chunk& chunk) {
  Rows rows;
  RowBuffer buffer;
  for (size_t row = 0; row < chunk.rows(); ++row) {
    EXPECT_EQ(chunk.id(row), chunk.row(row, buffer).id);
    rows.push_back(own(chunk.row(row, buffer)));
  }
  return rows;
}

// The encoding in the section table, -1 where there is no such section.
int encoding_of(Chunk& chunk, Section kind) {
  const unsigned char* raw = chunk.raw().data();
  for (uint32_t i = 0; i < load_le<uint32_t>(raw + 16); ++i) {
    const unsigned char* entry = raw + format::kChunkHeaderBytes + i * format::kSectionEntryBytes;
    if (load_le<uint16_t>(entry) == static_cast<uint16_t>(kind)) return load_le<uint16_t>(entry + 2);
  }
  return -1;
}

template <typename Encoding>
bool uses(Chunk& chunk, Section kind, Encoding encoding) {
  return encoding_of(chunk, kind) == static_cast<int>(encoding);
}

// Encoded, decoded, and moved row by row to other chunks, alone and together.
void expect_same_everywhere(const Rows& rows) {
  Chunk chunk;
  fill(chunk, rows);
  ASSERT_EQ(read(chunk), rows) << "encoded";
  EXPECT_FALSE(chunk.decoded());
  RowBuffer buffer;
  ChunkBuilder together;
  for (size_t row = 0; row < rows.size(); ++row) together.add(rows[row].id, chunk.encoded(row, buffer));
  Chunk moved;
  together.finish(chunk.width_set(), moved.raw());
  moved.parse(kFeatures, "a second chunk");
  ASSERT_EQ(read(moved), rows) << "moved to another chunk";
  for (size_t row = 0; row < rows.size(); row += 1 + rows.size() / 20) {
    if (rows[row].index.empty()) continue;  // a test of its own, below
    ChunkBuilder alone;
    alone.add(rows[row].id, chunk.encoded(row, buffer));
    alone.finish(chunk.width_set(), moved.raw());
    ASSERT_NO_THROW(moved.parse(kFeatures, "a third chunk")) << "row alone: " << rows[row];
    ASSERT_EQ(read(moved), Rows{rows[row]}) << "moved alone";
  }
  chunk.decode();
  EXPECT_TRUE(chunk.decoded());
  ASSERT_EQ(read(chunk), rows) << "decoded";
}

TEST(Chunk, WritesNoValuesWhereAllAreOne) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Rows rows = random_rows(seed, {.rows = 1 + seed * 3});
    expect_same_everywhere(rows);
    Chunk chunk;
    fill(chunk, rows);
    EXPECT_EQ(encoding_of(chunk, Section::values), -1);
  }
}

TEST(Chunk, WritesOneValueARowWhereTheyAreEqual) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Rows rows = random_rows(seed, {.rows = 2 + seed * 3, .value = few_values, .once_a_row = true});
    expect_same_everywhere(rows);
    Chunk chunk;
    fill(chunk, rows);
    if (std::ranges::any_of(rows, [](const OwnedRow& row) { return !row.value.empty(); })) {
      EXPECT_TRUE(uses(chunk, Section::values, format::Values::per_row));
    }
  }
}

TEST(Chunk, WritesADictionaryWhereFewValuesDiffer) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Rows rows = random_rows(seed, {.rows = 20 + seed * 3, .value = few_values});
    expect_same_everywhere(rows);
    Chunk chunk;
    fill(chunk, rows);
    EXPECT_TRUE(uses(chunk, Section::values, format::Values::dictionary));
  }
}

TEST(Chunk, WritesEachValueWhereManyDiffer) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Rows rows = random_rows(seed, {.rows = 100, .longest = 30, .value = many_values});
    expect_same_everywhere(rows);
    Chunk chunk;
    fill(chunk, rows);
    EXPECT_TRUE(uses(chunk, Section::values, format::Values::each));
  }
}

TEST(Chunk, HasADictionaryOfUpTo256Values) {
  for (const size_t distinct : {255, 256, 257}) {
    OwnedRow row;
    for (size_t i = 0; i < distinct; ++i) {
      row.index.push_back(static_cast<uint32_t>(i));
      row.value.push_back(static_cast<float>(i) + 0.25F);
    }
    expect_same_everywhere({row});
    Chunk chunk;
    fill(chunk, {row});
    EXPECT_TRUE(uses(chunk, Section::values, distinct <= 256 ? format::Values::dictionary : format::Values::each));
  }
}

TEST(Chunk, ChangesItsMindAboutValuesAsRowsArrive) {
  const std::vector<Recipe> kinds = {{.rows = 5},
                                     {.rows = 5, .value = few_values, .once_a_row = true},
                                     {.rows = 5, .value = few_values},
                                     {.rows = 40, .longest = 20, .value = many_values},
                                     {.rows = 3, .longest = 0}};
  for (size_t a = 0; a < kinds.size(); ++a)
    for (size_t b = 0; b < kinds.size(); ++b)
      for (size_t c = 0; c < kinds.size(); ++c) {
        Rows rows;
        for (const size_t kind : {a, b, c})
          for (OwnedRow& row : random_rows(a * 25 + b * 5 + c, kinds[kind])) rows.push_back(std::move(row));
        for (size_t i = 0; i < rows.size(); ++i) rows[i].id = 7 + i;
        SCOPED_TRACE(testing::Message() << a << b << c);
        expect_same_everywhere(rows);
      }
}

TEST(Chunk, TellsZerosOfBothSignsApart) {
  const Rows rows = {{.id = 0, .index = {1, 2, 3}, .value = {0.0F, -0.0F, 0.0F}},
                     {.id = 1, .index = {1}, .value = {-0.0F}}};
  for (const Rows& some : {rows, Rows{rows[1]}, Rows{rows[0]}}) {
    Chunk chunk;
    fill(chunk, some);
    RowBuffer buffer;
    for (size_t row = 0; row < some.size(); ++row)
      for (size_t i = 0; i < some[row].value.size(); ++i)
        EXPECT_EQ(std::signbit(chunk.row(row, buffer).value[i]), std::signbit(some[row].value[i]));
  }
}

TEST(Chunk, KeepsWeightsFromTheFirstThatIsNotOne) {
  for (const size_t from : {0, 1, 7, 19}) {
    Rows rows = random_rows(from, {.value = few_values});
    for (size_t i = from; i < rows.size(); ++i) rows[i].weight = 0.5F * static_cast<float>(i % 4);
    if (from == 19) rows[19].weight = 0;
    expect_same_everywhere(rows);
    Chunk chunk;
    fill(chunk, rows);
    EXPECT_TRUE(uses(chunk, Section::weights, format::Weights::each));
  }
  Chunk chunk;
  fill(chunk, random_rows(1, {}));
  EXPECT_EQ(encoding_of(chunk, Section::weights), -1) << "all are 1";
}

TEST(Chunk, WritesLabelsInTheBytesTheirNumberNeeds) {
  using format::Labels;
  const std::vector<std::pair<int, Labels>> cases = {{1, Labels::constant}, {2, Labels::bits},    {3, Labels::bytes},
                                                     {256, Labels::bytes},  {257, Labels::words}, {300, Labels::words}};
  for (const auto& [distinct, encoding] : cases) {
    Rows rows = random_rows(5, {.rows = 613, .longest = 3});
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i].label = static_cast<int>(i * 7 % static_cast<size_t>(distinct)) * -7919 + 5;
    expect_same_everywhere(rows);
    Chunk chunk;
    fill(chunk, rows);
    EXPECT_TRUE(uses(chunk, Section::labels, encoding)) << distinct << " labels";
  }
  Rows extremes = random_rows(6, {.rows = 3});
  extremes[0].label = INT32_MAX;
  extremes[1].label = -INT32_MAX;
  expect_same_everywhere(extremes);
}

TEST(Chunk, WritesIdsOnlyWhereTheyHaveGaps) {
  Rows rows = random_rows(8, {.rows = 50});
  for (OwnedRow& row : rows) row.id += uint64_t{1} << 40;
  expect_same_everywhere(rows);
  Chunk chunk;
  fill(chunk, rows);
  EXPECT_EQ(encoding_of(chunk, Section::ids), -1);
  Random random(8);
  uint64_t id = 0;
  for (OwnedRow& row : rows) row.id = id += 1 + random.below(uint64_t{1} << random.below(50));
  expect_same_everywhere(rows);
  fill(chunk, rows);
  EXPECT_TRUE(uses(chunk, Section::ids, format::Ids::gaps));
}

TEST(Chunk, WritesCountsInTheBytesTheLongestRowNeeds) {
  using format::Numbers;
  const std::vector<std::pair<size_t, Numbers>> cases = {{0, Numbers::constant},
                                                         {255, Numbers::bytes},
                                                         {256, Numbers::halves},
                                                         {65535, Numbers::halves},
                                                         {65536, Numbers::words}};
  for (const auto& [longest, encoding] : cases) {
    Rows rows(3);
    for (size_t i = 0; i < rows.size(); ++i) rows[i].id = i;
    for (uint32_t i = 0; i < longest; ++i) rows[1].index.push_back(i * 3);
    rows[1].value.assign(longest, 1.0F);
    expect_same_everywhere(rows);
    Chunk chunk;
    fill(chunk, rows);
    EXPECT_TRUE(uses(chunk, Section::counts, encoding)) << longest;
  }
}

TEST(Chunk, KeepsRowsThatNeedTheWideSetAmongOthers) {
  Rows rows = random_rows(9, {.rows = 30, .value = few_values});
  for (size_t i = 0; i < rows.size(); i += 3) {
    rows[i].index.push_back(format::kLargestIndex - static_cast<uint32_t>(i));
    rows[i].value.push_back(2.0F);
  }
  expect_same_everywhere(rows);
}

// As Store::gather does with a row that has nothing but a label.
TEST(Chunk, GivesItsEmptyRowsToOtherChunksWhateverItsValues) {
  for (const auto& value : {few_values, many_values}) {
    Rows rows = random_rows(3, {.rows = 60, .longest = 30, .value = value});
    rows[2] = {.id = 2, .label = 5, .index = {}, .value = {}};
    rows[3] = {.id = 3, .label = 6, .index = {}, .value = {}};
    Chunk chunk;
    fill(chunk, rows);
    RowBuffer buffer;
    ChunkBuilder builder;
    builder.add(2, chunk.encoded(2, buffer));
    builder.add(3, chunk.encoded(3, buffer));
    Chunk moved;
    builder.finish(chunk.width_set(), moved.raw());
    ASSERT_NO_THROW(moved.parse(kFeatures, "a second chunk"));
    EXPECT_EQ(read(moved), (Rows{rows[2], rows[3]}));
  }
}

TEST(Chunk, IsTheSameWhenItsMemoryAndItsBuilderAreUsedAgain) {
  ChunkBuilder builder;
  Chunk chunk;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Rows rows = random_rows(
        seed,
        {.rows = 1 + seed * 7 % 31, .value = seed % 3 == 0 ? many_values : few_values, .once_a_row = seed % 2 == 0});
    if (seed % 5 == 0) rows.back().weight = 3;
    for (const OwnedRow& row : rows) add_to(builder, row);
    builder.finish(kWidthSet, chunk.raw());
    chunk.parse(kFeatures, "a chunk");
    ASSERT_EQ(read(chunk), rows) << seed;
    if (seed % 4 != 0) chunk.decode();
    ASSERT_EQ(read(chunk), rows) << seed;
  }
}

TEST(Chunk, TakesNoMoreMemoryThanItsDirectoryEntrySays) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Rows rows =
        random_rows(seed, {.rows = 1 + seed * 40, .longest = 30, .value = seed % 2 == 0 ? many_values : few_values});
    for (OwnedRow& row : rows) row.weight = 2;
    Chunk chunk;
    fill(chunk, rows);
    const size_t raw = chunk.raw().size();
    EXPECT_LE(chunk.memory_bytes(), Chunk::memory_limit(raw, chunk.rows(), chunk.nonzeros(), false));
    chunk.decode();
    EXPECT_LE(chunk.memory_bytes(), Chunk::memory_limit(raw, chunk.rows(), chunk.nonzeros(), true));
  }
}

TEST(ChunkBuilder, AlwaysHasRoomForOneRowAndThenOnlyWithinTheSize) {
  const Rows rows = random_rows(4, {.rows = 1000, .value = many_values});
  ChunkBuilder builder;
  EncodedRows encoded;
  const FeatureMap identity;
  const RowEncoder encoder(identity, kWidthSet);
  for (const OwnedRow& row : rows) encoder.add(1, 1, row.index, row.value, encoded);
  EXPECT_TRUE(builder.has_room_for(encoded[0], 1));
  size_t added = 0;
  while (added < rows.size() && builder.has_room_for(encoded[added], 8192)) {
    builder.add(added, encoded[added]);
    ++added;
  }
  EXPECT_FALSE(builder.has_room_for(encoded[0], 1));
  Buffer raw;
  builder.finish(kWidthSet, raw);
  EXPECT_GT(raw.size(), 8192U / 2);
  EXPECT_LE(raw.size(), 8192U + 256);
}

}  // namespace
}  // namespace linblock
