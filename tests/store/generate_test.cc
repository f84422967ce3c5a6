#include "store/text/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "store/text/svmlight.h"
#include "support/errors.h"

namespace linblock {
namespace {

using test::fails_with;

constexpr std::array<DataKind, 3> kKinds = {DataKind::documents, DataKind::dense, DataKind::clusters};

std::string text_of(const GenerateOptions& options) {
  std::string text;
  generate(options, [&](std::string_view piece) { text += piece; });
  return text;
}

void parse(const std::string& text, ParsedRows& rows) {
  Buffer memory(text.size());
  std::copy(text.begin(), text.end(), memory.data());
  parse_svmlight(memory.span(), {.index_zero = false}, rows);
  ASSERT_TRUE(rows.bad().empty()) << rows.bad()[0].reason;
}

// Small enough for a test; dense data has every feature in every row.
GenerateOptions small(DataKind kind) {
  GenerateOptions options{.kind = kind, .rows = 2000, .features = 5000, .nonzeros = 20};
  if (kind != DataKind::documents) options.features = options.nonzeros = 10;
  return options;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

TEST(Generate, GivesTheSameTextForAnyNumberOfThreads) {
  for (const DataKind kind : kKinds) {
    GenerateOptions options = small(kind);
    const std::string expected = text_of(options);
    for (const size_t threads : {2, 3, 7}) {
      options.team = threads;
      EXPECT_TRUE(text_of(options) == expected) << threads << " threads";
    }
  }
}

TEST(Generate, GivesOtherTextForAnotherSeed) {
  for (const DataKind kind : kKinds) {
    GenerateOptions options = small(kind);
    const std::string first = text_of(options);
    options.seed = 2;
    EXPECT_NE(text_of(options), first);
  }
}

TEST(Generate, WritesAsManyRowsAsAsked) {
  for (const DataKind kind : kKinds)
    for (const uint64_t count : {1, 511, 512, 513, 1500}) {
      GenerateOptions options = small(kind);
      options.rows = count;
      options.team = 2;
      ParsedRows rows;
      parse(text_of(options), rows);
      EXPECT_EQ(rows.size(), count);
      EXPECT_EQ(rows.lines(), count);
    }
}

TEST(Generate, LabelsTwoClassesMinusOneAndOneAndMoreFromOne) {
  for (const DataKind kind : kKinds)
    for (const uint32_t classes : {2, 3, 20}) {
      GenerateOptions options = small(kind);
      options.classes = classes;
      ParsedRows rows;
      parse(text_of(options), rows);
      std::map<int32_t, int> counts;
      for (size_t row = 0; row < rows.size(); ++row) ++counts[rows.label(row)];
      ASSERT_EQ(counts.size(), classes);
      EXPECT_EQ(counts.begin()->first, classes == 2 ? -1 : 1);
      EXPECT_EQ(counts.rbegin()->first, classes == 2 ? 1 : static_cast<int32_t>(classes));
      const double share = 2000.0 / classes;
      for (const auto& [label, count] : counts) EXPECT_NEAR(count, share, 6 * std::sqrt(share)) << label;
    }
}

TEST(Generate, SortsRowsByLabelWithClassesOfEqualSize) {
  for (const DataKind kind : kKinds)
    for (const uint32_t classes : {2, 3, 7}) {
      GenerateOptions options = small(kind);
      options.classes = classes;
      options.sorted = true;
      options.noise = 0.5;
      ParsedRows rows;
      parse(text_of(options), rows);
      std::map<int32_t, uint32_t> counts;
      for (size_t row = 0; row < rows.size(); ++row) {
        ASSERT_GE(rows.label(row), rows.label(row - std::min<size_t>(row, 1))) << "row " << row;
        ++counts[rows.label(row)];
      }
      EXPECT_EQ(counts.size(), classes);
      EXPECT_EQ(counts.begin()->second, (2000 + classes - 1) / classes);
    }
}

// Of rows with and without noise, how many differ and how many have another label. A row that is not noisy is the
// same whatever the share of noise.
struct Shares {
  double changed = 0;
  double relabeled = 0;
};

Shares shares_of_noise(GenerateOptions options) {
  options.classes = 4;
  options.noise = 0;
  const auto clean = lines_of(text_of(options));
  options.noise = 0.3;
  const auto noisy = lines_of(text_of(options));
  const auto label = [](const std::string& line) { return line.substr(0, line.find(' ')); };
  Shares shares;
  for (size_t row = 0; row < clean.size(); ++row) {
    shares.changed += clean[row] != noisy[row] ? 1.0 / 2000 : 0;
    shares.relabeled += label(clean[row]) != label(noisy[row]) ? 1.0 / 2000 : 0;
  }
  return shares;
}

TEST(Generate, GivesTheShareOfNoisyRowsARandomLabel) {
  for (const DataKind kind : kKinds) {
    const Shares shares = shares_of_noise(small(kind));
    EXPECT_NEAR(shares.changed, 0.3, 0.05);
    EXPECT_NEAR(shares.relabeled, 0.3 * 3 / 4, 0.05);
  }
}

TEST(Generate, GivesNoisyRowsOfSortedDataOtherFeaturesInstead) {
  for (const DataKind kind : kKinds) {
    GenerateOptions options = small(kind);
    options.sorted = true;
    const Shares shares = shares_of_noise(options);
    EXPECT_NEAR(shares.changed, 0.3, 0.05);
    EXPECT_EQ(shares.relabeled, 0);
  }
}

TEST(Generate, MakesDocumentsOfUnitLengthWithAboutTheNonzerosAsked) {
  GenerateOptions options = small(DataKind::documents);
  ParsedRows rows;
  parse(text_of(options), rows);
  std::map<uint32_t, int> occurrences;
  for (size_t row = 0; row < rows.size(); ++row) {
    double sum = 0;
    for (const float value : rows.value(row)) {
      EXPECT_GT(value, 0);
      sum += static_cast<double>(value) * value;
    }
    ASSERT_NEAR(sum, 1, 1e-3) << "row " << row;
    for (const uint32_t index : rows.index(row)) ++occurrences[index];
  }
  const auto mean = static_cast<double>(rows.all_indices().size()) / 2000;
  EXPECT_GT(mean, 14);
  EXPECT_LT(mean, 26);
  EXPECT_GE(occurrences.begin()->first, 1U);
  EXPECT_LE(occurrences.rbegin()->first, 5000U);
  std::vector<int> counts;
  for (const auto& [index, count] : occurrences) counts.push_back(count);
  std::ranges::sort(counts, std::greater<>());
  EXPECT_GT(counts[0], 20 * counts[counts.size() / 2]) << "as words: few are in most rows, most in few";
}

TEST(Generate, WritesEveryFeatureOfDenseRows) {
  for (const DataKind kind : {DataKind::dense, DataKind::clusters}) {
    ParsedRows rows;
    parse(text_of(small(kind)), rows);
    for (size_t row = 0; row < rows.size(); ++row) {
      ASSERT_EQ(rows.index(row).size(), 10U);
      for (uint32_t i = 0; i < 10; ++i) ASSERT_EQ(rows.index(row)[i], i + 1);
    }
  }
}

TEST(Generate, PutsRowsOfOneClassIntoClusters) {
  GenerateOptions options = small(DataKind::clusters);
  options.rows = 300;
  options.noise = 0;
  ParsedRows rows;
  parse(text_of(options), rows);
  int same = 0;
  for (size_t a = 0; a < rows.size(); ++a) {
    double nearest = INFINITY;
    int32_t label = 0;
    for (size_t b = 0; b < rows.size(); ++b) {
      double distance = 0;
      for (size_t i = 0; i < 10; ++i) distance += std::pow(rows.value(a)[i] - rows.value(b)[i], 2);
      if (a == b || distance >= nearest) continue;
      nearest = distance;
      label = rows.label(b);
    }
    same += label == rows.label(a) ? 1 : 0;
  }
  EXPECT_GT(same, 285) << "of 300 rows have a nearest neighbor of their class";
}

TEST(Generate, StopsAndPassesOnWhatItsSinkThrows) {
  for (const size_t threads : {1, 4}) {
    GenerateOptions options = small(DataKind::documents);
    options.rows = 20000;
    options.team = threads;
    int calls = 0;
    EXPECT_THROW(generate(options,
                          [&](std::string_view) {
                            if (++calls == 3) throw std::length_error("full");
                          }),
                 std::length_error);
    EXPECT_EQ(calls, 3);
  }
}

void expect_refused(const std::function<void(GenerateOptions&)>& change, const std::string& words) {
  GenerateOptions options = small(DataKind::documents);
  change(options);
  EXPECT_THAT([&] { text_of(options); }, fails_with(ErrorKind::usage, words));
}

TEST(Generate, RefusesOptionsThatMakeNoSense) {
  expect_refused([](GenerateOptions& o) { o.rows = 0; }, "rows must be");
  expect_refused([](GenerateOptions& o) { o.features = 0; }, "features must be");
  expect_refused([](GenerateOptions& o) { o.classes = 0; }, "classes must be");
  expect_refused([](GenerateOptions& o) { o.classes = 1; }, "classes must be");
  expect_refused([](GenerateOptions& o) { o.nonzeros = 0; }, "nonzeros must be");
  expect_refused([](GenerateOptions& o) { o.nonzeros = 5001; }, "nonzeros must be");
  expect_refused([](GenerateOptions& o) { o.noise = -0.01; }, "noise must be");
  expect_refused([](GenerateOptions& o) { o.noise = 1.01; }, "noise must be");
  expect_refused([](GenerateOptions& o) { o.noise = NAN; }, "noise must be");
}

// What it writes, pack must take.
TEST(Generate, RefusesFeaturesAndClassesThatTheStoreCannotHold) {
  expect_refused([](GenerateOptions& o) { o.features = UINT32_MAX; }, "features must be");
  expect_refused([](GenerateOptions& o) { o.classes = 65537; }, "classes must be");
}

TEST(Generate, RefusesToRunOnNoThreadAtAll) {}

TEST(Generate, LooksAtNonzerosForDocumentsOnly) {
  GenerateOptions options{.kind = DataKind::dense, .rows = 10, .features = 5};
  EXPECT_NO_THROW(text_of(options));
}

TEST(Generate, WorksAtTheSmallestSizes) {
  for (const DataKind kind : kKinds) {
    ParsedRows rows;
    parse(text_of({.kind = kind, .rows = 3, .features = 1, .nonzeros = 1, .classes = 5, .sorted = true}), rows);
    EXPECT_EQ(rows.size(), 3U);
    for (size_t row = 0; row < 3; ++row) EXPECT_EQ(rows.index(row).size(), 1U);
  }
}

}  // namespace
}  // namespace linblock
