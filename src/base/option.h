// An option is stated once, beside the field that holds it: its name, what stands for its value in help, what it does,
// its range. The default is the field's own initializer. The command line, --help, JSON, the identity of a checkpoint
// and the documentation are loops over these tables.
//
//   struct Pegasos {
//     size_t step = 1;
//     static constexpr auto options() { return std::tuple{option("step", &Pegasos::step, "N", "rows per step")}; }
//   };
#pragma once

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <concepts>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/list.h"

namespace linblock {

// Which numbers an option takes: checked, and said in help and in complaints.
struct ValueRange {
  double above = -std::numeric_limits<double>::infinity();
  double from = -std::numeric_limits<double>::infinity();
  double to = std::numeric_limits<double>::infinity();
  double below = std::numeric_limits<double>::infinity();

  constexpr bool holds(double x) const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return x > above && x >= from && x <= to && x < below && (x < kInfinity && x > -kInfinity);
  }
  // "a number above 0 and up to 1"
  std::string words() const;
  // "a whole number from 1 to 1024", where the type allows numbers from `least` to `most`.
  template <std::integral T>
  std::string whole_words() const {
    constexpr bool kHasEnd = sizeof(T) < 8;
    const T least = from > static_cast<double>(std::numeric_limits<T>::min()) ? static_cast<T>(from)
                                                                              : std::numeric_limits<T>::min();
    std::string text = "a whole number from " + std::to_string(least);
    if (to < static_cast<double>(std::numeric_limits<T>::max()))
      return text + " to " + std::to_string(static_cast<T>(to));
    return text + (kHasEnd ? " to " + std::to_string(std::numeric_limits<T>::max()) : " up");
  }
};

// How a value is read from text and shown. A type of one's own has the members
//   static std::optional<T> read(std::string_view);  std::string show() const;  static std::string what();
// and an enum a function `choices(E)` that pairs names with values, found beside the enum.
template <class T>
concept HasText = requires(const T value, std::string_view text) {
  { T::read(text) } -> std::same_as<std::optional<T>>;
  { value.show() } -> std::same_as<std::string>;
  { T::what() } -> std::convertible_to<std::string>;
};

template <class T>
struct Text;

template <HasText T>
struct Text<T> {
  static std::optional<T> read(std::string_view text, const ValueRange&) { return T::read(text); }
  static std::string show(const T& value) { return value.show(); }
  static std::string what(const ValueRange&) { return T::what(); }
};

std::optional<double> read_finite(std::string_view text);
std::string show_number(double value);

template <class T>
requires std::floating_point<T>
struct Text<T> {
  static std::optional<T> read(std::string_view text, const ValueRange& range) {
    const std::optional<double> value = read_finite(text);
    return value && range.holds(*value) ? std::optional<T>(static_cast<T>(*value)) : std::nullopt;
  }
  static std::string show(const T& value) { return show_number(value); }
  static std::string what(const ValueRange& range) { return range.words(); }
};

template <class T>
requires(std::integral<T> && !std::same_as<T, bool>) struct Text<T> {
  static std::optional<T> read(std::string_view text, const ValueRange& range) {
    T value = 0;
    if (text.starts_with('+')) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !range.holds(static_cast<double>(value))) return {};
    return value;
  }
  static std::string show(const T& value) { return std::to_string(value); }
  static std::string what(const ValueRange& range) { return range.whole_words<T>(); }
};

// On the command line a flag, without a value.
template <>
struct Text<bool> {
  static std::optional<bool> read(std::string_view text, const ValueRange&) {
    return text == "true" ? std::optional(true) : text == "false" ? std::optional(false) : std::nullopt;
  }
  static std::string show(bool value) { return value ? "true" : "false"; }
  static std::string what(const ValueRange&) { return "true or false"; }
};

template <>
struct Text<std::string> {
  static std::optional<std::string> read(std::string_view text, const ValueRange&) { return std::string(text); }
  static std::string show(const std::string& value) { return value; }
  static std::string what(const ValueRange&) { return "text"; }
};

template <class E>
requires std::is_enum_v<E>
struct Text<E> {
  static std::optional<E> read(std::string_view text, const ValueRange&) {
    for (const auto& [name, value] : choices(E{}))
      if (name == text) return value;
    return {};
  }
  static std::string show(const E& value) {
    for (const auto& [name, choice] : choices(E{}))
      if (choice == value) return std::string(name);
    return "?";
  }
  static std::string what(const ValueRange&) {
    std::vector<std::string> names;
    for (const auto& [name, value] : choices(E{})) names.emplace_back(name);
    return join_words(names);
  }
};

// Absent values have a word of their own (Option::absent).
template <class T>
struct Text<std::optional<T>> {
  static std::optional<std::optional<T>> read(std::string_view text, const ValueRange& range) {
    if (const std::optional<T> value = Text<T>::read(text, range)) return std::optional<std::optional<T>>(value);
    return {};
  }
  static std::string show(const std::optional<T>& value) { return Text<T>::show(*value); }
  static std::string what(const ValueRange& range) { return Text<T>::what(range); }
};

// A number of bytes: "64M".
struct SizeText {
  uint64_t bytes = 0;

  constexpr SizeText(uint64_t number = 0) : bytes(number) {}
  constexpr operator uint64_t() const { return bytes; }
  static std::optional<SizeText> read(std::string_view text);
  std::string show() const;
  static std::string what() { return "a size: write a whole number with K, M, G or T, such as 64M or 1G"; }
};

// A number above 0, or none, which the field holds as kAbsent.
template <int kAbsent>
struct NumberOrNone {
  double number = kAbsent;

  constexpr NumberOrNone(double value = kAbsent) : number(value) {}
  constexpr operator double() const { return number; }
  static std::optional<NumberOrNone> read(std::string_view text) {
    if (text == "none") return NumberOrNone();
    const std::optional<double> value = read_finite(text);
    return value && *value > 0 ? std::optional<NumberOrNone>(*value) : std::nullopt;
  }
  std::string show() const { return number == kAbsent ? "none" : show_number(number); }
  static std::string what() { return "a number above 0"; }
};

// A flag that turns a field off: no_shuffle.
struct Inverted {
  bool off = false;

  constexpr explicit Inverted(bool field) : off(!field) {}
  constexpr explicit operator bool() const { return !off; }
  static std::optional<Inverted> read(std::string_view text) {
    return text == "true"    ? std::optional(Inverted(false))
           : text == "false" ? std::optional(Inverted(true))
                             : std::nullopt;
  }
  std::string show() const { return off ? "true" : "false"; }
  static std::string what() { return "true or false"; }
};

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <class T>
inline constexpr bool kIsNumber = std::is_arithmetic_v<T> && !std::same_as<T, bool>;
template <class T>
inline constexpr bool kIsNumber<std::optional<T>> = kIsNumber<T>;

// `As`: the type that reads and shows the field, where it is not the field's own.
template <class Owner, class Field, class As = Field>
struct Option {
  std::string_view name;  // cache_fraction: --cache-fraction, "cache_fraction" in JSON and Python
  Field Owner::*field;
  std::string_view value;  // what stands for a value in help: N, X, NAME
  std::string_view help;   // starts with a verb or a noun; without the default, which is added
  ValueRange range = {};
  std::string_view absent = "auto";  // of an optional: the word for no value
  bool identity = true;              // runs that differ in it are different runs; false: threads, max_passes
};

template <class Owner, class Field>
constexpr Option<Owner, Field> option(std::string_view name, Field Owner::*field, std::string_view value,
                                      std::string_view help, ValueRange range = {}, std::string_view absent = "auto",
                                      bool identity = true) {
  return {name, field, value, help, range, absent, identity};
}
template <class As, class Owner, class Field>
constexpr Option<Owner, Field, As> option_as(std::string_view name, Field Owner::*field, std::string_view value,
                                             std::string_view help, ValueRange range = {},
                                             std::string_view absent = "auto", bool identity = true) {
  return {name, field, value, help, range, absent, identity};
}

// Something with a name, a line of help and options: a method, a loss.
template <class T>
concept Unit = std::default_initializable<T> && std::copyable<T> && requires {
  { T::kName } -> std::convertible_to<std::string_view>;
  { T::kHelp } -> std::convertible_to<std::string_view>;
  T::options();
};

// One option of one object, whatever its type.
struct Setting {
  std::string_view name;
  std::string_view value = {};
  std::string help = {};
  std::string standard = {};  // the default, as text
  bool is_flag = false;
  bool is_number = false;  // in JSON
  bool repeats = false;    // may be given several times: the texts are joined with commas
  bool identity = true;
  std::string what = {};                                       // a value must be: "auto or a number from 0 to below 1"
  std::function<std::string(std::string_view text)> set = {};  // what is wrong with the text, empty: nothing
  std::function<std::string()> get = {};
};

// The options of a table, on an object that outlives the settings.
template <class T, class Table>
std::vector<Setting> settings_in(const Table& table, T& object) {
  [[maybe_unused]] static const T kStandard = {};
  std::vector<Setting> all;
  const auto add =
                 [&]<class Owner, class Field, class As>(const Option<Owner, Field, As>&option) {
                   const auto show = [option](const T& from) -> std::string {
                     const Field& field = from.*option.field;
                     if constexpr (kIsOptional<Field>) {
                       if (!field) return std::string(option.absent);
                     }
                     return Text<As>::show(As(field));
                   };
                   std::string what = Text<As>::what(option.range);
                   if constexpr (kIsOptional<Field>) what = std::string(option.absent) + " or " + what;
                   const auto set = [&object, option, what](std::string_view text) -> std::string {
                     if constexpr (kIsOptional<Field>) {
                       if (text == option.absent) {
                         (object.*option.field).reset();
                         return {};
                       }
                     }
                     const std::optional<As> value = Text<As>::read(text, option.range);
                     if (!value) return fmt::format("'{}' is not {}", text, what);
                     object.*option.field = Field(*value);
                     return {};
                   };
    all.push_back({.name = option.name,
                   .value = option.value,
                   .help = std::string(option.help),
                   .standard = show(kStandard),
                   .is_flag = std::same_as<Field, bool>,
                   .is_number = kIsNumber<As>,
                   .repeats = requires { As::kRepeats;
                 },
             .identity = option.identity, .what = what, .set = set, .get = [&object, show] { return show(object); }
});
};
std::apply([&](const auto&... option) { (add(option), ...); }, table);
return all;
}
template <class T>
std::vector<Setting> settings_of(T& object) {
  return settings_in(T::options(), object);
}

// A line "name: value" for each option that tells runs apart: nobody can forget one.
template <class T>
std::string identity_of(const T& object) {
  T copy = object;
  std::string text;
  for (const Setting& setting : settings_of(copy))
    if (setting.identity) text += std::string(setting.name) + ": " + setting.get() + "\n";
  return text;
}

// An object with a member for each: numbers and flags as such, everything else as text.
Json to_json(const std::vector<Setting>& settings);
// Sets what the object names. Returns what is wrong with a member, empty: nothing.
std::string set_from_json(const std::vector<Setting>& settings, const Json& object);

}  // namespace linblock
