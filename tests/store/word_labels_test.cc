// Labels that are words, from text to a store and back.
#include <gtest/gtest.h>

#include "base/checksum.h"
#include "store/core/compact.h"
#include "store/core/remove.h"
#include "support/damage.h"
#include "support/memory_folder.h"
#include "support/packing.h"

namespace linblock::test {
namespace {

std::string manifest_of(const std::string& json, int version) {
  const uint64_t sum = checksum({reinterpret_cast<const unsigned char*>(json.data()), json.size()});
  return fmt::format("linblock-store {} {:016x} {}\n", version, sum, json.size()) + json;
}

class WordLabels : public ::testing::Test {
 protected:
  void pack_text(const std::string& text, PackOptions options = small_options()) {
    write_file(folder_ / "data.svm", text);
    pack({folder_ / "data.svm"}, store_, options);
  }
  void append_text(const std::string& text, const PackOptions& options = small_options()) {
    write_file(folder_ / "more.svm", text);
    append({folder_ / "more.svm"}, store_, options);
  }
  StoreInfo info() const { return Store::open(store_).info(); }
  std::string names() const { return info().label_names.text(); }
  std::string manifest() const { return read_file(store_ + "/MANIFEST"); }
  // The JSON of the manifest with one text in place of another.
  void forge(const std::string& from, const std::string& to, int version) const {
    std::string json = manifest().substr(manifest().find('\n') + 1);
    const size_t at = json.find(from);
    ASSERT_NE(at, std::string::npos);
    write_file(store_ + "/MANIFEST", manifest_of(json.replace(at, from.size(), to), version));
  }
  void expect_refused(const std::string& words) const {
    EXPECT_THAT([&] { Store::open(store_); }, fails_with(ErrorKind::damaged, words));
  }

  const MemoryFolder folder_;
  const std::string store_ = folder_ / "store";
};

// Rows of several hundred words, the same word in many pieces of text.
std::string text_with_words(size_t rows) {
  std::string text;
  for (const OwnedRow& row : sample_rows(rows)) {
    const std::string line = line_of(row);
    text += "class-" + std::to_string((row.id * row.id + row.id / 7) % 300) + line.substr(line.find_first_of(" \n"));
  }
  return text;
}

TEST_F(WordLabels, GetCodesInTheOrderOfTheRowsAndComeBack) {
  pack_text("spam 1:1\nham 2:1\nspam\n1 3:1\n");
  EXPECT_EQ(names(), "spam ham 1");
  EXPECT_EQ(info().labels, (std::map<int32_t, uint64_t>{{0, 2}, {1, 1}, {2, 1}}));
  const Store store = Store::open(store_);
  EXPECT_EQ(verify(store, 1).rows, 4U);
  EXPECT_EQ(unpacked(store), "spam 1:1\nham 2:1\nspam\n1 3:1\n");
}

TEST_F(WordLabels, MakeTheSameBytesWithAnyNumberOfThreads) {
  const std::string text = text_with_words(20000);
  ASSERT_GT(text.size(), size_t{1} << 20);  // more pieces than threads
  std::string bytes;
  for (const size_t threads : {1, 3, 8}) {
    std::filesystem::remove_all(store_);
    pack_text(text, small_options("none", threads));
    const std::string all = manifest() + read_file(store_ + "/segment-000001.rows");
    if (bytes.empty()) bytes = all;
    EXPECT_TRUE(all == bytes) << threads;
  }
  EXPECT_TRUE(unpacked(Store::open(store_)) == text);
}

TEST_F(WordLabels, KeepTheirCodesInRowsThatAreAppended) {
  pack_text("spam 1:1\nham 2:1\n");
  append_text("eggs 1:1\nham 1:2\n-7 1:3\n");
  EXPECT_EQ(names(), "spam ham eggs -7");
  EXPECT_EQ(unpacked(Store::open(store_)), "spam 1:1\nham 2:1\neggs 1:1\nham 1:2\n-7 1:3\n");
}

TEST_F(WordLabels, StayWhenRowsAreRemovedAndTheStoreIsCompacted) {
  pack_text("spam 1:1\nham 2:1\neggs 3:1\n");
  remove_rows(store_, {.ids = {0}});
  EXPECT_EQ(info().labels, (std::map<int32_t, uint64_t>{{1, 1}, {2, 1}}));
  compact(store_, {});
  EXPECT_EQ(names(), "spam ham eggs");
  EXPECT_EQ(unpacked(Store::open(store_)), "ham 2:1\neggs 3:1\n");
}

TEST_F(WordLabels, MakeAManifestOfVersion2AndNumbersOneOfVersion1) {
  pack_text("spam 1:1\nham 2:1\n");
  EXPECT_TRUE(manifest().starts_with("linblock-store 2 "));
  std::filesystem::remove_all(store_);
  pack_text("1 1:1\n-1 2:1\n");
  EXPECT_TRUE(manifest().starts_with("linblock-store 1 "));
  EXPECT_EQ(names(), "");
}

TEST_F(WordLabels, AreChosenByTheFirstRowThatCanBeRead) {
  PackOptions options = small_options();
  options.max_bad_rows = 2;
  pack_text("# spam 1:1\n\nlabel,a,b\nheader first second\n1 1:1\n-1 1:2\n", options);
  EXPECT_EQ(names(), "");
  EXPECT_EQ(info().labels, (std::map<int32_t, uint64_t>{{-1, 1}, {1, 1}}));
}

// A bad row's word is not a label of the store.
TEST_F(WordLabels, OfRowsThatAreSkippedGetNoCode) {
  PackOptions options = small_options();
  options.max_bad_rows = 2;
  pack_text("spam 1:1\nbad 1:x\na,b 1:1\nham 1:1\n", options);
  EXPECT_EQ(names(), "spam ham");
}

TEST_F(WordLabels, AreRefusedAmongNumbers) {
  expect_error(ErrorKind::input, {"data.svm:2:1", "'spam' is not a number", "all numbers or all words", "sed 's/^spam"},
               [&] { pack_text("1 1:1\nspam 1:1\n"); });
  pack_text("1 1:1\n-1 1:1\n");
  const auto before = files_of(store_);
  expect_error(ErrorKind::input, {"more.svm:1:1", "'spam' is not a number"}, [&] { append_text("spam 1:1\n"); });
  EXPECT_TRUE(files_of(store_) == before);
}

TEST_F(WordLabels, AreNotWhatIsABrokenNumber) {
  for (const char* text : {"0.5 1:1\nspam 1:1\n", "nan 1:1\n", "inf 1:1\n", "1e99 1:1\n", "+0.5 1:1\n"})
    expect_error(ErrorKind::input, {"data.svm:1:1", "is not an integer"}, [&] { pack_text(text); });
}

TEST_F(WordLabels, AreMissingWhereALineBeginsWithAFeature) {
  expect_error(ErrorKind::input, {"data.svm:2:1", "the label is missing"}, [&] { pack_text("spam 1:1\n2:0.5 3:1\n"); });
  expect_error(ErrorKind::input, {"data.svm:1:1", "the label is missing"}, [&] { pack_text("1:0.5 3:1\n"); });
}

TEST_F(WordLabels, AreRefusedWhereTheyCannotBeANameWithThePlace) {
  expect_error(ErrorKind::input, {"data.svm:2:1", "'a,b' cannot be a label: it has a ','"},
               [&] { pack_text("spam 1:1\na,b 1:1\n"); });
  expect_error(ErrorKind::input, {"data.svm:2:1", "longer than 256 bytes"},
               [&] { pack_text("spam 1:1\n" + std::string(300, 'x') + " 1:1\n"); });
  expect_error(ErrorKind::input, {"data.svm:2:1", "not UTF-8"}, [&] { pack_text("spam 1:1\n\xFF 1:1\n"); });
}

TEST_F(WordLabels, AreNotTooManyAndNotTooLong) {
  PackOptions options = small_options();
  options.memory_bytes = uint64_t{64} << 20;
  std::string text;
  for (size_t i = 0; i <= format::kMostLabels; ++i) text += "w" + std::to_string(i) + "\n";
  expect_error(ErrorKind::input, {"more than 65536 different labels"}, [&] { pack_text(text, options); });
  text.clear();
  for (size_t i = 0; i * 250 <= format::kMostLabelNames; ++i) text += std::to_string(i) + std::string(250, 'x') + "\n";
  expect_error(ErrorKind::input, {"names of all labels", "shorter names"}, [&] { pack_text("w\n" + text, options); });
}

TEST_F(WordLabels, CountAgainstTheMemoryLimit) {
  std::string text;
  for (size_t i = 0; i < format::kMostLabels; ++i) text += "word-" + std::to_string(100000000 + i) + "\n";
  const std::optional<Error> error = error_of([&] { pack_text(text); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::memory);
  ASSERT_EQ(advised(*error, "memory"), "40M");
  PackOptions options = small_options();
  options.memory_bytes = uint64_t{40} << 20;
  pack_text(text, options);
  EXPECT_EQ(info().label_names.size(), format::kMostLabels);
}

TEST_F(WordLabels, AreCoveredByTheChecksumOfTheManifest) {
  pack_text("spam 1:1\nham 2:1\n");
  FlippableFile file(store_ + "/MANIFEST");
  for (size_t at = 0; at < file.size(); ++at)
    for (unsigned bit = 0; bit < 8; ++bit) {
      file.flip(at, bit);
      const std::string wrong = damage_overlooked({"MANIFEST"}, [&] { Store::open(store_); });
      file.restore(at);
      ASSERT_EQ(wrong, "") << "byte " << at << ", bit " << bit;
    }
}

TEST_F(WordLabels, ThatAreForgedAreRefused) {
  pack_text("spam 1:1\nham 2:1\n");
  const std::string whole = manifest();
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& words, int version = 2) {
    write_file(store_ + "/MANIFEST", whole);
    forge(from, to, version);
    expect_refused(words);
  };
  refused("\"spam ham\"", "\"spam\"", "label 1 has no name");
  refused("\"spam ham\"", "\"spam spam\"", "the same name");
  refused("\"spam ham\"", "\"spam a:b\"", "the name of its label 1 is impossible");
  refused("\"spam ham\"", "\"\"", "impossible");
  refused("\"spam ham\"", "7", "cannot be understood");
  refused("0:1 1:1", "-1:1 1:1", "label -1 has no name");
  refused("spam ham", "spam ham", "it says version 1", 1);
  refused("\"label_names\"", "\"other_names\"", "it says version 2");
  refused("spam ham", "spam ham", "of a newer format than version 2", 3);
  write_file(store_ + "/MANIFEST", whole);
  EXPECT_EQ(names(), "spam ham");
}

}  // namespace
}  // namespace linblock::test
