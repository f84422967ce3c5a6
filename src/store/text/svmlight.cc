#include "store/text/svmlight.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "base/error.h"
#include "store/chunk/format.h"

namespace linblock {

namespace {

constexpr std::array<double, 23> kPowers = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                            1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr std::array<uint64_t, 9> kWholePowers = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
constexpr uint64_t kExactInDouble = uint64_t{1} << 53;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }
// A carriage return is white space only in front of its newline.
bool ends_line(const char* at) { return *at == '\n' || (*at == '\r' && at[1] == '\n'); }
bool ends_token(const char* at) { return is_blank(*at) || ends_line(at); }

// How many of the next eight characters, from the first on, are digits.
unsigned leading_digits(uint64_t eight) {
  const uint64_t value = eight ^ 0x3030303030303030ULL;
  const uint64_t non_digits = (value | (value + 0x7676767676767676ULL)) & 0x8080808080808080ULL;
  return non_digits == 0 ? 8 : static_cast<unsigned>(std::countr_zero(non_digits)) / 8;
}

// The number that the first `count` (1 to 8) of eight characters spell: three multiplications, no loop.
uint64_t spelled(uint64_t eight, unsigned count) {
  uint64_t digits = (eight ^ 0x3030303030303030ULL) << (64 - 8 * count);
  digits = digits * 10 + (digits >> 8);
  return (((digits & 0x000000FF000000FFULL) * 0x000F424000000064ULL) +
          (((digits >> 16) & 0x000000FF000000FFULL) * 0x0000271000000001ULL)) >>
         32;
}

// Where a bad line stops the row, and why.
struct Complaint {
  const char* at = nullptr;
  std::string reason;
};

const char* token_end(const char* at) {
  while (!ends_token(at)) ++at;
  return at;
}

// What a label that is no number may come from, and what to do.
std::string guess(const char* begin, const char* end) {
  if (std::any_of(begin, end, [](char c) { return c == ',' || c == ';'; }))
    return ": is this CSV? svmlight text is expected, 'label index:value ...'; the help of 'linblock pack' has a "
           "command that converts it";
  if (*begin == '"') return ": a label that is a word has no quotes; remove them";
  if (std::isalpha(static_cast<unsigned char>(*begin)) != 0)
    return ": labels are all numbers or all words, as in the first row that was packed or trained on; give each class "
           "a number, such as with sed 's/^spam /1 /'";
  return "";
}

std::string quoted(const char* begin) {
  const char* end = token_end(begin);
  const std::string text(begin, std::min<size_t>(static_cast<size_t>(end - begin), 40));
  return "'" + text + (end - begin > 40 ? "...'" : "'");
}

}  // namespace

class SvmlightParser {
 public:
  SvmlightParser(std::span<const unsigned char> text, const SvmlightOptions& options, ParsedRows& rows)
      : options_(options), out_(rows), begin_(reinterpret_cast<const char*>(text.data())), end_(begin_ + text.size()) {
    // The shortest row is "1\n", the shortest nonzero " 1:1".
    out_.labels_.resize((text.size() / 2 + 1) * sizeof(int32_t));
    out_.ends_.resize((text.size() / 2 + 1) * sizeof(uint32_t));
    out_.indices_.resize((text.size() / 4 + 1) * sizeof(uint32_t));
    out_.values_.resize((text.size() / 4 + 1) * sizeof(float));
    index_ = reinterpret_cast<uint32_t*>(out_.indices_.data());
    value_ = reinterpret_cast<float*>(out_.values_.data());
    out_.rows_ = 0;
    out_.lines_ = 0;
    out_.unlabeled_.clear();
    out_.names_.clear();
    out_.bad_.clear();
  }

  void run() {
    auto* labels = reinterpret_cast<int32_t*>(out_.labels_.data());
    auto* ends = reinterpret_cast<uint32_t*>(out_.ends_.data());
    const char* at = begin_;
    while (at < end_) {
      const char* const line = at;
      ++out_.lines_;
      while (is_blank(*at)) ++at;
      if (!ends_line(at) && *at != '#') {
        const size_t count = count_;
        int32_t label = 0;
        at = options_.word_labels ? parse_word(at, label) : parse_label(at, label);
        if (at != nullptr) at = parse_features(at);
        if (at == nullptr) {
          count_ = count;
          if (!refuse(line)) return;
          at = complaint_.at;
        } else {
          labels[out_.rows_] = label;
          ends[out_.rows_++] = static_cast<uint32_t>(count_);
        }
      }
      // A comment, the rest of a bad line, a carriage return: up to the newline that the text surely has.
      if (*at != '\n') at = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end_ - at)));
      ++at;
    }
  }

 private:
  // Each parsing function returns where it stopped, or null with a complaint.
  const char* complain(const char* at, std::string reason) {
    complaint_ = {at, std::move(reason)};
    return nullptr;
  }

  bool refuse(const char* line) {
    const auto* newline =
        static_cast<const char*>(std::memchr(complaint_.at, '\n', static_cast<size_t>(end_ - complaint_.at)));
    size_t length = static_cast<size_t>(newline - line);
    if (length > 0 && line[length - 1] == '\r') --length;
    const char* binary = std::find_if(
        line, line + length, [](char c) { return static_cast<unsigned char>(c) < 32 && c != '\t' && c != '\r'; });
    if (binary != line + length)
      complaint_ = {binary,
                    fmt::format("byte {:#04x} is not text: is this a binary file? svmlight text or a gz, bz2, xz, "
                                "zst or lz4 of it is expected",
                                static_cast<unsigned char>(*binary))};
    out_.bad_.push_back({.line = out_.lines_ - 1,
                         .column = static_cast<size_t>(complaint_.at - line) + 1,
                         .begin = static_cast<size_t>(line - begin_),
                         .length = length,
                         .rows_before = out_.rows_,
                         .reason = std::move(complaint_.reason)});
    return out_.bad_.size() <= options_.most_bad;
  }

  const char* parse_label(const char* at, int32_t& label) {
    const char* const begin = at;
    const bool negative = *at == '-';
    if (negative || *at == '+') ++at;
    const uint64_t eight = load_le<uint64_t>(at);
    const unsigned digits = leading_digits(eight);
    if (digits > 0 && digits < 8 && ends_token(at + digits)) {
      const auto magnitude = static_cast<int32_t>(spelled(eight, digits));
      label = negative ? -magnitude : magnitude;
      return at + digits;
    }
    return parse_unusual_label(begin, label);
  }

  [[gnu::noinline]] const char* parse_unusual_label(const char* begin, int32_t& label) {
    const char* const end = token_end(begin);
    const char* first = *begin == '+' ? begin + 1 : begin;
    const bool is_feature = std::find(begin, end, ':') != end;
    if (is_feature) return no_label(begin, label);
    double number = 0;
    const auto [stop, error] = std::from_chars(first, end, number);
    if (error == std::errc::invalid_argument || stop != end || (*begin == '+' && (*first == '-' || *first == '+')))
      return complain(begin, fmt::format("the label {} is not a number{}", quoted(begin), guess(begin, end)));
    if (!std::isfinite(number) || error == std::errc::result_out_of_range || number != std::floor(number) ||
        std::abs(number) > std::numeric_limits<int32_t>::max())
      return complain(begin, fmt::format("the label {} is not an integer between -2147483647 and 2147483647: give each "
                                         "class a whole number",
                                         quoted(begin)));
    label = static_cast<int32_t>(number);
    return end;
  }

  const char* no_label(const char* begin, int32_t& label) {
    if (!options_.label_optional)
      return complain(begin,
                      fmt::format("the label is missing: the line begins with {}; a row is 'label index:value ...'",
                                  quoted(begin)));
    label = 0;
    out_.unlabeled_.push_back(out_.rows_);
    return begin;
  }

  const char* parse_word(const char* begin, int32_t& label) {
    const char* const end = token_end(begin);
    const std::string_view word(begin, static_cast<size_t>(end - begin));
    if (word == last_word_) {
      label = last_label_;
      return end;
    }
    std::optional<int32_t> code = out_.names_.find(word);
    if (!code) {
      if (word.find(':') != std::string_view::npos) return no_label(begin, label);
      if (const std::string wrong = wrong_with_label(word); !wrong.empty())
        return complain(begin, fmt::format("{} cannot be a label: {}", quoted(begin), wrong));
      code = out_.names_.add(word);
    }
    last_word_ = word;
    last_label_ = label = *code;
    return end;
  }

  const char* parse_features(const char* at) {
    const size_t first = count_;
    uint64_t smallest_allowed = options_.index_zero ? 0 : 1;
    while (true) {
      while (is_blank(*at)) ++at;
      uint64_t eight = load_le<uint64_t>(at);
      const unsigned digits = leading_digits(eight);
      if (digits == 0) {
        if (ends_line(at) || *at == '#') return at;
        if (count_ == first && std::strncmp(at, "qid:", 4) == 0) {
          at = token_end(at);
          continue;
        }
        return complain(at, fmt::format("{} is not a feature: 'index:value' is expected", quoted(at)));
      }
      const char* const token = at;
      uint64_t index = spelled(eight, digits);
      at += digits;
      if (digits == 8) {
        for (; is_digit(*at); ++at) {
          index = index * 10 + static_cast<uint64_t>(*at - '0');
          if (index > format::kLargestIndex) return too_large_index(token);
        }
      }
      if (*at != ':') return no_value(token, at, count_ == first);
      if (index < smallest_allowed) return misplaced_index(token, index, first);
      smallest_allowed = index + 1;
      ++at;
      float value = 0;
      if (is_digit(*at) && is_blank(at[1])) {  // indicator and count data, all of it
        value = static_cast<float>(*at - '0');
        ++at;
      } else {
        at = parse_value(at, value);
        if (at == nullptr) return nullptr;
      }
      index_[count_] = static_cast<uint32_t>(index);
      value_[count_++] = value;
    }
  }

  [[gnu::noinline]] const char* no_value(const char* token, const char* at, bool first) {
    // Where the second number of a line stands alone, most likely all of them do.
    const char* const end = token_end(token);
    const bool table = first && std::find(token, end, ':') == end;
    return complain(at, fmt::format("feature {} has no value: 'index:value' is expected{}", quoted(token),
                                    table ? "; is this a table of numbers? The help of 'linblock pack' has a command "
                                            "that converts it"
                                          : ""));
  }

  [[gnu::noinline]] const char* too_large_index(const char* token) {
    return complain(token, fmt::format("feature index {} is beyond {}: number the features from 1", quoted(token),
                                       format::kLargestIndex));
  }

  [[gnu::noinline]] const char* misplaced_index(const char* token, uint64_t index, size_t first) {
    if (count_ == first)
      return complain(token,
                      library_text("feature index 0 in data that is numbered from 1: use `index_base` 0 or auto, or "
                                   "number the features from 1"));
    if (index == index_[count_ - 1])
      return complain(token,
                      fmt::format("feature index {} stands twice in this row: add the values up or drop one", index));
    return complain(token, fmt::format("feature index {} follows {}: indices must increase within a row; sort them",
                                       index, index_[count_ - 1]));
  }

  // [sign] digits [. digits] [e [sign] digits], exact where the digits fit 53 bits and the power of ten 22: the
  // quotient or product of two exact doubles is the nearest double. All else goes to the library.
  [[gnu::always_inline]] inline const char* parse_value(const char* begin, float& value) {
    const char* at = begin;
    const bool negative = *at == '-';
    if (negative || *at == '+') ++at;
    uint64_t eight = 0;
    unsigned digits = 0;
    uint64_t mantissa = 0;
    if (is_digit(*at) && at[1] == '.') {  // most numbers of most files
      mantissa = static_cast<uint64_t>(*at++ - '0');
    } else {
      eight = load_le<uint64_t>(at);
      digits = leading_digits(eight);
      if (digits == 0 || digits == 8) return parse_unusual_value(begin, value);
      mantissa = spelled(eight, digits);
      at += digits;
      if (ends_token(at)) {
        const auto whole = static_cast<float>(mantissa);
        value = negative ? -whole : whole;
        return at;
      }
    }
    int power = 0;
    if (*at == '.') {
      ++at;
      eight = load_le<uint64_t>(at);
      digits = leading_digits(eight);
      if (digits > 0) {
        mantissa = mantissa * kWholePowers[digits] + spelled(eight, digits);
        power = static_cast<int>(digits);
        at += digits;
      }
      if (digits == 8) {
        eight = load_le<uint64_t>(at);
        digits = leading_digits(eight);
        if (digits == 8 || mantissa >= kExactInDouble / kWholePowers[digits]) return parse_unusual_value(begin, value);
        if (digits > 0) {
          mantissa = mantissa * kWholePowers[digits] + spelled(eight, digits);
          power += static_cast<int>(digits);
          at += digits;
        }
      }
    }
    if ((*at | 32) == 'e') {
      ++at;
      const bool small = *at == '-';
      if (small || *at == '+') ++at;
      if (!is_digit(*at)) return parse_unusual_value(begin, value);
      int exponent = *at++ - '0';
      if (is_digit(*at)) exponent = exponent * 10 + (*at++ - '0');
      power += small ? exponent : -exponent;
    }
    if (!ends_token(at) || power > 22 || power < -22 || mantissa >= kExactInDouble)
      return parse_unusual_value(begin, value);
    const auto exact = static_cast<double>(mantissa);
    const double number =
        power >= 0 ? exact / kPowers[static_cast<size_t>(power)] : exact * kPowers[static_cast<size_t>(-power)];
    value = static_cast<float>(negative ? -number : number);
    if (std::isinf(value)) return parse_unusual_value(begin, value);
    return at;
  }

  [[gnu::noinline]] const char* parse_unusual_value(const char* begin, float& value) {
    const char* const end = token_end(begin);
    const char* first = *begin == '+' ? begin + 1 : begin;
    double number = 0;
    const auto [stop, error] = std::from_chars(first, end, number);
    if (begin == end)
      return complain(begin, "the value is missing: 'index:value' is expected, without a space in between");
    if (error == std::errc::invalid_argument || stop != end || (*begin == '+' && (*first == '-' || *first == '+')))
      return complain(begin, fmt::format("the value {} is not a number", quoted(begin)));
    if (error == std::errc() && !std::isfinite(number))
      return complain(begin,
                      fmt::format("the value {} is not finite: remove it or replace it with a number", quoted(begin)));
    if (error == std::errc::result_out_of_range) {
      // Out of range in either direction: huge is refused, tiny is zero.
      const std::string digits(first, end);
      number = std::strtod(digits.c_str(), nullptr);
    }
    value = static_cast<float>(number);  // to the nearest: the largest float may be written a little too large
    if (std::isinf(value))
      return complain(
          begin,
          fmt::format("the value {} is beyond the range of 32-bit floats (3.4e38): scale this feature", quoted(begin)));
    return end;
  }

  const SvmlightOptions options_;
  ParsedRows& out_;
  const char* begin_;
  const char* end_;
  uint32_t* index_ = nullptr;
  float* value_ = nullptr;
  size_t count_ = 0;
  std::string_view last_word_;  // in the text
  int32_t last_label_ = 0;
  Complaint complaint_;
};

void parse_svmlight(std::span<const unsigned char> text, const SvmlightOptions& options, ParsedRows& rows) {
  SvmlightParser(text, options, rows).run();
}

namespace {

// Of text without a row that can be read: whether the first line begins with what can only be a label that is a word.
// What is wrong with that line is then said, and not that a word is no number.
bool looks_like_word(std::span<const unsigned char> text) {
  const std::string_view all(reinterpret_cast<const char*>(text.data()), text.size());
  const size_t begin = all.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || std::isalpha(static_cast<unsigned char>(all[begin])) == 0) return false;
  const std::string_view word = all.substr(begin, all.find_first_of(" \t\r\n", begin) - begin);
  double number = 0;
  return word.find(':') == std::string_view::npos && wrong_with_label(word).empty() &&
         std::from_chars(word.data(), word.data() + word.size(), number).ec == std::errc::invalid_argument;
}

}  // namespace

std::optional<bool> has_word_labels(std::span<const unsigned char> text, const SvmlightOptions& options) {
  SvmlightOptions words = options;
  words.word_labels = true;
  words.most_bad = SIZE_MAX;
  ParsedRows rows;
  parse_svmlight(text, words, rows);
  if (rows.size() == 0) return looks_like_word(text) ? std::optional(true) : std::nullopt;
  const std::string_view word = rows.label_names()[static_cast<size_t>(rows.label(0))];
  // Numbers that no label may be, such as 0.5, are refused as such.
  double number = 0;
  const size_t sign = word[0] == '+' ? 1 : 0;
  const auto [end, error] = std::from_chars(word.data() + sign, word.data() + word.size(), number);
  return error == std::errc::invalid_argument || end != word.data() + word.size();
}

void ParsedRows::recode_labels(std::span<const int32_t> codes) {
  auto* const labels = reinterpret_cast<int32_t*>(labels_.data());
  for (size_t row = 0; row < rows_; ++row)
    if (labeled(row)) labels[row] = codes[static_cast<size_t>(labels[row])];
}

std::string describe_bad_line(std::string_view file, uint64_t line, const BadLine& bad, std::string_view text) {
  constexpr size_t kWindow = 100;
  const size_t place = bad.column - 1;
  const size_t from = place > kWindow / 2 && text.size() > kWindow ? place - kWindow / 2 : 0;
  std::string shown(text.substr(from, kWindow));
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = c == '\t' ? ' ' : '?';
  const std::string before = from > 0 ? "..." : "";
  const std::string after = from + kWindow < text.size() ? "..." : "";
  return fmt::format("{}:{}:{}: {}\n  {}{}{}\n  {}^", file, line, bad.column, bad.reason, before, shown, after,
                     std::string(before.size() + place - from, ' '));
}

}  // namespace linblock
