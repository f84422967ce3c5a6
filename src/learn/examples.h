// Rows to apply a model to, from text or from a store, in the order of the input and with their original indices.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace linblock {

struct Example {
  std::optional<int32_t> label = {};  // absent where the text has none
  std::span<const uint32_t> index = {};
  std::span<const float> value = {};
};

struct ExampleOptions {
  int index_base = 1;       // of text: the model's, never a guess from this text
  bool normalized = false;  // rows are scaled to unit length
  uint64_t memory_bytes = uint64_t{64} << 20;
};

bool is_store(const std::string& path);

// Returns how many there were; none at all is ErrorKind::input.
uint64_t for_each_example(const std::vector<std::string>& inputs, const ExampleOptions& options,
                          const std::function<void(const Example&)>& visit);

}  // namespace linblock
