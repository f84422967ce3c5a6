#include "cli/show/words.h"

#include <algorithm>
#include <cctype>

namespace linblock::cli {

namespace {

std::string remedies_of(const Error& error) {
  std::string words;
  for (const Remedy& remedy : error.remedies()) words += (words.empty() ? "" : ", or ") + in_flags(remedy);
  words[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(words[0])));
  return words + ".";
}

// "linblock index STORE --bias 1 --force"
std::string rebuilding(const Remedy& remedy) {
  const std::string command = remedy.setting == "columns" ? "transpose" : remedy.setting;
  const std::string with = remedy.with.empty() ? "" : " " + in_flags(remedy.with);
  return fmt::format("linblock {} {}{} --force", command, remedy.value, with);
}

// What stands between a sentence and its remedies. Below a list or a bad line they have a line of their own.
std::string_view end_of(std::string_view sentence) {
  if (sentence.find('\n') != std::string_view::npos) return "\n";
  return sentence.ends_with('.') || sentence.ends_with('?') ? " " : ". ";
}

}  // namespace

std::string wrapped(std::string_view text, size_t width, size_t indent) {
  std::string lines;
  size_t length = 0;  // of the last line
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (length > 0 && length + 1 + word.size() > width) {
      lines.resize(lines.find_last_not_of(' ') + 1);
      lines += '\n' + std::string(indent, ' ');
      length = 0;
    }
    if (length > 0) lines += ' ';
    lines += word;
    length += word.size() + (length > 0 ? 1 : 0);
  }
  return lines;
}

std::string as_flag(std::string_view setting) {
  std::string flag = "--" + std::string(setting);
  for (char& letter : flag) letter = letter == '_' ? '-' : letter;
  return flag;
}

std::string in_flags(std::string_view library_text) { return spell_settings(library_text, as_flag); }

std::string in_flags(const Remedy& remedy) {
  switch (remedy.verb) {
    case Remedy::Verb::give_at_least: return fmt::format("give {} {} or more", as_flag(remedy.setting), remedy.value);
    case Remedy::Verb::use:
      return fmt::format("use {}{}{}", as_flag(remedy.setting), remedy.value.empty() ? "" : " ", remedy.value);
    case Remedy::Verb::leave_out: return fmt::format("leave out {}", as_flag(remedy.setting));
    case Remedy::Verb::rebuild: return fmt::format("rebuild the {} with '{}'", remedy.setting, rebuilding(remedy));
    case Remedy::Verb::say: break;
  }
  return in_flags(remedy.value);
}

std::string message_of(const Error& error) {
  std::string words = in_flags(error.sentence());
  if (!error.remedies().empty()) words.append(end_of(words)).append(remedies_of(error));
  return words;
}

}  // namespace linblock::cli
