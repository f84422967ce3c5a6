// Rows that lie in a segment and are no longer in the store: a file of their ids, named by the manifest.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "store/core/manifest.h"

namespace linblock {

// A new file beside the old one, synced, and what the manifest must say of it put into `info`; the sum of nonzeros is
// the caller's. Ids increase.
void write_removed(const std::string& store, StoreInfo& info, std::span<const uint64_t> ids);
// Throws ErrorKind::damaged.
std::vector<uint64_t> read_removed(const std::string& store, const StoreInfo& info);

}  // namespace linblock
