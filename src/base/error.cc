#include "base/error.h"

#include <utility>

namespace linblock {

namespace {

// Backquotes of a pattern become marks. Its arguments are not touched: a row or a path may have backquotes of its own.
std::string marked(fmt::string_view pattern) {
  std::string result(pattern.data(), pattern.size());
  bool inside = false;
  for (char& letter : result) {
    if (letter != '`') continue;
    letter = inside ? kSettingEnds : kSettingBegins;
    inside = !inside;
  }
  return result;
}

}  // namespace

std::string vlibrary_text(fmt::string_view pattern, fmt::format_args args) {
  return fmt::vformat(marked(pattern), args);
}

std::string spell_settings(std::string_view library_text, const std::function<std::string(std::string_view)>& spell) {
  std::string result;
  while (true) {
    const size_t begin = library_text.find(kSettingBegins);
    result += library_text.substr(0, begin);
    if (begin == std::string_view::npos) return result;
    library_text.remove_prefix(begin + 1);
    const size_t length = library_text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
    if (length == std::string_view::npos || length == 0 || library_text[length] != kSettingEnds) {
      result += kSettingBegins;  // a byte of somebody's path
      continue;
    }
    result += spell(library_text.substr(0, length));
    library_text.remove_prefix(length + 1);
  }
}

std::string plain_text(std::string_view library_text) {
  return spell_settings(library_text, [](std::string_view setting) { return std::string(setting); });
}

Remedy give_at_least(std::string setting, std::string value) {
  return {Remedy::Verb::give_at_least, std::move(setting), std::move(value)};
}

Remedy use(std::string setting, std::string value) { return {Remedy::Verb::use, std::move(setting), std::move(value)}; }

Remedy leave_out(std::string setting) { return {Remedy::Verb::leave_out, std::move(setting)}; }

Remedy start_over() { return say("start over with `fresh`"); }

Remedy rebuild(std::string part, std::string store, std::string with) {
  return {Remedy::Verb::rebuild, std::move(part), std::move(store), std::move(with)};
}

Error::Error(ErrorKind kind, std::string sentence, std::vector<Remedy> remedies)
    : std::runtime_error(plain_text(sentence)),
      kind_(kind),
      sentence_(std::move(sentence)),
      remedies_(std::move(remedies)) {}

void vfail(ErrorKind kind, std::vector<Remedy> remedies, fmt::string_view pattern, fmt::format_args args) {
  throw Error(kind, vlibrary_text(pattern, args), std::move(remedies));
}

}  // namespace linblock
