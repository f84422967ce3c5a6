// From svmlight text to a committed store, in one pass, on all threads, in the memory named.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/option.h"
#include "base/team.h"
#include "store/core/tags.h"

namespace linblock {

// "auto", or the name of a codec.
struct CodecName {
  std::string name;

  explicit CodecName(std::string text) : name(std::move(text)) {}
  static std::optional<CodecName> read(std::string_view text);
  std::string show() const { return name; }
  static std::string what() { return "a codec: choose auto, none, lz4, zstd or zlib"; }
  explicit operator std::string() const { return name; }
};

// 0, 1 or auto, which the field holds as -1.
struct IndexBase {
  int base = -1;

  constexpr explicit IndexBase(int number) : base(number) {}
  constexpr explicit operator int() const { return base; }
  static std::optional<IndexBase> read(std::string_view text) {
    return text == "auto" ? std::optional(IndexBase(-1))
           : text == "0"  ? std::optional(IndexBase(0))
           : text == "1"  ? std::optional(IndexBase(1))
                          : std::nullopt;
  }
  std::string show() const { return base < 0 ? "auto" : std::to_string(base); }
  static std::string what() { return "auto, 0 or 1"; }
};

struct PackOptions {
  uint64_t memory_bytes = uint64_t{1} << 30;
  Team team = 1;  // its number of threads changes nothing of the store
  uint64_t seed = 1;
  bool shuffle = true;
  std::optional<uint64_t> chunk_bytes;  // default: 64 KB
  std::string codec = "auto";
  bool normalize = false;
  int index_base = -1;  // 0 or 1; -1: found from the data
  std::string weights;  // a file with one number a row; empty: none
  uint64_t max_bad_rows = 0;
  std::string rejects;  // where skipped lines go; empty: nowhere
  std::string names;    // a file with the name of a feature on each line; empty: none
  std::string tag;      // of the rows; empty: none
  std::string source;   // what SOURCE says, of a store that is made for one training; empty: there is no SOURCE

  // How text is read.
  static constexpr auto text_options() {
    return std::tuple{option("weights", &PackOptions::weights, "FILE", "File with one row weight per line, from 0 up"),
                      option("max_bad_rows", &PackOptions::max_bad_rows, "N", "Skip up to N lines that cannot be read"),
                      option("rejects", &PackOptions::rejects, "FILE", "Where to save the skipped lines")};
  }
  static constexpr auto tag_option() {
    return std::tuple{option_as<Tag>("tag", &PackOptions::tag, "TAG",
                                     "Tag of these rows, such as a date; 'linblock remove' takes it")};
  }
  // Training has its own seed.
  static constexpr auto seed_option() {
    return std::tuple{option("seed", &PackOptions::seed, "N", "Random seed of the shuffle")};
  }
  // What becomes of the rows.
  static constexpr auto options() {
    return std::tuple{
        option_as<Inverted>("no_shuffle", &PackOptions::shuffle, "", "Keep the order of the input"),
        option_as<std::optional<SizeText>>("chunk_bytes", &PackOptions::chunk_bytes, "SIZE",
                                           "Size of a chunk, the unit of reading (default: 64K; more for slow disks)"),
        option_as<CodecName>("codec", &PackOptions::codec, "NAME",
                             "auto, none, lz4, zstd or zlib; auto measures the disk and decides"),
        option("normalize", &PackOptions::normalize, "",
               "Scale every row to unit length: for documents, not for tables"),
        option_as<IndexBase>("index_base", &PackOptions::index_base, "BASE",
                             "Number of the first feature: 0, 1 or auto (0 if index 0 occurs)"),
        option("names", &PackOptions::names, "FILE", "File with the names of the features, one per line")};
  }
};

inline constexpr uint64_t kLeastPackMemory = uint64_t{16} << 20;

struct PackProgress {
  uint64_t bytes_read = 0;
  uint64_t total_bytes = 0;  // 0: not known
  uint64_t rows = 0;
};

// How the caller follows the work and ends it early.
struct PackContext {
  std::function<void(const PackProgress&)> observer = [](const PackProgress&) {};
  const std::atomic<bool>* stop = nullptr;
};

struct PackReport {
  uint64_t rows = 0;  // of this run
  uint64_t nonzeros = 0;
  uint64_t bad_rows = 0;
  uint64_t text_bytes = 0;  // as read from disk
  uint64_t segment = 0;     // that they became
  uint64_t first_row = 0;   // the id of the first; the others follow
};

PackReport pack(const std::vector<std::string>& inputs, const std::string& store, const PackOptions& options,
                const PackContext& context = {});
// A new segment. The store's own options hold; of `options` only memory, team, weights, bad rows and tag
// count.
PackReport append(const std::vector<std::string>& inputs, const std::string& store, const PackOptions& options,
                  const PackContext& context = {});

}  // namespace linblock
