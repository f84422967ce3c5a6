// Which files make up a store.
#pragma once

#include <string>
#include <vector>

#include "store/core/manifest.h"

namespace linblock {

// Their names in the store's folder: the numbered files that the manifest names. They never change.
std::vector<std::string> numbered_files(const StoreInfo& info);

}  // namespace linblock
