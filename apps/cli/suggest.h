// What a mistyped word was probably meant to be.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace linblock::cli {

// The word that takes the fewest changes of letters; empty where none is near.
std::string nearest(const std::string& typed, const std::vector<std::string>& known);

// What stands here for an option of LIBLINEAR, scikit-learn or Vowpal Wabbit; `value` is the word behind it.
// "LIBLINEAR's -c 4 is --cost 4"
std::optional<std::string> equivalent_of(std::string_view typed, std::string_view value);

}  // namespace linblock::cli
