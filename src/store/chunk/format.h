// The constants of docs/format.md, and nothing else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace linblock::format {

inline constexpr uint32_t kVersion = 1;          // of every file but MANIFEST,
inline constexpr uint32_t kManifestVersion = 2;  // the newest
inline constexpr std::string_view kManifestMagic = "linblock-store";
inline constexpr std::string_view kSegmentMagic = "LBSEGMNT";
inline constexpr std::string_view kFeatureMagic = "LBFEATUR";
inline constexpr std::string_view kFeatureNamesMagic = "LBFNAMES";
inline constexpr std::string_view kRemovedMagic = "LBREMOVE";
inline constexpr std::string_view kRowFactsMagic = "LBROWFCT";
inline constexpr std::string_view kForestMagic = "LBFOREST";

inline constexpr const char* kManifestName = "MANIFEST";
inline constexpr const char* kFeaturesName = "FEATURES";
inline constexpr const char* kFeatureNamesName = "NAMES";
inline constexpr const char* kLockName = "LOCK";
inline constexpr const char* kColumnsName = "columns";
inline constexpr const char* kIndexName = "index";
inline constexpr const char* kBuiltName = "BUILT";    // what was measured while it was made: for people
inline constexpr const char* kSourceName = "SOURCE";  // of a store that 'train' made: the text and its options
inline constexpr const char* kProbeName = "codec-probe";
inline constexpr std::string_view kBuiltBeginning = "{\"";
inline constexpr std::string_view kSourceBeginning = "{\n \"files\"";

// Segments begin with a header page; chunks begin at multiples of a page.
inline constexpr uint64_t kPageBytes = 4096;
inline constexpr size_t kDirectoryEntryBytes = 40;
inline constexpr size_t kFeatureNamesHeaderBytes = 24;
inline constexpr size_t kRemovedHeaderBytes = 32;
inline constexpr size_t kRowFactsHeaderBytes = 32;
inline constexpr size_t kFactBytes = 12;
inline constexpr size_t kWeightedFactBytes = 16;
inline constexpr size_t kForestHeaderBytes = 32;
inline constexpr size_t kForestTreeBytes = 8;
inline constexpr size_t kForestNodeBytes = 16;
inline constexpr size_t kForestPageBytes = 4;
inline constexpr size_t kNodeHeaderBytes = 8;
inline constexpr size_t kNodeChildBytes = 40;
inline constexpr uint32_t kLeastBranch = 2;
inline constexpr uint32_t kMostBranch = 256;

inline constexpr uint32_t kLargestIndex = UINT32_MAX - 1;
inline constexpr uint64_t kLargestChunkBytes = uint64_t{1} << 30;
inline constexpr uint64_t kSmallestChunkBytes = 4096;
inline constexpr uint64_t kMostChunkRows = uint64_t{1} << 20;
inline constexpr size_t kMostLabels = 65536;
inline constexpr size_t kMostLabelBytes = 256;              // of a label that is a word,
inline constexpr size_t kMostLabelNames = size_t{1} << 20;  // of all of them together
inline constexpr size_t kMostFeatureNameBytes = 1024;
inline constexpr uint32_t kMostBuckets = 4096;
inline constexpr uint64_t kMostFrequent = (uint64_t{1} << 24) / 4;  // features that are numbered first
inline constexpr size_t kMostTagBytes = 64;
inline constexpr uint64_t kMostManifestBytes = uint64_t{1} << 26;

enum class Codec : uint32_t { none = 0, lz4 = 1, zstd = 2, zlib = 3 };

// A chunk is a header, a table of sections, and the sections, each at a multiple of kSectionAlignment.
inline constexpr size_t kChunkHeaderBytes = 24;
inline constexpr size_t kSectionEntryBytes = 8;
inline constexpr size_t kSectionAlignment = 16;

enum class Section : uint16_t { ids = 1, labels = 2, weights = 3, counts = 4, lengths = 5, indices = 6, values = 7 };
inline constexpr size_t kSectionKinds = 8;

enum class Ids : uint16_t { consecutive = 0, gaps = 1 };
enum class Labels : uint16_t { constant = 0, bits = 1, bytes = 2, words = 3 };
enum class Weights : uint16_t { each = 0 };
enum class Numbers : uint16_t { constant = 0, bytes = 1, halves = 2, words = 3 };
enum class Values : uint16_t { ones = 0, per_row = 1, dictionary = 2, each = 3 };

// Widths, in nibbles, of the four codes of the index code. Set 0 can hold any gap; a row that does not fit the
// chunk's set is written with set 0.
using WidthSet = std::array<uint8_t, 4>;
inline constexpr std::array<WidthSet, 9> kWidthSets = {{
    {2, 4, 6, 8},
    {0, 1, 2, 4},
    {0, 2, 4, 6},
    {1, 2, 3, 5},
    {1, 2, 4, 6},
    {1, 3, 4, 6},
    {2, 3, 4, 6},
    {3, 4, 5, 6},
    {1, 2, 3, 4},
}};

}  // namespace linblock::format
