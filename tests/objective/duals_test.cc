// Dual variables in memory and in a file: pages that come back, versions that do not overwrite each other.
#include "objective/duals.h"

#include <gtest/gtest.h>

#include "support/damage.h"
#include "support/memory_folder.h"
#include "support/small_problems.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

constexpr size_t kRows = 26;  // in chunks of 7, 7, 7 and 5

class DualsInAFile : public testing::Test {
 protected:
  static std::vector<uint32_t> all_chunks() { return {0, 1, 2, 3}; }
  // A number for every row of every chunk and version.
  static double number(uint32_t chunk, size_t row, uint32_t version) {
    return 1000.0 * version + 10 * chunk + static_cast<double>(row) + 0.125;
  }
  static uint8_t passes_out(uint32_t chunk, size_t row, uint32_t version) {
    return static_cast<uint8_t>(40 * version + 8 * chunk + row);
  }
  static void write(Duals& duals, const std::vector<uint32_t>& chunks, uint32_t version) {
    duals.fetch(chunks);
    for (const uint32_t chunk : chunks)
      for (size_t row = 0; row < duals.page(chunk).size(); ++row) {
        duals.page(chunk)[row] = number(chunk, row, version);
        duals.passes_out(chunk)[row] = passes_out(chunk, row, version);
      }
    duals.put_back(chunks, version);
  }
  static void expect_version(Duals& duals, const std::vector<uint32_t>& chunks, uint32_t version) {
    duals.fetch(chunks);
    for (const uint32_t chunk : chunks) {
      ASSERT_EQ(duals.page(chunk).size(), chunk == 3 ? 5U : 7U);
      ASSERT_EQ(duals.passes_out(chunk).size(), duals.page(chunk).size());
      for (size_t row = 0; row < duals.page(chunk).size(); ++row) {
        EXPECT_EQ(duals.page(chunk)[row], version == 0 ? 0 : number(chunk, row, version)) << chunk << ", row " << row;
        EXPECT_EQ(duals.passes_out(chunk)[row], version == 0 ? 0 : passes_out(chunk, row, version))
            << chunk << ", row " << row;
      }
    }
  }

  const MemoryFolder folder_;
  const Store store_ = write_store(folder_, make_data(kRows, 3, 1), 7);
  const std::string path_ = folder_ / "duals";
};

TEST_F(DualsInAFile, AreZerosAtFirst) {
  Duals duals(store_, path_);
  EXPECT_TRUE(duals.in_file());
  EXPECT_FALSE(duals.empty());
  expect_version(duals, all_chunks(), 0);
}

TEST_F(DualsInAFile, ComeBackAsTheyWerePutBack) {
  Duals duals(store_, path_);
  write(duals, all_chunks(), 1);
  expect_version(duals, all_chunks(), 1);
}

TEST_F(DualsInAFile, ComeBackInAnyOrderAndCompany) {
  Duals duals(store_, path_);
  write(duals, {2, 0}, 1);
  write(duals, {3, 1}, 1);
  expect_version(duals, {3}, 1);
  expect_version(duals, {1, 2}, 1);
  expect_version(duals, {3, 2, 1, 0}, 1);
  expect_version(duals, {0, 3}, 1);
}

TEST_F(DualsInAFile, AreReadAnewWhenTheyWereNotPutBack) {
  Duals duals(store_, path_);
  write(duals, all_chunks(), 1);
  duals.fetch(all_chunks());
  duals.page(2)[0] = -1;
  expect_version(duals, all_chunks(), 1);
}

TEST_F(DualsInAFile, HaveAVersionForEachChunk) {
  Duals duals(store_, path_);
  write(duals, all_chunks(), 1);
  write(duals, {1, 3}, 2);
  expect_version(duals, {0}, 1);
  expect_version(duals, {1}, 2);
  expect_version(duals, {2}, 1);
  expect_version(duals, {3}, 2);
}

// What a checkpoint between two versions relies on.
TEST_F(DualsInAFile, KeepTheVersionBeforeUntilTheOneAfterNext) {
  Duals duals(store_, path_);
  for (uint32_t version = 1; version <= 5; ++version) {
    write(duals, all_chunks(), version);
    for (const uint32_t chunk : all_chunks()) duals.set_version(chunk, version - 1);
    expect_version(duals, all_chunks(), version - 1);
    for (const uint32_t chunk : all_chunks()) duals.set_version(chunk, version);
    expect_version(duals, all_chunks(), version);
  }
}

TEST_F(DualsInAFile, RefuseAVersionThatWasOverwritten) {
  Duals duals(store_, path_);
  for (uint32_t version = 1; version <= 3; ++version) write(duals, all_chunks(), version);
  duals.set_version(2, 1);
  expect_error(ErrorKind::damaged, {path_, "chunk 2", "start over with fresh"}, [&] { duals.fetch(all_chunks()); });
}

TEST_F(DualsInAFile, AreTakenUpAgainByAnother) {
  {
    Duals duals(store_, path_);
    write(duals, all_chunks(), 1);
    write(duals, {0, 1}, 2);
    duals.sync();
  }
  Duals duals(store_, path_);
  expect_version(duals, all_chunks(), 0);
  for (const uint32_t chunk : all_chunks()) duals.set_version(chunk, chunk < 2 ? 2 : 1);
  expect_version(duals, {0, 1}, 2);
  expect_version(duals, {2, 3}, 1);
}

TEST_F(DualsInAFile, RefuseEveryFlippedBit) {
  Duals duals(store_, path_);
  write(duals, all_chunks(), 1);
  write(duals, all_chunks(), 2);
  FlippableFile file(path_);
  EXPECT_EQ(file.size(), 2 * (kRows * Duals::kBytesPerRow + 4 * 8)) << "a version is alphas, rests and checksums";
  for (size_t at = 0; at < file.size(); ++at) {
    // Even versions stand before odd ones.
    const uint32_t version = at < file.size() / 2 ? 2 : 1;
    for (const uint32_t chunk : all_chunks()) duals.set_version(chunk, version);
    for (const unsigned bit : {0U, 6U, 7U}) {
      file.flip(at, bit);
      EXPECT_EQ(
          damage_overlooked({path_, "wrong checksum", "start over with fresh"}, [&] { duals.fetch(all_chunks()); }), "")
          << "byte " << at << ", bit " << bit;
      file.restore(at);
    }
  }
  expect_version(duals, all_chunks(), 1);
}

TEST_F(DualsInAFile, RefuseAFileThatWasCut) {
  Duals duals(store_, path_);
  write(duals, all_chunks(), 2);
  const uint64_t whole = std::filesystem::file_size(path_);
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, whole / 2, whole - 1}) {
    std::filesystem::resize_file(path_, bytes);
    EXPECT_EQ(damage_overlooked({path_}, [&] { duals.fetch(all_chunks()); }), "") << bytes << " bytes";
  }
}

TEST_F(DualsInAFile, RefusePagesInEachOthersPlace) {
  Duals duals(store_, path_);
  write(duals, all_chunks(), 2);
  std::string bytes = read_file(path_);
  const size_t page = 7 * Duals::kBytesPerRow + 8;
  write_file(path_, bytes.substr(page, page) + bytes.substr(0, page) + bytes.substr(2 * page));
  EXPECT_EQ(damage_overlooked({"chunk 0"}, [&] { duals.fetch(std::vector<uint32_t>{0}); }), "");
  EXPECT_EQ(damage_overlooked({"chunk 1"}, [&] { duals.fetch(std::vector<uint32_t>{1}); }), "");
}

TEST_F(DualsInAFile, NeedOnlyTheMemoryOfThePagesAtHand) {
  Duals duals(store_, path_);
  duals.fetch(std::vector<uint32_t>{3});
  EXPECT_EQ(duals.all().size(), 5U);
  duals.fetch(std::vector<uint32_t>{0, 3});
  EXPECT_EQ(duals.all().size(), 12U);
}

TEST(DualsInMemory, AreAllAtHandAllTheTime) {
  const Folder folder;
  const Store store = write_store(folder, make_data(kRows, 3, 1), 7);
  EXPECT_TRUE(Duals().empty());
  Duals duals(store);
  EXPECT_FALSE(duals.in_file());
  ASSERT_EQ(duals.all().size(), kRows);
  ASSERT_EQ(duals.all_passes_out().size(), kRows);
  for (const double alpha : duals.all()) EXPECT_EQ(alpha, 0);
  duals.fetch(std::vector<uint32_t>{1});
  duals.page(3)[4] = 2.5;
  duals.passes_out(3)[4] = 9;
  duals.put_back(std::vector<uint32_t>{1}, 7);
  duals.fetch(std::vector<uint32_t>{0});
  EXPECT_EQ(duals.all().back(), 2.5);
  EXPECT_EQ(duals.all_passes_out().back(), 9);
}

}  // namespace
}  // namespace linblock
