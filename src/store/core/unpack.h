// A store as svmlight text again, in the order of the input, in bounded memory.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "store/core/store.h"

namespace linblock {

// Rows in the order of their ids, with the original feature indices in increasing order.
void for_each_row_in_order(const Store& store, const std::function<void(const Row&)>& visit);

// Text in large pieces. Row weights are not part of svmlight: `weights`, where given, gets one a line.
using TextSink = std::function<void(std::string_view)>;
void unpack(const Store& store, const TextSink& text, const TextSink& weights = {});

}  // namespace linblock
