// Which rows of a store are meant: their ids, and where they were named.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace linblock {

// Row ids from `first` to `last`, both included.
struct RowRange {
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t line = 0;  // of the list, from 1; 0: it is in no list

  bool holds(uint64_t id) const { return id >= first && id <= last; }
  // "100-200"
  static std::optional<RowRange> read(std::string_view text);
};

// As an option, which may be given several times.
struct RowRanges {
  static constexpr bool kRepeats = true;

  std::vector<RowRange> ranges = {};

  static std::optional<RowRanges> read(std::string_view text);
  std::string show() const;
  static std::string what() { return "row ids from FIRST-LAST, such as 100-200"; }
};

struct RowList {
  std::string name = {};              // of the file; empty: `lines` is too
  std::vector<uint64_t> ids = {};     // in any order
  std::vector<uint64_t> lines = {};   // from 1, one for each id
  std::vector<RowRange> ranges = {};  // in any order
};

// One id or one range a line; blank lines and what follows a # are passed over. Throws ErrorKind::input.
RowList read_row_list(const std::string& path);

}  // namespace linblock
