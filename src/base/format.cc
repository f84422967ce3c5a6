// What the library of fmt holds, compiled once into the program: Debian has no static library of it, and the shared one
// would bring the shared standard library along. Its headers hold the same functions for programs without the library.
// The compiler is told to keep them all (CMakeLists.txt), so that the other files can call what is used here.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

namespace linblock {

void use_fmt();  // never called

void use_fmt() {
  fmt::print("{}", fmt::format("{} {} {:L}", 1, "text", 1.5));
  fmt::print(stderr, "{} {}", fmt::to_string(1.5F), fmt::to_string(1.5));
}

}  // namespace linblock
