// A store with tags, written once and kept: version 2 of the manifest stays readable.
//
// To write it anew after a change of that version:
//   store_tests --gtest_also_run_disabled_tests --gtest_filter='*WriteGoldenTags'
#include <gtest/gtest.h>

#include "store/core/compact.h"
#include "store/core/remove.h"
#include "support/memory_folder.h"
#include "support/packing.h"

namespace linblock::test {
namespace {

std::string golden_folder() { return std::string(LINBLOCK_GOLDEN) + "/v2-tags"; }
std::string golden_store() { return golden_folder() + "/store"; }

TEST(GoldenTags, StoreOpensAndVerifies) {
  const Store store = Store::open(golden_store());
  EXPECT_EQ(verify(store, 1).rows, store.info().rows);
  EXPECT_TRUE(read_file(golden_store() + "/MANIFEST").starts_with("linblock-store 2 "));
  EXPECT_EQ(unpacked(store), read_file(golden_folder() + "/rows.svm"));
}

TEST(GoldenTags, StoreHasTheTagsItAlwaysHad) {
  const StoreInfo info = read_manifest(golden_store());
  ASSERT_EQ(info.tags.size(), 2U);
  EXPECT_EQ(info.tags[0].tag, "2026-11-14");
  EXPECT_EQ(info.tags[0].first_row, 0U);
  EXPECT_EQ(info.tags[0].ids, 60U);
  EXPECT_EQ(info.tags[0].rows, 58U);
  EXPECT_EQ(info.tags[1].tag, "2026-11-16");
  EXPECT_EQ(info.tags[1].first_row, 80U);
  EXPECT_EQ(info.tags[1].ids, 40U);
  EXPECT_EQ(info.tags[1].rows, 40U);
  EXPECT_EQ(info.rows, 118U);
}

TEST(GoldenTags, StoreCanBeAppendedToRemovedFromAndCompacted) {
  const MemoryFolder folder;
  copy_store(golden_store(), folder / "copy");
  PackOptions options = small_options();
  options.tag = "2026-11-16";
  expect_error(ErrorKind::input, {"already has 40 rows"},
               [&] { append_rows(sample_rows(5, 9, 120), folder / "copy", options); });
  options.tag = "2026-11-17";
  append_rows(sample_rows(5, 9, 120), folder / "copy", options);
  compact(folder / "copy", {});
  EXPECT_EQ(remove_tag(folder / "copy", "2026-11-14").rows, 58U);
  EXPECT_EQ(verified_rows(folder / "copy").size(), 65U);
}

TEST(GoldenTags, DISABLED_WriteGoldenTags) {
  std::filesystem::remove_all(golden_folder());
  std::filesystem::create_directories(golden_folder());
  const MemoryFolder folder;
  const std::string store = folder / "store";
  PackOptions options = small_options("lz4");
  options.tag = "2026-11-14";
  pack_rows(sample_rows(60, 1), store, options);
  options.tag.clear();
  append_rows(sample_rows(20, 2, 60), store, options);
  options.tag = "2026-11-16";
  append_rows(sample_rows(40, 3, 80), store, options);
  remove_rows(store, {.ids = {3, 59}});
  write_file(golden_folder() + "/rows.svm", unpacked(Store::open(store)));
  std::filesystem::remove(store + "/LOCK");
  copy_store(store, golden_store());
}

}  // namespace
}  // namespace linblock::test
