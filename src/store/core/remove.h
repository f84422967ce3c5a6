// Takes rows out of a store. Only the manifest changes, and a list of the rows that are gone; compact() makes the files
// smaller.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/team.h"

namespace linblock {

// Row ids, and where they were named.
struct RowList {
  std::string name = {};             // of the file; empty: `lines` is too
  std::vector<uint64_t> ids = {};    // in any order
  std::vector<uint64_t> lines = {};  // from 1, one for each id
};

// One id a line; blank lines and what follows a # are passed over. Throws ErrorKind::input.
RowList read_row_list(const std::string& path);

// How the caller follows the work and ends it early.
struct RemoveContext {
  Team team = 1;
  // Bytes read so far, of how many; from one thread at a time.
  std::function<void(uint64_t, uint64_t)> observer = [](uint64_t, uint64_t) {};
  const std::atomic<bool>* stop = nullptr;
};

struct RemoveReport {
  uint64_t rows = 0;  // that were there and are no longer
  uint64_t nonzeros = 0;
};

// All of these rows or, where one of them is not in the store or named twice, none (ErrorKind::input).
RemoveReport remove_rows(const std::string& store, const RowList& rows, const RemoveContext& context = {});
// All rows of one pack or append.
RemoveReport remove_segment(const std::string& store, uint64_t number, const RemoveContext& context = {});

}  // namespace linblock
