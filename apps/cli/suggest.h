// "Did you mean": the known word nearest to the one that was typed.
#pragma once

#include <string>
#include <vector>

namespace linblock::cli {

// Empty where nothing is near.
std::string nearest(const std::string& typed, const std::vector<std::string>& known);

}  // namespace linblock::cli
