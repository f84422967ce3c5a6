// The program's version, as project() in CMakeLists.txt states it: the only place.
#pragma once

#include <string_view>

namespace linblock {

extern const std::string_view kVersion;

}  // namespace linblock
