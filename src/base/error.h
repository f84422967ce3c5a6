// The one exception type: a kind (which fixes the exit code), a sentence for the user, and what helps.
// The library knows settings by their names in JSON and Python (`memory`, `cache_fraction`). A front end spells them.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace linblock {

enum class ErrorKind {
  usage,          // the request itself is wrong
  input,          // the user's data cannot be accepted
  damaged,        // a store or model is not what was written
  io,             // the operating system refused, or the disk is full
  memory,         // the memory asked for cannot hold the problem
  interrupted,    // the user asked to stop
  not_converged,  // the answer is there, but its gap is above the tolerance
};

// Library text marks the settings that it names: a front end finds them, and no path or row can look like a setting.
inline constexpr char kSettingBegins = '\x01';
inline constexpr char kSettingEnds = '\x02';

std::string vlibrary_text(fmt::string_view pattern, fmt::format_args args);

// fmt::format for such text. A setting stands in backquotes in the pattern: library_text("`memory` allows {}", size).
template <typename... Args>
std::string library_text(fmt::format_string<Args...> pattern, const Args&... args) {
  return vlibrary_text(pattern, fmt::make_format_args(args...));
}

// The text as a front end spells its settings.
std::string spell_settings(std::string_view library_text, const std::function<std::string(std::string_view)>& spell);
// The text with settings as plain words: "memory allows 64 MB".
std::string plain_text(std::string_view library_text);

// What a user can do about an error. Several remedies of one error are alternatives.
struct Remedy {
  enum class Verb { give_at_least, use, leave_out, rebuild, say };
  Verb verb;
  std::string setting;     // of `rebuild`: the part of a store, "columns" or "index"; of `say` nothing
  std::string value = {};  // of `rebuild`: the store; of `say`: library text that begins with a verb
  std::string with = {};   // of `rebuild`: library text of settings, such as "`bias` 1"

  bool operator==(const Remedy&) const = default;
};

// give_at_least("memory", "40M")
Remedy give_at_least(std::string setting, std::string value);
// use("solver", "dual"). A switch has no value: use("fresh")
Remedy use(std::string setting, std::string value = {});
Remedy leave_out(std::string setting);
// For a checkpoint that cannot be resumed from.
Remedy start_over();
// rebuild("index", store.path()): the rows are whole, and this part of the store can be made from them again.
Remedy rebuild(std::string part, std::string store, std::string with = {});
// say("pack with smaller chunks (`chunk_bytes`)")
template <typename... Args>
Remedy say(fmt::format_string<Args...> pattern, const Args&... args) {
  return {Remedy::Verb::say, {}, vlibrary_text(pattern, fmt::make_format_args(args...))};
}

// The sentence says what failed, where and why; it has no full stop at its end. The remedies say what to do about it.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string sentence, std::vector<Remedy> remedies = {});

  ErrorKind kind() const { return kind_; }
  // what() with its settings marked: for front ends, and for errors that repeat this one's sentence.
  const std::string& sentence() const { return sentence_; }
  const std::vector<Remedy>& remedies() const { return remedies_; }

 private:
  ErrorKind kind_;
  std::string sentence_;
  std::vector<Remedy> remedies_;
};

[[noreturn]] void vfail(ErrorKind kind, std::vector<Remedy> remedies, fmt::string_view pattern, fmt::format_args args);

// fail(ErrorKind::input, "'{}' is empty", path)
template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> pattern, const Args&... args) {
  vfail(kind, {}, pattern, fmt::make_format_args(args...));
}

// fail(ErrorKind::memory, {give_at_least("memory", "40M"), use("solver", "dual")}, "`memory` allows only {}", size)
template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, std::vector<Remedy> remedies, fmt::format_string<Args...> pattern,
                       const Args&... args) {
  vfail(kind, std::move(remedies), pattern, fmt::make_format_args(args...));
}

}  // namespace linblock
