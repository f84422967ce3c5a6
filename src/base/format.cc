// What the library of fmt holds, compiled once into the program: Debian has no static library of it, and the shared one
// would bring the shared standard library along. Its headers hold the same functions for programs without the library.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

namespace linblock {

// Naming the functions that fmt::format and fmt::print call makes the compiler keep them.
extern std::string (*const kFormat)(fmt::string_view, fmt::format_args);
extern void (*const kPrint)(fmt::string_view, fmt::format_args);
extern void (*const kPrintTo)(std::FILE*, fmt::string_view, fmt::format_args);
std::string (*const kFormat)(fmt::string_view, fmt::format_args) = fmt::vformat;
void (*const kPrint)(fmt::string_view, fmt::format_args) = fmt::vprint;
void (*const kPrintTo)(std::FILE*, fmt::string_view, fmt::format_args) = fmt::vprint;

}  // namespace linblock
