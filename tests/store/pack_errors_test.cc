// What pack refuses: the place and the reason are named, and nothing is left behind.
#include <gtest/gtest.h>

#include "store/core/pack.h"
#include "support/memory_folder.h"
#include "support/packing.h"

namespace linblock::test {
namespace {

class PackErrors : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& text) {
    write_file(folder_ / name, text);
    return folder_ / name;
  }
  void expect_refused(ErrorKind kind, const std::vector<std::string>& parts, const std::vector<std::string>& inputs,
                      const PackOptions& options = small_options(), const PackContext& context = {}) {
    const auto before = names_in(folder_.path());
    expect_error(kind, parts, [&] { pack(inputs, store_, options, context); });
    EXPECT_EQ(names_in(folder_.path()), before);
  }

  const MemoryFolder folder_;
  const std::string store_ = folder_ / "store";
};

std::string good_lines(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += "1 1:0.5 20:1 " + std::to_string(100 + i % 50) + ":2\n";
  return text;
}

// --- bad lines -------------------------------------------------------------------------------------------------------

TEST_F(PackErrors, ABadLineIsNamedWithFileLineAndColumn) {
  const std::string bad = put("bad.svm", good_lines(100000) + "1 1:1 7:x 9:1\n" + good_lines(1000));
  for (const size_t threads : {1U, 4U})
    expect_refused(ErrorKind::input, {bad + ":100001:9:", "'x'", "1 1:1 7:x 9:1\n"}, {bad},
                   small_options("none", threads));
}

TEST_F(PackErrors, LinesAreNumberedAnewInTheSecondFile) {
  const std::string first = put("first.svm", good_lines(30000) + "1 5:1");  // no newline at its end
  const std::string second = put("second.svm", good_lines(41233) + "\n# comment\n1 9:1 3:1\n" + good_lines(10));
  for (const size_t threads : {1U, 4U})
    expect_refused(ErrorKind::input, {second + ":41236:7:", "indices must increase"}, {first, second},
                   small_options("none", threads));
}

TEST_F(PackErrors, TheFirstOfManyBadLinesIsNamed) {
  std::string text = good_lines(20000);
  for (int i = 0; i < 20; ++i) text += "bad" + std::to_string(i) + "\n" + good_lines(5000);
  const std::string path = put("bad.svm", text);
  for (int repeat = 0; repeat < 10; ++repeat)
    expect_refused(ErrorKind::input, {path + ":20001:1:", "bad0"}, {path}, small_options("none", 4));
}

class BadRows : public PackErrors {
 protected:
  // Every 1000th of 30000 lines is bad.
  std::string text_with_bad_rows() {
    std::string text;
    for (int i = 0; i < 30000; ++i) {
      const bool bad = i % 1000 == 999;
      const std::string line = bad ? "1 " + std::to_string(i) + ":oops" : "1 " + std::to_string(i + 1) + ":1";
      text += line + "\n";
      (bad ? rejected_ : accepted_) += line + "\n";
    }
    return text;
  }
  std::string accepted_;
  std::string rejected_;
};

TEST_F(BadRows, AreSkippedAndKeptWhereAllowed) {
  const std::string path = put("data.svm", text_with_bad_rows());
  for (const size_t threads : {1U, 4U}) {
    PackOptions options = small_options("none", threads);
    options.max_bad_rows = 30;
    options.rejects = folder_ / "rejects";
    const PackReport report = pack({path}, store_, options);
    EXPECT_EQ(report.bad_rows, 30U);
    EXPECT_EQ(report.rows, 29970U);
    EXPECT_TRUE(read_file(folder_ / "rejects") == rejected_);
    EXPECT_TRUE(unpacked(Store::open(store_)) == accepted_);
    EXPECT_EQ(Store::open(store_).info().next_row_id, 29970U);
    std::filesystem::remove_all(store_);
  }
}

TEST_F(BadRows, BeyondTheNumberAllowedAreRefused) {
  const std::string path = put("data.svm", text_with_bad_rows());
  for (const size_t threads : {1U, 4U}) {
    PackOptions options = small_options("none", threads);
    options.max_bad_rows = 29;
    expect_refused(ErrorKind::input, {path + ":30000:9:", "bad row 30", "max_bad_rows allows 29"}, {path}, options);
  }
}

TEST_F(BadRows, ConsumeTheirWeights) {
  PackOptions options = small_options();
  options.max_bad_rows = 1;
  options.weights = put("weights", "0.5\n9\n0.25\n");
  pack({put("data.svm", "1 1:1\noops\n1 2:1\n")}, store_, options);
  const auto rows = verified_rows(store_);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].weight, 0.5F);
  EXPECT_EQ(rows[1].weight, 0.25F);
}

TEST_F(BadRows, AloneAreNoData) {
  PackOptions options = small_options();
  options.max_bad_rows = 10;
  expect_refused(ErrorKind::input, {"no rows"}, {put("data.svm", "oops,\nx y\n")}, options);
}

// --- weights
// -----------------------------------------------------------------------------------------------------------

class Weights : public PackErrors {
 protected:
  void refused(const std::string& weights, const std::vector<std::string>& parts) {
    PackOptions options = small_options();
    options.weights = put("weights", weights);
    expect_refused(ErrorKind::input, parts, {put("data.svm", "1 1:1\n1 2:1\n\n-1 3:1\n")}, options);
  }
};

TEST_F(Weights, ThatAreTooFewAreRefused) { refused("1\n2\n", {"weights'", "2 weights", "more rows"}); }
TEST_F(Weights, ThatAreTooManyAreRefused) { refused("1\n2\n3\n4\n", {"weights'", "more weights", "3 rows"}); }
TEST_F(Weights, ThatAreNegativeAreRefused) { refused("1\n-2\n3\n", {"weights:2:1:", "'-2'"}); }
TEST_F(Weights, ThatAreNotANumberAreRefused) { refused("1\n2\nnan\n", {"weights:3:1:", "'nan'"}); }
TEST_F(Weights, ThatAreInfiniteAreRefused) { refused("inf\n2\n3\n", {"weights:1:1:", "'inf'"}); }
TEST_F(Weights, ThatAreWordsAreRefused) { refused("1\nheavy\n3\n", {"weights:2:1:", "'heavy'"}); }
TEST_F(Weights, ThatAreTwoOnALineAreRefused) { refused("1 2\n3\n4\n", {"weights:1:1:", "'1 2'"}); }
TEST_F(Weights, ThatAreTooLargeAreRefused) { refused("1\n1e39\n3\n", {"weights:2:1:", "'1e39'"}); }
TEST_F(Weights, OfAnEmptyFileAreRefused) { refused("", {"weights", "empty"}); }
TEST_F(Weights, ThatCountRowsDoNotCountBlankLines) { refused("1\n\n\n2\n\n", {"weights'", "2 weights", "more rows"}); }

TEST_F(Weights, OfAMissingFileAreRefused) {
  PackOptions options = small_options();
  options.weights = folder_ / "nowhere";
  expect_refused(ErrorKind::input, {"nowhere", "does not exist"}, {put("data.svm", "1 1:1\n")}, options);
}

TEST_F(Weights, OfZeroAreKept) {
  PackOptions options = small_options();
  options.weights = put("weights", " 0\r\n\n1e-3\n");
  pack({put("data.svm", "1 1:1\n1 1:1\n")}, store_, options);
  EXPECT_EQ(verified_rows(store_)[0].weight, 0.0F);
  EXPECT_EQ(verified_rows(store_)[1].weight, 0.001F);
}

// --- inputs that are no data
// -------------------------------------------------------------------------------------------

TEST_F(PackErrors, AFileOfBlankLinesAndCommentsHasNoRows) {
  expect_refused(ErrorKind::input, {"blank.svm", "no rows"}, {put("blank.svm", "\n\n  \t\r\n# only this\n")});
  expect_refused(ErrorKind::input, {"no rows"}, {put("large.svm", std::string(1 << 20, '\n'))});
}
TEST_F(PackErrors, AnEmptyFileIsNamed) {
  expect_refused(ErrorKind::input, {"empty.svm", "empty"}, {put("data.svm", "1 1:1\n"), put("empty.svm", "")});
}
TEST_F(PackErrors, AMissingFileIsNamed) {
  expect_refused(ErrorKind::input, {"nowhere.svm", "does not exist"}, {folder_ / "nowhere.svm"});
}
TEST_F(PackErrors, AFolderIsNamed) { expect_refused(ErrorKind::input, {"is a folder"}, {folder_.path()}); }

TEST_F(PackErrors, ACompressedFileThatIsCutShortIsNamed) {
  const std::string plain = put("data.svm", text_of(sample_rows(5000)));
  ASSERT_EQ(std::system(("gzip -k " + plain).c_str()), 0);
  std::filesystem::resize_file(plain + ".gz", std::filesystem::file_size(plain + ".gz") / 2);
  for (const size_t threads : {1U, 4U})
    expect_refused(ErrorKind::input, {"data.svm.gz", "cut short or damaged"}, {plain + ".gz"},
                   small_options("none", threads));
}

TEST_F(PackErrors, TooManyLabelsAreRefused) {
  std::string text;
  for (int label = 0; label < 65536; ++label) text += std::to_string(label) + " 1:1\n";
  pack({put("many.svm", text)}, store_, small_options());
  EXPECT_EQ(Store::open(store_).info().labels.size(), 65536U);
  std::filesystem::remove_all(store_);
  expect_refused(ErrorKind::input, {"65536", "labels", "regression"}, {put("more.svm", text + "65536 1:1\n")});
}

// --- limits, and requests that cannot be met
// -----------------------------------------------------------------------------

std::string long_line(size_t bytes) {
  std::string line = "1";
  for (int i = 1; line.size() < bytes; ++i) line += " " + std::to_string(i) + ":1";
  return line + "\n";
}

TEST_F(PackErrors, ALineLongerThanTheMemoryAllowsIsNamed) {
  const std::string path = put("long.svm", good_lines(10000) + long_line(2 << 20) + good_lines(10));
  for (const size_t threads : {1U, 4U})
    expect_refused(ErrorKind::memory, {path + ":10001:1:", "longer than", "give memory"}, {path},
                   small_options("none", threads));
  PackOptions more = small_options();
  more.memory_bytes = uint64_t{128} << 20;
  pack({path}, store_, more);
  EXPECT_EQ(Store::open(store_).info().rows, 10011U);
}

TEST_F(PackErrors, TheMemoryAdvisedForALongLineIsEnough) {
  const std::string path = put("long.svm", long_line(2 << 20));
  PackOptions options = small_options();
  const std::optional<Error> error = error_of([&] { pack({path}, store_, options); });
  ASSERT_TRUE(error.has_value());
  options.memory_bytes = read_size(advised(*error, "memory")).value();
  EXPECT_NO_THROW(pack({path}, store_, options)) << "after: " << error->what();
}

TEST_F(PackErrors, TooLittleMemoryIsRefusedBeforeAnythingIsCreated) {
  PackOptions options = small_options();
  options.memory_bytes = kLeastPackMemory - 1;
  expect_refused(ErrorKind::memory, {"too little to pack in", "give memory 16M or more"}, {put("data.svm", "1 1:1\n")},
                 options);
}

TEST_F(PackErrors, ChunksOfAnImpossibleSizeAreRefused) {
  PackOptions options = small_options();
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{4095}, kLeastPackMemory, uint64_t{1} << 40}) {
    options.chunk_bytes = bytes;
    expect_refused(ErrorKind::usage, {"chunk_bytes"}, {put("data.svm", "1 1:1\n")}, options);
  }
}

TEST_F(PackErrors, AnExistingStoreIsNotTouched) {
  pack({put("data.svm", "1 1:1\n")}, store_, small_options());
  const auto before = files_of(store_);
  expect_refused(ErrorKind::usage, {store_, "exists already", "append"}, {put("other.svm", "1 2:1\n")});
  EXPECT_TRUE(files_of(store_) == before);
}

// --- the user wants to stop
// ----------------------------------------------------------------------------------------------

TEST_F(PackErrors, AStopRequestLeavesNothing) {
  const std::string path = put("data.svm", good_lines(100000));
  for (const size_t threads : {1U, 4U})
    for (const int after : {1, 3, 10}) {
      std::atomic<bool> stop = false;
      int calls = 0;
      PackContext context;
      context.stop = &stop;
      context.observer = [&](const PackProgress&) { stop = ++calls >= after; };
      expect_refused(ErrorKind::interrupted, {"interrupted"}, {path}, small_options("none", threads), context);
      EXPECT_LE(calls, after + 1) << "it went on for long";
    }
}

}  // namespace
}  // namespace linblock::test
