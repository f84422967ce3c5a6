// Blocks come in the order asked for, whole and once, in bounded memory, whatever the number of threads.
#include "store/blocks/block_stream.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <rapidcheck/gtest.h>

#include <numeric>
#include <set>
#include <thread>

#include "store/blocks/block_source.h"
#include "support/damage.h"
#include "support/memory_folder.h"

namespace linblock::test {
namespace {

// Rows of the chunks of one block, as the store itself reads them.
std::vector<OwnedRow> rows_of(const Store& store, std::span<const uint32_t> chunks) {
  std::vector<OwnedRow> rows;
  Chunk chunk;
  RowBuffer buffer;
  for (const uint32_t number : chunks) {
    store.read(number, chunk);
    for (size_t row = 0; row < chunk.rows(); ++row) rows.push_back(own(chunk.row(row, buffer)));
  }
  return rows;
}

std::vector<OwnedRow> rows_of(const RowBlock& block) {
  std::vector<OwnedRow> rows;
  RowBuffer buffer;
  for (size_t row = 0; row < block.size(); ++row) rows.push_back(own(block.row(row, buffer)));
  return rows;
}

// Empty where the stream gives exactly the blocks of the order.
std::string wrong_blocks(const Store& store, const BlockOrder& order, const BlockStreamOptions& options) {
  BlockStream stream(store, order, options);
  uint32_t begin = 0;
  for (size_t block = 0; block < order.ends.size(); ++block) {
    const RowBlock* given = stream.next();
    if (given == nullptr) return "too few blocks";
    const std::span<const uint32_t> chunks(order.chunks.data() + begin, order.ends[block] - begin);
    if (given->chunks().size() != chunks.size()) return "another number of chunks";
    if (rows_of(*given) != rows_of(store, chunks)) return "other rows in block " + std::to_string(block);
    begin = order.ends[block];
  }
  if (stream.next() != nullptr || stream.next() != nullptr) return "too many blocks";
  return "";
}

class Blocks : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new MemoryFolder;
    pack_rows(sample_rows(3000, 1), *folder_ / "store", small_options("lz4", 2));
    append_rows(sample_rows(1000, 2, 3000, 500), *folder_ / "store", small_options());
    store_ = new Store(Store::open(*folder_ / "store"));
    ASSERT_GT(store_->chunks().size(), 60U);
  }
  static void TearDownTestSuite() {
    delete store_;
    delete folder_;
  }
  static inline MemoryFolder* folder_ = nullptr;
  static inline Store* store_ = nullptr;
};

uint64_t memory_of(const std::vector<Chunk>& chunks) {
  uint64_t sum = 0;
  for (const Chunk& chunk : chunks) sum += chunk.memory_bytes();
  return sum;
}

// Wherever a stream is left: its memory serves the next one, and no more of it than was said.
TEST_F(Blocks, LeaveTheirMemoryToTheNextStream) {
  const BlockOrder order = BlockOrder::all(*store_, 2);
  for (const size_t threads : {1, 3})
    for (const size_t blocks : {size_t{0}, size_t{1}, size_t{10}, order.ends.size() + 1}) {
      const BlockStreamOptions options{.memory_bytes = uint64_t{1} << 20, .team = threads};
      std::set<const unsigned char*> places;
      std::vector<Chunk> idle;
      {
        BlockStream stream(*store_, order, options);
        for (size_t block = 0; block < blocks; ++block) stream.next();
        idle = stream.release(options.memory_bytes);
      }
      EXPECT_LE(memory_of(idle), options.memory_bytes);
      EXPECT_TRUE(blocks == 0 || !idle.empty());
      for (Chunk& chunk : idle) places.insert(chunk.raw().data());
      BlockStream next(*store_, order, options, std::move(idle));
      std::set<const unsigned char*> used;
      size_t rows = 0;
      while (const RowBlock* block = next.next()) {
        rows += block->size();
        for (const Chunk& chunk : block->chunks()) used.insert(const_cast<Chunk&>(chunk).raw().data());
      }
      EXPECT_EQ(rows, store_->info().rows);
      if (blocks > 0) {
        const auto again = [&](const unsigned char* place) { return places.contains(place); };
        EXPECT_GT(std::count_if(used.begin(), used.end(), again), 0) << blocks << " blocks, " << threads << " threads";
      }
      const std::vector<Chunk> few = next.release(options.memory_bytes / 8);
      EXPECT_LE(memory_of(few), options.memory_bytes / 8);
      EXPECT_FALSE(few.empty());
    }
}

TEST_F(Blocks, AreTheSameInEveryPassOverASource) {
  const BlockOrder order = BlockOrder::all(*store_, 2);
  for (const uint64_t kept : {uint64_t{0}, uint64_t{300} << 10, uint64_t{1} << 20}) {
    BlockSource source(*store_, RowsHeld::streamed, uint64_t{1} << 20, 2, {}, false, kept);
    for (int pass = 0; pass < 5; ++pass) {
      size_t blocks = 0;
      RowBuffer buffer;
      // A smaller window, and a pass that ends early, leave nothing wrong behind.
      const uint64_t window = pass == 2 ? uint64_t{200} << 10 : 0;
      source.for_each(
          order,
          [&](const Block& block, size_t number) {
            std::vector<OwnedRow> rows;
            for (const Chunk* chunk : block.chunks)
              for (size_t row = 0; row < chunk->rows(); ++row) rows.push_back(own(chunk->row(row, buffer)));
            EXPECT_TRUE(rows == rows_of(*store_, order.block(number))) << "pass " << pass << ", block " << number;
            return ++blocks < (pass == 1 ? 3 : order.ends.size());
          },
          0, window);
      EXPECT_EQ(blocks, pass == 1 ? 3 : order.ends.size());
    }
  }
}

TEST_F(Blocks, ComeInTheOrderAskedForOnAnyNumberOfThreads) {
  EXPECT_TRUE(rc::check([&] {
    const auto count = static_cast<uint32_t>(store_->chunks().size());
    BlockOrder order;
    order.chunks = *rc::gen::container<std::vector<uint32_t>>(rc::gen::inRange<uint32_t>(0, count));
    for (uint32_t end = 0; end < order.chunks.size();) {
      end = std::min(end + *rc::gen::inRange<uint32_t>(1, 9), static_cast<uint32_t>(order.chunks.size()));
      order.ends.push_back(end);
    }
    const BlockStreamOptions options{.memory_bytes = *rc::gen::element<uint64_t>(1 << 20, 8 << 20),
                                     .team = *rc::gen::element<size_t>(1, 2, 3, 7),
                                     .decode = *rc::gen::arbitrary<bool>()};
    RC_ASSERT(wrong_blocks(*store_, order, options) == "");
  }));
}

TEST_F(Blocks, OfTheWholeStoreHoldEveryRowOnce) {
  for (const size_t chunks_per_block : {1U, 3U, 1000U}) {
    BlockStream stream(*store_, BlockOrder::all(*store_, chunks_per_block), {.team = 2});
    std::vector<uint64_t> ids;
    RowBuffer buffer;
    while (const RowBlock* block = stream.next())
      for (size_t row = 0; row < block->size(); ++row) ids.push_back(block->row(row, buffer).id);
    std::sort(ids.begin(), ids.end());
    std::vector<uint64_t> expected(4000);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(ids, expected) << chunks_per_block;
  }
}

TEST_F(Blocks, CountTheBytesRead) {
  BlockStream stream(*store_, BlockOrder::all(*store_), {});
  while (stream.next() != nullptr) continue;
  uint64_t bytes = 0;
  for (const ChunkInfo& chunk : store_->chunks()) bytes += chunk.extent();
  EXPECT_EQ(stream.costs().bytes, bytes);
}

TEST_F(Blocks, MayBeNone) {
  BlockStream stream(*store_, {}, {.team = 3});
  EXPECT_EQ(stream.next(), nullptr);
}

TEST_F(Blocks, DecodedOrNotHoldTheSameRows) {
  BlockStream decoded(*store_, BlockOrder::all(*store_, 5), {.decode = true});
  BlockStream encoded(*store_, BlockOrder::all(*store_, 5), {.decode = false});
  while (const RowBlock* block = decoded.next()) {
    const RowBlock* other = encoded.next();
    ASSERT_NE(other, nullptr);
    EXPECT_TRUE(block->chunks()[0].decoded());
    EXPECT_FALSE(other->chunks()[0].decoded());
    EXPECT_EQ(rows_of(*block), rows_of(*other));
  }
  EXPECT_EQ(encoded.next(), nullptr);
}

// --- ends ----------------------------------------------------------------------------------------------------------

TEST_F(Blocks, LeftEarlyDoNotHang) {
  for (const size_t threads : {1U, 2U, 7U})
    for (const size_t taken : {0U, 1U, 5U})
      for (int repeat = 0; repeat < 20; ++repeat) {
        BlockStream stream(*store_, BlockOrder::all(*store_, 2), {.memory_bytes = 200 << 10, .team = threads});
        for (size_t i = 0; i < taken; ++i) ASSERT_NE(stream.next(), nullptr);
      }
}

TEST_F(Blocks, WithADamagedChunkFailWhenItsTurnComes) {
  copy_store(*folder_ / "store", *folder_ / "damaged");
  const Store store = Store::open(*folder_ / "damaged");
  constexpr size_t kBad = 20;
  const ChunkInfo& chunk = store.chunks()[kBad];
  FlippableFile file(*folder_ / (chunk.segment == 0 ? "damaged/segment-000001.rows" : "damaged/segment-000002.rows"));
  file.flip(chunk.offset + 5, 3);
  for (const size_t threads : {1U, 2U, 7U}) {
    BlockStream stream(store, BlockOrder::all(store, 3), {.team = threads});
    for (size_t block = 0; block < kBad / 3; ++block) ASSERT_NE(stream.next(), nullptr) << block;
    EXPECT_EQ(damage_overlooked({"chunk " + std::to_string(chunk.number) + " "}, [&] { stream.next(); }), "");
    // It does not go on behind the gap as if nothing had happened.
    EXPECT_EQ(damage_overlooked({}, [&] { stream.next(); }), "");
  }
}

// --- memory --------------------------------------------------------------------------------------------------------

uint64_t needed_for(const Store& store, std::span<const uint32_t> chunks, bool decode) {
  // As much for each as for the largest of the store, so that any chunk's memory can be used again for any other.
  uint64_t largest = 0;
  for (const ChunkInfo& chunk : store.chunks())
    largest = std::max(largest, Chunk::memory_limit(std::max<uint64_t>(chunk.raw_bytes, chunk.extent()), chunk.rows,
                                                    chunk.nonzeros, decode));
  return largest * chunks.size();
}

TEST_F(Blocks, ThatCannotFitAreRefusedAtOnce) {
  const BlockOrder order = BlockOrder::all(*store_, 8);
  uint64_t largest = 0;
  for (size_t block = 0; block < order.ends.size(); ++block) {
    const uint32_t begin = block == 0 ? 0 : order.ends[block - 1];
    largest = std::max(largest, needed_for(*store_, {order.chunks.data() + begin, order.ends[block] - begin}, true));
  }
  EXPECT_EQ(wrong_blocks(*store_, order, {.memory_bytes = largest, .team = 3}), "");
  expect_error(ErrorKind::memory, {"8 chunks", "smaller blocks"},
               [&] { BlockStream stream(*store_, order, {.memory_bytes = largest - 1}); });
}

TEST_F(Blocks, HoldNoMoreThanTheirChunksWereSaidToTake) {
  for (const bool decode : {true, false}) {
    const BlockOrder order = BlockOrder::all(*store_, 4);
    BlockStream stream(*store_, order, {.decode = decode});
    for (uint32_t begin = 0; const RowBlock* block = stream.next(); begin += 4) {
      uint64_t held = 0;
      for (const Chunk& chunk : block->chunks()) held += chunk.memory_bytes();
      // Memory that is used again may have been a larger chunk's: this first pass has none.
      if (begin > 0) continue;
      EXPECT_LE(held, needed_for(*store_, {order.chunks.data(), 4}, decode));
    }
  }
}

uint64_t heap_bytes() {
  const struct mallinfo2 now = ::mallinfo2();
  return now.uordblks + now.hblkhd;
}

// The most that a stream adds to the heap while a slow user lets the readers ahead fill what they may.
uint64_t most_held(const std::vector<OwnedRow>& rows, const BlockStreamOptions& options) {
  const MemoryFolder folder;
  PackOptions packing = small_options();
  packing.memory_bytes = uint64_t{64} << 20;  // for long lines
  packing.shuffle = false;
  pack_rows(rows, folder / "store", packing);
  const Store store = Store::open(folder / "store");
  ::malloc_trim(0);
  const uint64_t before = heap_bytes();
  uint64_t most = before;
  BlockStream stream(store, BlockOrder::all(store), options);
  for (int block = 0; stream.next() != nullptr; ++block) {
    if (block < 100) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    most = std::max(most, heap_bytes());
  }
  return most - before;
}

constexpr uint64_t kSmallChange = 512 << 10;  // threads and slots

TEST(BlockMemory, StaysWithinTheLimit) {
  if (heap_bytes() == 0) GTEST_SKIP() << "this allocator does not say what it holds";
  const BlockStreamOptions options{.memory_bytes = 2 << 20, .team = 3};
  const uint64_t most = most_held(sample_rows(20000, 3, 0, 4000), options);
  EXPECT_LE(most, options.memory_bytes + kSmallChange);
  EXPECT_GT(most, options.memory_bytes / 2) << "little was read ahead";
}

// A few rows far larger than a chunk, then thousands of small ones: memory that is used again counts in full.
TEST(BlockMemory, StaysWithinTheLimitWhereChunksDifferInSize) {
  if (heap_bytes() == 0) GTEST_SKIP() << "this allocator does not say what it holds";
  std::vector<OwnedRow> rows(12);
  for (OwnedRow& row : rows) {
    row.index.resize(40000);
    std::iota(row.index.begin(), row.index.end(), 1);
    row.value.assign(row.index.size(), 0.25F);
    row.value[0] = 1;
  }
  const BlockStreamOptions options{.memory_bytes = 4 << 20, .team = 3};
  EXPECT_LE(most_held(joined(rows, sample_rows(20000, 3, 12, 4000)), options), options.memory_bytes + kSmallChange);
}

}  // namespace
}  // namespace linblock::test
