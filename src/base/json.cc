#include "base/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace linblock {

namespace {

constexpr size_t kDeepest = 64;  // lists in lists: what is read must not overflow the stack

// Escapes, and digits that give back the same number, are nlohmann's.
std::string shown(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void new_line(std::string& text, size_t spaces) {
  text += '\n';
  text.append(spaces, ' ');
}

// Makes a value of what nlohmann's parser reports.
class Builder {
 public:
  Json take() { return std::move(root_); }
  const std::string& error() const { return error_; }

  bool null() { return add(nullptr); }
  bool boolean(bool flag) { return add(flag); }
  bool number_integer(int64_t number) { return add(number); }
  bool number_unsigned(uint64_t number) { return add(number); }
  bool number_float(double number, const std::string&) { return add(number); }
  bool string(std::string& text) { return add(std::move(text)); }
  bool binary(std::vector<uint8_t>&) { return false; }
  bool start_object(size_t) { return open(Json::object()); }
  bool start_array(size_t) { return open(Json::array()); }
  bool key(std::string& name) {
    name_ = std::move(name);
    return true;
  }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception& error) {
    error_ = error.what();
    return false;
  }

 private:
  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (open_.size() == kDeepest) {
      error_ = "lists are nested too deeply";
      return false;
    }
    open_.push_back(&place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  // The pointers in open_ stay valid: only the innermost of them grows.
  Json& place(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    Json& parent = *open_.back();
    if (parent.is_object()) return parent[name_] = std::move(value);
    parent.push_back(std::move(value));
    return parent.back();
  }

  Json root_;
  std::vector<Json*> open_;
  std::string name_;
  std::string error_;
};

bool read(std::string_view text, Builder& builder) {
  return nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
}

}  // namespace

Json::Json(const char* text) : value_(std::string(text)) {}
Json::Json(std::string_view text) : value_(std::string(text)) {}
Json::Json(std::string text) : value_(std::move(text)) {}

Json::Json(std::initializer_list<JsonItem> items) {
  const bool named = std::all_of(items.begin(), items.end(), [](const JsonItem& item) {
    const Array* pair = std::get_if<Array>(&item.value().value_);
    return pair != nullptr && pair->size() == 2 && pair->front().is_text();
  });
  if (!named) {
    Array& list = value_.emplace<Array>();
    for (const JsonItem& item : items) list.push_back(item.take());
    return;
  }
  Object& members = value_.emplace<Object>();
  for (const JsonItem& item : items) {
    Json pair = item.take();
    Array& name_and_value = std::get<Array>(pair.value_);
    members.emplace_back(std::move(std::get<std::string>(name_and_value[0].value_)), std::move(name_and_value[1]));
  }
}

Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

Json Json::array() {
  Json json;
  json.value_.emplace<Array>();
  return json;
}

Json Json::object() {
  Json json;
  json.value_.emplace<Object>();
  return json;
}

template <class Kind>
const Kind& Json::expect(const char* kind) const {
  if (const Kind* value = std::get_if<Kind>(&value_)) return *value;
  throw JsonError("'" + dump().substr(0, 40) + "' is no " + kind);
}

bool Json::flag() const { return expect<bool>("truth value"); }
uint64_t Json::whole() const { return expect<uint64_t>("whole number"); }
const std::string& Json::text() const { return expect<std::string>("text"); }
std::span<const Json> Json::items() const { return expect<Array>("list"); }
std::span<const Json::Member> Json::members() const { return expect<Object>("object"); }

double Json::number() const {
  if (const int64_t* number = std::get_if<int64_t>(&value_)) return static_cast<double>(*number);
  if (const uint64_t* number = std::get_if<uint64_t>(&value_)) return static_cast<double>(*number);
  return expect<double>("number");
}

const Json* Json::find(std::string_view name) const {
  const Object* members = std::get_if<Object>(&value_);
  if (members == nullptr) return nullptr;
  for (const Member& member : *members)
    if (member.first == name) return &member.second;
  return nullptr;
}

const Json& Json::at(std::string_view name) const {
  expect<Object>("object");
  if (const Json* value = find(name)) return *value;
  throw JsonError("'" + std::string(name) + "' is missing");
}

Json& Json::operator[](std::string_view name) {
  if (is_null()) value_.emplace<Object>();
  if (const Json* value = find(name)) return const_cast<Json&>(*value);
  expect<Object>("object");
  return std::get<Object>(value_).emplace_back(name, Json()).second;
}

void Json::update(const Json& other) {
  for (const Member& member : other.members()) (*this)[member.first] = member.second;
}

void Json::push_back(Json item) {
  if (is_null()) value_.emplace<Array>();
  expect<Array>("list");
  std::get<Array>(value_).push_back(std::move(item));
}

Json& Json::back() {
  expect<Array>("list");
  return std::get<Array>(value_).back();
}

size_t Json::size() const { return is_object() ? members().size() : items().size(); }

bool Json::operator==(const Json& other) const {
  if (value_.index() == other.value_.index()) return value_ == other.value_;
  if (!is_number() || !other.is_number()) return false;
  if (std::holds_alternative<double>(value_) || std::holds_alternative<double>(other.value_))
    return number() == other.number();
  const int64_t with_sign = std::get<int64_t>(is_signed() ? value_ : other.value_);
  return with_sign >= 0 && static_cast<uint64_t>(with_sign) == std::get<uint64_t>(is_signed() ? other.value_ : value_);
}

std::string Json::dump(std::optional<size_t> indent) const {
  std::string text;
  append_to(text, indent, 0);
  return text;
}

void Json::append_to(std::string& text, std::optional<size_t> indent, size_t depth) const {
  const auto enclose = [&](char open, char close, const auto& list, const auto& append) {
    text += open;
    for (size_t i = 0; i < list.size(); ++i) {
      if (i > 0) text += ',';
      if (indent) new_line(text, *indent * (depth + 1));
      append(list[i]);
    }
    if (indent && !list.empty()) new_line(text, *indent * depth);
    text += close;
  };
  if (const Array* list = std::get_if<Array>(&value_)) {
    enclose('[', ']', *list, [&](const Json& item) { item.append_to(text, indent, depth + 1); });
  } else if (const Object* members = std::get_if<Object>(&value_)) {
    enclose('{', '}', *members, [&](const Member& member) {
      text += shown(member.first) + (indent ? ": " : ":");
      member.second.append_to(text, indent, depth + 1);
    });
  } else if (const std::string* words = std::get_if<std::string>(&value_)) {
    text += shown(*words);
  } else if (const bool* flag = std::get_if<bool>(&value_)) {
    text += *flag ? "true" : "false";
  } else if (const int64_t* negative = std::get_if<int64_t>(&value_)) {
    text += std::to_string(*negative);
  } else if (const uint64_t* whole = std::get_if<uint64_t>(&value_)) {
    text += std::to_string(*whole);
  } else if (const double* number = std::get_if<double>(&value_)) {
    text += shown(*number);
  } else {
    text += "null";
  }
}

Json Json::parse(std::string_view text) {
  Builder builder;
  if (!read(text, builder)) throw JsonError(builder.error());
  return builder.take();
}

Json Json::parse(std::span<const unsigned char> bytes) {
  return parse(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::optional<Json> Json::try_parse(std::string_view text) {
  Builder builder;
  if (!read(text, builder)) return {};
  return builder.take();
}

}  // namespace linblock
