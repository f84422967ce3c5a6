// Chunks that are not what was written. A checksum stands before all this; here no bytes may do more than be refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

#include "base/random.h"
#include "store/chunk/chunk.h"
#include "store/chunk/row_encoder.h"
#include "support/rows.h"

namespace linblock {
namespace {

using test::OwnedRow;
using testing::HasSubstr;
using Bytes = std::vector<unsigned char>;

constexpr uint64_t kFeatures = 1000;

struct Sample {
  std::string name;
  Bytes bytes;
};

Bytes chunk_of(const std::vector<OwnedRow>& rows, unsigned width_set) {
  ChunkBuilder builder;
  EncodedRows encoded;
  const FeatureMap identity;
  const RowEncoder encoder(identity, width_set);
  for (const OwnedRow& row : rows) {
    encoded.clear();
    encoder.add(row.label, row.weight, row.index, row.value, encoded);
    builder.add(row.id, encoded[0]);
  }
  Buffer raw;
  builder.finish(width_set, raw);
  return {raw.data(), raw.data() + raw.size()};
}

// Small chunks that between them have every encoding of every section.
std::vector<Sample> samples() {
  std::vector<OwnedRow> rows(6);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].id = 10 + i;
    for (uint32_t k = 0; k < (i + 3) % 5; ++k) rows[i].index.push_back(k * k * 7 + static_cast<uint32_t>(i));
    rows[i].value.assign(rows[i].index.size(), 1.0F);
  }
  std::vector<Sample> made = {{"ones", chunk_of(rows, 1)}};
  for (OwnedRow& row : rows) std::fill(row.value.begin(), row.value.end(), 0.5F * static_cast<float>(row.id));
  for (OwnedRow& row : rows) row.label = row.id % 2 == 0 ? 1 : -1;
  made.push_back({"a value a row, two labels", chunk_of(rows, 3)});
  for (OwnedRow& row : rows)
    for (size_t k = 0; k < row.value.size(); ++k) row.value[k] = static_cast<float>(k % 3);
  for (OwnedRow& row : rows) row.label = static_cast<int32_t>(row.id % 3);
  for (OwnedRow& row : rows) row.weight = 2;
  for (OwnedRow& row : rows) row.id *= row.id * row.id;
  made.push_back({"dictionary, three labels, weights, ids with gaps", chunk_of(rows, 5)});
  std::vector<OwnedRow> few(2);
  few[1].id = 1;
  for (uint32_t k = 0; k < 300; ++k) {
    few[0].index.push_back(k);
    few[0].value.push_back(static_cast<float>(k));
  }
  few[1].index = {999};
  few[1].value = {3};
  made.push_back({"each value, counts of two bytes", chunk_of(few, 1)});
  std::vector<OwnedRow> many(260);
  for (size_t i = 0; i < many.size(); ++i) {
    many[i].id = i;
    many[i].label = static_cast<int32_t>(i);
  }
  made.push_back({"260 labels", chunk_of(many, 0)});
  return made;
}

// A chunk in memory that ends, for a sanitizer, where its slack ends.
class TightChunk {
 public:
  ~TightChunk() { unpoison(); }
  Chunk& with(const Bytes& bytes) {
    unpoison();
    chunk_.raw().resize(bytes.size());
    std::copy(bytes.begin(), bytes.end(), chunk_.raw().data());
    const size_t used = bytes.size() + Buffer::kSlack;
    ASAN_POISON_MEMORY_REGION(chunk_.raw().data() + used, chunk_.raw().capacity() - used);
    return chunk_;
  }

 private:
  void unpoison() { ASAN_UNPOISON_MEMORY_REGION(chunk_.raw().data(), chunk_.raw().capacity()); }
  Chunk chunk_;
};

// Everything a reader may do; false where the chunk is refused.
bool read_everything(Chunk& chunk) {
  RowBuffer buffer;
  double sum = 0;
  try {
    chunk.parse(kFeatures, "the chunk");
    for (size_t row = 0; row < chunk.rows(); ++row) {
      sum += chunk.encoded(row, buffer).weight;
      const Row view = chunk.row(row, buffer);
      for (const uint32_t number : view.index) EXPECT_LT(number, kFeatures);
      for (const float value : view.value) sum += value;
    }
    chunk.decode();
    for (size_t row = 0; row < chunk.rows(); ++row)
      for (const uint32_t number : chunk.row(row, buffer).index) EXPECT_LT(number, kFeatures);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::damaged) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("the chunk"));
    return false;
  }
  volatile double used = sum;  // the reads are not optimized away
  (void)used;
  return true;
}

TEST(ChunkDamage, TheSamplesAreWholeBeforeTheyAreDamaged) {
  TightChunk tight;
  for (const Sample& sample : samples()) EXPECT_TRUE(read_everything(tight.with(sample.bytes))) << sample.name;
}

TEST(ChunkDamage, AnyChangedByteIsRefusedOrReadSafely) {
  TightChunk tight;
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(sample.name);
    const size_t table = format::kChunkHeaderBytes + 7 * format::kSectionEntryBytes;
    for (size_t at = 0; at < sample.bytes.size(); ++at) {
      const int step = at < table ? 3 : 17;  // odd: every bit is met
      for (int change = 1; change < 256; change += step) {
        Bytes bytes = sample.bytes;
        bytes[at] ^= static_cast<unsigned char>(change);
        read_everything(tight.with(bytes));
        if (HasFailure()) FAIL() << "byte " << at << " ^ " << change;
      }
    }
  }
}

TEST(ChunkDamage, AnyCutIsRefused) {
  TightChunk tight;
  for (const Sample& sample : samples())
    for (size_t kept = 0; kept < sample.bytes.size(); ++kept)
      EXPECT_FALSE(
          read_everything(tight.with({sample.bytes.begin(), sample.bytes.begin() + static_cast<ptrdiff_t>(kept)})))
          << sample.name << ", " << kept << " bytes";
}

TEST(ChunkDamage, SeveralChangedBytesAreRefusedOrReadSafely) {
  Random random(12);
  TightChunk tight;
  const auto all = samples();
  for (int repeat = 0; repeat < 20000; ++repeat) {
    Bytes bytes = all[random.below(all.size())].bytes;
    for (uint64_t change = 2 + random.below(4); change > 0; --change)
      bytes[random.below(random.below(2) == 0 ? 96 : bytes.size())] = static_cast<unsigned char>(random.below(9));
    read_everything(tight.with(bytes));
  }
}

// None is ever written; the bytes are made here. Weights of no rows have no memory to be copied to.
TEST(ChunkDamage, AChunkWithoutRowsIsReadSafely) {
  Bytes bytes(96, 0);
  store_le(bytes.data() + 16, uint32_t{4});
  const std::array<std::pair<format::Section, uint32_t>, 4> sections = {{{format::Section::weights, 0},
                                                                         {format::Section::counts, 4},
                                                                         {format::Section::lengths, 4},
                                                                         {format::Section::indices, 0}}};
  for (size_t i = 0; i < sections.size(); ++i) {
    store_le(bytes.data() + 24 + 8 * i, static_cast<uint16_t>(sections[i].first));
    store_le(bytes.data() + 28 + 8 * i, sections[i].second);
  }
  TightChunk tight;
  EXPECT_TRUE(read_everything(tight.with(bytes)));
}

// The sentence that parse() refuses a chunk with after `change`.
std::string refusal(const std::function<void(Bytes&)>& change) {
  Bytes bytes = samples()[2].bytes;
  change(bytes);
  TightChunk tight;
  try {
    tight.with(bytes).parse(kFeatures, "the chunk");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::damaged);
    return error.what();
  }
  return "accepted";
}

TEST(ChunkDamage, SaysWhatIsWrongWithTheHeader) {
  EXPECT_EQ(refusal([](Bytes&) {}), "accepted");
  EXPECT_THAT(refusal([](Bytes& b) { b.clear(); }), HasSubstr("shorter than a chunk's header"));
  EXPECT_THAT(refusal([](Bytes& b) { b.resize(23); }), HasSubstr("shorter than a chunk's header"));
  EXPECT_THAT(refusal([](Bytes& b) { b.resize(30); }), HasSubstr("section table does not fit"));
  EXPECT_THAT(refusal([](Bytes& b) { b[20] = 1; }), HasSubstr("reserved"));
  EXPECT_THAT(refusal([](Bytes& b) { b[16] = 8; }), HasSubstr("more sections"));
  EXPECT_THAT(refusal([](Bytes& b) { store_le(b.data(), uint32_t{0x00100001}); }), HasSubstr("number of rows"));
  EXPECT_THAT(refusal([](Bytes& b) { store_le(b.data() + 4, uint32_t{0x7fffffff}); }), HasSubstr("number of nonzeros"));
}

TEST(ChunkDamage, SaysWhatIsWrongWithTheSections) {
  EXPECT_THAT(refusal([](Bytes& b) { b[24] = 9; }), HasSubstr("unknown kind"));
  EXPECT_THAT(refusal([](Bytes& b) { b[24] = 0; }), HasSubstr("unknown kind"));
  EXPECT_THAT(refusal([](Bytes& b) { b[24] = b[32]; }), HasSubstr("two sections of one kind"));
  EXPECT_THAT(refusal([](Bytes& b) { store_le(b.data() + 28, UINT32_MAX); }), HasSubstr("past its end"));
  EXPECT_THAT(refusal([](Bytes& b) { b[26] = 7; }), HasSubstr("row ids have an unknown encoding"));
  EXPECT_THAT(refusal([](Bytes& b) { b[34] = 7; }), HasSubstr("labels have an unknown encoding"));
  EXPECT_THAT(refusal([](Bytes& b) { b[42] = 7; }), HasSubstr("weights have an unknown encoding"));
  EXPECT_THAT(refusal([](Bytes& b) { b[50] = 7; }), HasSubstr("counts or lengths have an unknown encoding"));
  EXPECT_THAT(refusal([](Bytes& b) { b[66] = 99; }), HasSubstr("index code is unknown"));
  EXPECT_THAT(refusal([](Bytes& b) { b[74] = 7; }), HasSubstr("values have an unknown encoding"));
}

// Where a section's bytes begin.
size_t place_of(const Bytes& bytes, format::Section kind) {
  const size_t count = load_le<uint32_t>(bytes.data() + 16);
  size_t offset = format::kChunkHeaderBytes + count * format::kSectionEntryBytes;
  for (size_t i = 0; i < count; ++i) {
    const unsigned char* entry = bytes.data() + format::kChunkHeaderBytes + i * format::kSectionEntryBytes;
    offset = round_up(offset, format::kSectionAlignment);
    if (load_le<uint16_t>(entry) == static_cast<uint16_t>(kind)) return offset;
    offset += load_le<uint32_t>(entry + 4);
  }
  ADD_FAILURE() << "no such section";
  return 0;
}

TEST(ChunkDamage, SaysWhatIsWrongInsideTheSections) {
  using format::Section;
  const auto with = [](Section section, size_t at, auto value) {
    return refusal([&](Bytes& b) { store_le(b.data() + place_of(b, section) + at, value); });
  };
  // Six ids with gaps of two bytes; three labels in a dictionary, then a byte a row; values likewise.
  EXPECT_THAT(with(Section::ids, 1, uint8_t{0x80}), HasSubstr("row ids are cut short"));
  EXPECT_THAT(with(Section::ids, 0, UINT64_MAX), HasSubstr("row ids are cut short"));
  EXPECT_THAT(with(Section::ids, 0, uint8_t{1}), HasSubstr("row ids do not end where they should"));
  EXPECT_THAT(with(Section::labels, 0, uint32_t{2}), HasSubstr("labels have an unknown encoding or a wrong size"));
  EXPECT_THAT(with(Section::labels, 4 + 3 * 4, uint8_t{3}), HasSubstr("a label is not in its dictionary"));
  EXPECT_THAT(with(Section::counts, 0, uint8_t{200}), HasSubstr("rows are longer than its contents"));
  EXPECT_THAT(with(Section::counts, 0, uint8_t{0}), HasSubstr("rows are shorter than its contents"));
  EXPECT_THAT(with(Section::lengths, 0, uint8_t{250}), HasSubstr("rows are longer than its contents"));
  EXPECT_THAT(with(Section::lengths, 0, uint8_t{0}), HasSubstr("rows are shorter than its contents"));
  EXPECT_THAT(with(Section::values, 0, uint32_t{0}), HasSubstr("values have an unknown encoding or a wrong size"));
  EXPECT_THAT(with(Section::values, 4 + 3 * 4, uint8_t{3}), HasSubstr("a value is not in its dictionary"));
}

TEST(ChunkDamage, RefusesFeatureNumbersThatTheStoreDoesNotHave) {
  const Bytes bytes = chunk_of({{.id = 0, .index = {3, 41}, .value = {1, 1}}}, 0);
  TightChunk tight;
  RowBuffer buffer;
  tight.with(bytes).parse(42, "the chunk");
  Chunk& chunk = tight.with(bytes);
  chunk.parse(41, "the chunk");
  EXPECT_THROW(chunk.row(0, buffer), Error);
  EXPECT_THROW(chunk.decode(), Error);
  chunk.parse(42, "the chunk");
  EXPECT_EQ(chunk.row(0, buffer).index[1], 41U);
  EXPECT_NO_THROW(chunk.decode());
}

}  // namespace
}  // namespace linblock
