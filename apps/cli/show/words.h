// The library's words in the program's: settings are flags, parts of a store are made by commands.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace linblock::cli {

// cache_fraction: "--cache-fraction"
// Broken at blanks, so that no line is longer than `width` where words allow it; lines after the first begin with
// `indent` blanks.
std::string wrapped(std::string_view text, size_t width, size_t indent);

std::string as_flag(std::string_view setting);
// "`memory` allows 64 MB", as the library marks it: "--memory allows 64 MB"
std::string in_flags(std::string_view library_text);
// "give --memory 40M or more"
std::string in_flags(const Remedy& remedy);
// The whole message: "the weights need 40 MB. Give --memory 40M or more, or use --solver dual."
std::string message_of(const Error& error);

}  // namespace linblock::cli
