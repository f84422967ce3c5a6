#include "store/text/label_names.h"

#include <algorithm>

#include "base/checksum.h"
#include "base/error.h"
#include "base/json.h"
#include "base/option.h"
#include "store/chunk/format.h"
#include "store/text/utf8.h"

namespace linblock {

namespace {

constexpr size_t kFirstSlots = 16;
constexpr size_t kCopies = 5;       // of the text
constexpr size_t kTableBytes = 32;  // of each name: its end and its slots, while both grow, and its place in counts

bool is_white_space(char32_t c) {
  return c == ' ' || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200B) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace

std::string wrong_with_label(std::string_view word) {
  if (word.empty()) return "it is empty";
  if (word.size() > format::kMostLabelBytes) return fmt::format("it is longer than {} bytes", format::kMostLabelBytes);
  if (word[0] == '#') return "it begins with '#', which begins a comment";
  for (size_t at = 0; at < word.size();) {
    const CodePoint point = first_code_point(word.substr(at));
    if (point.bytes == 0) return "it is not UTF-8";
    if (is_control(point.value)) return "it has a control character";
    if (is_white_space(point.value)) return "it has white space";
    if (point.value == 0xFEFF) return "it has a byte order mark; save the text without one";
    if (std::string_view(":,;\"").find(static_cast<char>(point.value)) != std::string_view::npos && point.bytes == 1)
      return fmt::format("it has a '{}'", static_cast<char>(point.value));
    at += point.bytes;
  }
  return "";
}

struct LabelNames::Table {
  std::string text;
  std::vector<uint32_t> ends;
  std::vector<uint32_t> slots;  // a hash table of codes + 1; 0: free; at most half full
};

size_t LabelNames::size() const { return empty() ? 0 : table_->ends.size(); }
size_t LabelNames::bytes() const { return empty() ? 0 : table_->text.size(); }

// The manifest is made from a copy of all names, which is copied while it grows.
size_t LabelNames::memory_bytes() const { return kCopies * bytes() + kTableBytes * size(); }

std::string_view LabelNames::name_in(const Table& table, size_t code) {
  const size_t begin = code == 0 ? 0 : table.ends[code - 1];
  return std::string_view(table.text).substr(begin, table.ends[code] - begin);
}

std::string_view LabelNames::operator[](size_t code) const { return name_in(*table_, code); }

// Where the name is, or would be.
size_t LabelNames::slot_of(const Table& table, std::string_view name) {
  const size_t mask = table.slots.size() - 1;
  size_t slot = checksum({reinterpret_cast<const unsigned char*>(name.data()), name.size()}) & mask;
  while (table.slots[slot] != 0 && name_in(table, table.slots[slot] - 1) != name) slot = (slot + 1) & mask;
  return slot;
}

// With room for one name more.
LabelNames::Table& LabelNames::own_table() {
  if (empty())
    table_ = std::make_shared<Table>();
  else if (table_.use_count() > 1)
    table_ = std::make_shared<Table>(*table_);
  Table& table = *table_;
  if (2 * (table.ends.size() + 1) > table.slots.size()) {
    table.slots.assign(std::max(kFirstSlots, 2 * table.slots.size()), 0);
    for (size_t code = 0; code < table.ends.size(); ++code)
      table.slots[slot_of(table, name_in(table, code))] = static_cast<uint32_t>(code + 1);
  }
  return table;
}

std::optional<int32_t> LabelNames::find(std::string_view name) const {
  if (empty()) return {};
  const uint32_t found = table_->slots[slot_of(*table_, name)];
  return found == 0 ? std::nullopt : std::optional(static_cast<int32_t>(found - 1));
}

int32_t LabelNames::add(std::string_view name) {
  if (const std::optional<int32_t> code = find(name)) return *code;
  Table& table = own_table();
  const size_t slot = slot_of(table, name);
  table.text += name;
  table.ends.push_back(static_cast<uint32_t>(table.text.size()));
  table.slots[slot] = static_cast<uint32_t>(table.ends.size());
  return static_cast<int32_t>(table.ends.size() - 1);
}

std::optional<int32_t> LabelNames::read(std::string_view label) const {
  return empty() ? Text<int32_t>::read(label, {}) : find(label);
}

void LabelNames::append(int32_t label, std::string& to) const {
  if (label >= 0 && static_cast<size_t>(label) < size())
    to += (*this)[static_cast<size_t>(label)];
  else
    to += std::to_string(label);
}

std::string LabelNames::show(int32_t label) const {
  std::string text;
  append(label, text);
  return text;
}

Json LabelNames::json(int32_t label) const { return empty() ? Json(label) : Json(show(label)); }

Json LabelNames::json(const std::vector<int32_t>& labels) const {
  Json items = Json::array();
  for (const int32_t label : labels) items.push_back(json(label));
  return items;
}

std::string LabelNames::list(const std::vector<int32_t>& labels, std::string_view separator) const {
  std::string text;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (i > 0) text += separator;
    append(labels[i], text);
  }
  return text;
}

std::string LabelNames::text() const {
  std::string all;
  for (size_t code = 0; code < size(); ++code) {
    if (code > 0) all += ' ';
    all += (*this)[code];
  }
  return all;
}

LabelNames LabelNames::from_text(std::string_view text) {
  LabelNames names;
  while (true) {
    const std::string_view name = text.substr(0, text.find(' '));
    if (const std::string wrong = wrong_with_label(name); !wrong.empty())
      fail(ErrorKind::damaged, "the name of its label {} is impossible: {}", names.size(), wrong);
    if (names.find(name)) fail(ErrorKind::damaged, "two of its labels have the same name");
    names.add(name);
    if (names.size() > format::kMostLabels || names.bytes() > format::kMostLabelNames)
      fail(ErrorKind::damaged, "it has too many names of labels");
    if (name.size() == text.size()) return names;
    text.remove_prefix(name.size() + 1);
  }
}

}  // namespace linblock
