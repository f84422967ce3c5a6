// Synthetic svmlight text: the same bytes for the same options, whatever the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/option.h"
#include "base/team.h"

namespace linblock {

enum class DataKind {
  documents,  // sparse rows of unit length, features as frequent as words (Zipf)
  dense,      // every feature in every row
  clusters,   // dense rows around a few centres a class
};

struct GenerateOptions {
  DataKind kind = DataKind::documents;
  uint64_t rows = 10000;
  uint32_t features = 100000;
  uint32_t nonzeros = 100;  // a row, about; documents only
  uint32_t classes = 2;     // 2: labels -1 and 1; more: 1 to classes
  double noise = 0.05;      // share of rows that get a random label
  bool sorted = false;      // by label, as collected data often is
  uint64_t skip = 0;        // rows of the same data that come before these: other rows to test on
  uint64_t seed = 1;
  Team team = 1;

  static constexpr auto options() {
    return std::tuple{
        option("rows", &GenerateOptions::rows, "N", "Rows"),
        option("features", &GenerateOptions::features, "N", "Features (default: 100000; dense and clusters: 50)"),
        option("nonzeros", &GenerateOptions::nonzeros, "N", "Nonzeros per row, about, of documents"),
        option("classes", &GenerateOptions::classes, "K", "Classes; the labels of two are -1 and 1"),
        option("noise", &GenerateOptions::noise, "P", "Share of the rows that get a random label", {.from = 0}),
        option("sorted", &GenerateOptions::sorted, "", "Sort the rows by label"),
        option("skip", &GenerateOptions::skip, "N",
               "Leave out the first N rows: other rows of the same data, to test on"),
        option("seed", &GenerateOptions::seed, "N", "Random seed")};
  }
};

// Throws ErrorKind::usage for options that make no sense.
void check(const GenerateOptions& options);

// Calls `sink` with the text in order.
void generate(const GenerateOptions& options, const std::function<void(std::string_view)>& sink);

}  // namespace linblock
