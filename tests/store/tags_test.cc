// Tags: refused twice, kept by compact, free again after a removal; and what a manifest may say of them.
#include "store/core/tags.h"

#include <gtest/gtest.h>

#include "store/core/compact.h"
#include "store/core/remove.h"
#include "support/damage.h"
#include "support/memory_folder.h"

namespace linblock::test {
namespace {

using Names = std::vector<std::string>;

PackOptions tagged(const std::string& tag) {
  PackOptions options = small_options("lz4");
  options.tag = tag;
  return options;
}

class Tags : public ::testing::Test {
 protected:
  // Three days, each with a tag, and rows without one between the second and the third.
  void SetUp() override {
    for (size_t i = 0; i < kParts; ++i) {
      parts_.push_back(sample_rows(200 + 50 * i, i + 1, rows_.size()));
      rows_ = joined(rows_, parts_.back());
    }
    pack_rows(parts_[0], store_, tagged("monday"));
    append_rows(parts_[1], store_, tagged("tuesday"));
    append_rows(parts_[2], store_, small_options());
    append_rows(parts_[3], store_, tagged("wednesday"));
  }

  StoreInfo info() const { return Store::open(store_).info(); }
  Names tags() const {
    Names names;
    for (const TaggedRows& there : info().tags) names.push_back(fmt::format("{} {}", there.tag, there.rows));
    return names;
  }
  std::vector<OwnedRow> without(const std::vector<size_t>& parts) const {
    std::vector<OwnedRow> rows;
    for (size_t i = 0; i < kParts; ++i)
      if (std::find(parts.begin(), parts.end(), i) == parts.end()) rows = joined(rows, parts_[i]);
    return rows;
  }
  void expect_untouched(ErrorKind kind, const Names& parts, const std::function<void()>& work) const {
    const auto before = files_of(store_);
    expect_error(kind, parts, work);
    EXPECT_TRUE(files_of(store_) == before) << ::testing::PrintToString(names_in(store_));
  }

  static constexpr size_t kParts = 4;
  const MemoryFolder folder_;
  const std::string store_ = folder_ / "store";
  std::vector<std::vector<OwnedRow>> parts_;
  std::vector<OwnedRow> rows_;
};

TEST_F(Tags, AreInTheManifestWithTheirRows) {
  const StoreInfo now = info();
  ASSERT_EQ(now.tags.size(), 3U);
  EXPECT_EQ(tags(), (Names{"monday 200", "tuesday 250", "wednesday 350"}));
  EXPECT_EQ(now.tags[1].first_row, 200U);
  EXPECT_EQ(now.tags[2].first_row, 750U);
  EXPECT_EQ(now.tags[2].ids, 350U);
  EXPECT_EQ(manifest_version(now), 2U);
  EXPECT_EQ(verified_rows(store_), rows_);
}

TEST_F(Tags, AreReportedWithSegmentAndFirstRow) {
  const PackReport report = append_rows(sample_rows(7, 9, 1100), store_, tagged("thursday"));
  EXPECT_EQ(report.segment, 5U);
  EXPECT_EQ(report.first_row, 1100U);
  EXPECT_EQ(report.rows, 7U);
}

TEST_F(Tags, AreRefusedTwiceBeforeAnyWork) {
  for (const char* tag : {"monday", "wednesday"})
    expect_untouched(ErrorKind::input, {"already has", tag, "linblock remove", "to replace them"},
                     [&] { append({"there is no such file"}, store_, tagged(tag)); });
  EXPECT_EQ(verified_rows(store_), rows_);
}

TEST_F(Tags, ThatAreNoWordsAreNeverWritten) {
  expect_untouched(ErrorKind::usage, {"tag 'a b' is not a tag"},
                   [&] { append_rows(sample_rows(3, 9, 1100), store_, tagged("a b")); });
  expect_error(ErrorKind::usage, {"tag 'a b' is not a tag"},
               [&] { pack_rows(sample_rows(3), folder_ / "other", tagged("a b")); });
  EXPECT_FALSE(std::filesystem::exists(folder_ / "other"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "other.partial"));
}

TEST_F(Tags, OfAnAppendThatFailedCanBeUsedAgain) {
  const std::atomic<bool> stop = true;
  write_file(folder_ / "more.svm", text_of(sample_rows(300, 8)));
  expect_untouched(ErrorKind::interrupted, {"interrupted"},
                   [&] { append({folder_ / "more.svm"}, store_, tagged("thursday"), {.stop = &stop}); });
  append({folder_ / "more.svm"}, store_, tagged("thursday"));
  EXPECT_EQ(tags().back(), "thursday 300");
}

TEST_F(Tags, TakeTheirSegmentWithThem) {
  const RemoveReport report = remove_tag(store_, "tuesday", {.team = 3});
  EXPECT_EQ(report.rows, 250U);
  EXPECT_EQ(report.segments, std::vector<uint64_t>{2});
  EXPECT_EQ(report.tags, Names{"tuesday"});
  EXPECT_FALSE(std::filesystem::exists(segment_path(store_, 2)));
  EXPECT_EQ(info().removed.rows, 0U);
  EXPECT_EQ(tags(), (Names{"monday 200", "wednesday 350"}));
  EXPECT_EQ(verified_rows(store_), without({1}));
}

TEST_F(Tags, AreFreeAgainAfterARemoval) {
  remove_tag(store_, "tuesday");
  append_rows(sample_rows(10, 5, 1100), store_, tagged("tuesday"));
  EXPECT_EQ(tags(), (Names{"monday 200", "wednesday 350", "tuesday 10"}));
  remove_tag(store_, "tuesday");
  EXPECT_EQ(verified_rows(store_), without({1}));
}

TEST_F(Tags, CanBeRemovedAfterCompact) {
  remove_rows(store_, {.ids = {3, 201, 1000}});
  compact(store_, {});
  EXPECT_EQ(tags(), (Names{"monday 199", "tuesday 249", "wednesday 349"}));
  const RemoveReport report = remove_tag(store_, "tuesday", {.team = 2});
  EXPECT_EQ(report.rows, 249U);
  EXPECT_EQ(report.segments, std::vector<uint64_t>{});
  EXPECT_EQ(info().removed.rows, 249U);
  EXPECT_EQ(tags(), (Names{"monday 199", "wednesday 349"}));
  std::vector<OwnedRow> left = without({1});
  std::erase_if(left, [](const OwnedRow& row) { return row.id == 3 || row.id == 1000; });
  EXPECT_EQ(verified_rows(store_), left);
  compact(store_, {});
  EXPECT_EQ(verified_rows(store_), left);
  remove_tag(store_, "monday");
  EXPECT_EQ(tags(), Names{"wednesday 349"});
}

// Rows of the segment that compact has made leave one tag after another, and in the end the file goes too.
TEST_F(Tags, TheLastOfASegmentTakesItWithThem) {
  remove_rows(store_, {.ranges = {{.first = 450, .last = 749}}});
  compact(store_, {});
  append_rows(sample_rows(20, 7, 1100), store_, tagged("thursday"));
  for (const char* tag : {"wednesday", "monday"}) EXPECT_EQ(remove_tag(store_, tag).segments.size(), 0U);
  EXPECT_EQ(info().removed.rows, 550U);
  const RemoveReport last = remove_tag(store_, "tuesday");
  EXPECT_EQ(last.segments.size(), 1U);
  EXPECT_EQ(info().removed.rows, 0U);
  EXPECT_EQ(info().segments.size(), 1U);
  EXPECT_EQ(verified_rows(store_), sample_rows(20, 7, 1100));
}

TEST_F(Tags, WithoutRowsLeaveTheManifest) {
  remove_segment(store_, 1);
  EXPECT_EQ(tags(), (Names{"tuesday 250", "wednesday 350"}));
  const RemoveReport report = remove_rows(store_, {.ranges = {{.first = 190, .last = 449}}});
  EXPECT_EQ(report.rows, 250U);
  EXPECT_EQ(report.tags, Names{"tuesday"});
  EXPECT_EQ(tags(), Names{"wednesday 350"});
  expect_untouched(ErrorKind::input, {"no rows with the tag 'tuesday'", "'wednesday'"},
                   [&] { remove_tag(store_, "tuesday"); });
}

TEST_F(Tags, ThatAreNotThereAreRefusedWithThoseThatAre) {
  expect_untouched(ErrorKind::input, {"no rows with the tag 'sunday'", "it has 'monday', 'tuesday', 'wednesday'"},
                   [&] { remove_tag(store_, "sunday"); });
  for (int i = 0; i < 9; ++i) append_rows(sample_rows(2, 3, 1100 + 2 * i), store_, tagged(fmt::format("day-{}", i)));
  expect_untouched(ErrorKind::input, {"its 12 tags end with 'day-4', 'day-5', 'day-6', 'day-7', 'day-8'"},
                   [&] { remove_tag(store_, "sunday"); });
  pack_rows(sample_rows(3), folder_ / "plain", small_options());
  expect_error(ErrorKind::input, {"it has no tags"}, [&] { remove_tag(folder_ / "plain", "monday"); });
}

TEST_F(Tags, OfAllRowsCannotBeRemoved) {
  remove_tag(store_, "monday");
  remove_tag(store_, "tuesday");
  remove_segment(store_, 3);
  expect_untouched(ErrorKind::input, {"all rows", "at least"}, [&] { remove_tag(store_, "wednesday"); });
}

TEST_F(Tags, ThatHaveGoneLeaveAManifestOfVersion1) {
  for (const char* tag : {"monday", "tuesday", "wednesday"}) remove_tag(store_, tag);
  EXPECT_TRUE(read_file(store_ + "/MANIFEST").starts_with("linblock-store 1 "));
  EXPECT_EQ(verified_rows(store_), parts_[2]);
}

TEST_F(Tags, DoNotChangeTheBytesOfRows) {
  pack_rows(parts_[0], folder_ / "plain", small_options("lz4"));
  auto plain = files_of(folder_ / "plain");
  pack_rows(parts_[0], folder_ / "tagged", tagged("monday"));
  auto with_tag = files_of(folder_ / "tagged");
  EXPECT_TRUE(plain["MANIFEST"].starts_with("linblock-store 1 "));
  EXPECT_TRUE(with_tag["MANIFEST"].starts_with("linblock-store 2 "));
  plain.erase("MANIFEST");
  with_tag.erase("MANIFEST");
  EXPECT_TRUE(plain == with_tag);
}

TEST(TagWords, AreShortAndPlain) {
  for (const char* good : {"a", "2026-11-16", "A.b_c-9", "-", ".."}) {
    ASSERT_TRUE(Tag::read(good)) << good;
    EXPECT_EQ(Tag::read(good)->name, good);
  }
  EXPECT_TRUE(Tag::read(std::string(64, 'x')));
  for (const std::string& bad :
       {std::string(), std::string(65, 'x'), std::string("a b"), std::string("a/b"), std::string("a,b"),
        std::string("tag\n"), std::string("\xc3\xa4"), std::string(1, '\0')})
    EXPECT_FALSE(Tag::read(bad)) << bad;
}

class WrongTags : public Tags {
 protected:
  // Empty where a manifest with this change is refused as damaged.
  std::string overlooked(const std::function<void(StoreInfo&)>& change, const std::vector<std::string>& parts) const {
    const std::string whole = read_file(store_ + "/MANIFEST");
    StoreInfo changed = read_manifest(store_);
    change(changed);
    write_manifest(store_, changed);
    const std::string wrong = damage_overlooked(parts, [&] { open_and_verify(store_); });
    write_file(store_ + "/MANIFEST", whole);
    open_and_verify(store_);
    return wrong;
  }
};

TEST_F(WrongTags, AreRefused) {
  const Names names = {"MANIFEST"};
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.tags[1].tag = "monday"; }, {"MANIFEST", "twice"}), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.tags[1].tag = "a b"; }, names), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.tags[1].tag = ""; }, names), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.tags[1].first_row = 199; }, {"MANIFEST", "out of order"}), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { std::swap(info.tags[0], info.tags[2]); }, {"out of order"}), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.tags[0].rows = 0; }, {"without rows"}), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.tags[0].rows = 201; }, {"more than its ids"}), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.tags[2].ids = 351; }, {"row ids that it does not have"}), "");
  EXPECT_EQ(overlooked([](StoreInfo& info) { info.tags[2].ids = uint64_t{1} << 56; }, {"row ids"}), "");
  EXPECT_EQ(
      overlooked([](StoreInfo& info) { info.tags[0].rows = 199; }, {"200 rows have the tag 'monday' instead of 199"}),
      "");
  EXPECT_EQ(
      overlooked([](StoreInfo& info) { info.tags[1].first_row += 1, info.tags[1].ids -= 1, info.tags[1].rows -= 2; },
                 {"'tuesday' instead of"}),
      "");
}

// Verify reads everything; a removal finds out by itself, and nothing changes.
TEST_F(WrongTags, AreFoundOutByARemoval) {
  StoreInfo changed = read_manifest(store_);
  changed.tags[1].rows -= 1;
  write_manifest(store_, changed);
  expect_untouched(ErrorKind::damaged, {"250 rows have the tag 'tuesday' instead of 249"},
                   [&] { remove_tag(store_, "tuesday"); });
  expect_untouched(ErrorKind::damaged, {"more than 249 rows have the tag 'tuesday'"},
                   [&] { remove_rows(store_, {.ranges = {{.first = 200, .last = 449}}}); });
}

TEST_F(WrongTags, OfAnyBitAreNamed) {
  FlippableFile file(store_ + "/MANIFEST");
  for (size_t at = 0; at < file.size(); ++at)
    for (unsigned bit = 0; bit < 8; ++bit) {
      file.flip(at, bit);
      const std::string wrong = damage_overlooked({"MANIFEST"}, [&] { read_manifest(store_); });
      file.restore(at);
      ASSERT_EQ(wrong, "") << "byte " << at << ", bit " << bit;
    }
}

// The version and what is behind it belong together, though the checksum covers only the latter.
TEST_F(WrongTags, InAManifestOfTheOtherVersionAreRefused) {
  std::string text = read_file(store_ + "/MANIFEST");
  text.replace(0, std::string("linblock-store 2").size(), "linblock-store 1");
  write_file(store_ + "/MANIFEST", text);
  EXPECT_EQ(damage_overlooked({"MANIFEST", "version"}, [&] { Store::open(store_); }), "");
  pack_rows(parts_[0], folder_ / "plain", small_options());
  text = read_file(folder_ / "plain/MANIFEST");
  text.replace(0, std::string("linblock-store 1").size(), "linblock-store 2");
  write_file(folder_ / "plain/MANIFEST", text);
  EXPECT_EQ(damage_overlooked({"MANIFEST", "version"}, [&] { Store::open(folder_ / "plain"); }), "");
  text.replace(0, std::string("linblock-store 2").size(), "linblock-store 3");
  write_file(folder_ / "plain/MANIFEST", text);
  EXPECT_EQ(damage_overlooked({"MANIFEST", "newer format than version 2"}, [&] { Store::open(folder_ / "plain"); }),
            "");
}

TEST_F(WrongTags, InColumnsAreRefused) {
  StoreInfo changed = read_manifest(store_);
  changed.axis = Axis::features;
  EXPECT_STREQ(wrong_tags(changed), "only a store of rows has tags");
}

}  // namespace
}  // namespace linblock::test
