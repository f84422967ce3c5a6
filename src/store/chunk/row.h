// One example as everybody sees it, and the scratch memory it may point into.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace linblock {

// A view. `index` holds feature numbers of the store, strictly increasing; Store::features() gives their original
// indices. Valid until the block it came from changes or its RowBuffer is used again.
struct Row {
  uint64_t id = 0;
  int32_t label = 0;
  float weight = 1;
  std::span<const uint32_t> index = {};
  std::span<const float> value = {};
};

struct RowBuffer {
  std::vector<uint32_t> index;
  std::vector<float> value;
};

}  // namespace linblock
