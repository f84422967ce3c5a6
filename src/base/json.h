// A JSON value: reports, manifests and traces are made of it and read back. Members of an object keep their order.
//
//   Json json = {{"rows", 60}, {"labels", {1, -1}}, {"dual", nullptr}};
//   json["gap"] = 0.01;
//   const double gap = Json::parse(text).at("gap").number();
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace linblock {

// The text is no JSON, or the value is not of the kind that was asked for.
struct JsonError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class JsonItem;

class Json {
 public:
  using Member = std::pair<std::string, Json>;

  Json() = default;
  Json(std::nullptr_t) {}
  template <std::same_as<bool> Flag>  // no pointer is meant to become true
  Json(Flag flag) : value_(flag) {}
  template <std::signed_integral Whole>
  Json(Whole whole) : value_(static_cast<int64_t>(whole)) {}
  template <std::unsigned_integral Whole>
  requires(!std::same_as<Whole, bool>) Json(Whole whole) : value_(static_cast<uint64_t>(whole)) {}
  Json(double number) : value_(number) {}
  Json(const char* text);
  Json(std::string_view text);
  Json(std::string text);
  template <std::convertible_to<Json> Item>
  Json(const std::vector<Item>& items) : Json(array()) {
    for (const Item& item : items) push_back(item);
  }
  // An object where every item is a list of two whose first is a text, else a list: {{"rows", 60}} and {1, 2}.
  Json(std::initializer_list<JsonItem> items);

  // Defined where they are compiled once.
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  static Json array();
  static Json object();

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
  bool is_flag() const { return std::holds_alternative<bool>(value_); }
  bool is_number() const { return is_signed() || is_unsigned() || std::holds_alternative<double>(value_); }
  bool is_unsigned() const { return std::holds_alternative<uint64_t>(value_); }  // as read: whole, and not below 0
  bool is_text() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // What is of another kind throws JsonError.
  bool flag() const;
  double number() const;
  uint64_t whole() const;  // a number that is_unsigned
  const std::string& text() const;
  std::span<const Json> items() const;      // of a list
  std::span<const Member> members() const;  // of an object

  // Of an object. A name that is missing: a null pointer, or JsonError.
  const Json* find(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  const Json& at(std::string_view name) const;

  // Null becomes an object; a name that is missing, a null.
  Json& operator[](std::string_view name);
  // All members of another object; those that are here already get the new value.
  void update(const Json& other);
  // Null becomes a list.
  void push_back(Json item);
  Json& back();
  // Of a list or an object.
  size_t size() const;

  // Numbers that differ in kind alone are equal.
  bool operator==(const Json& other) const;

  // Without an indent, one line. What is not UTF-8 becomes a replacement character: names of files need not be.
  std::string dump(std::optional<size_t> indent = {}) const;

  static Json parse(std::string_view text);
  static Json parse(std::span<const unsigned char> bytes);
  // Nothing: the text is no JSON.
  static std::optional<Json> try_parse(std::string_view text);

 private:
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;

  bool is_signed() const { return std::holds_alternative<int64_t>(value_); }
  template <class Kind>
  const Kind& expect(const char* kind) const;
  void append_to(std::string& text, std::optional<size_t> indent, size_t depth) const;

  std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, Array, Object> value_;
};

// A value in braces: it is moved to where it belongs, which an initializer list does not allow by itself.
class JsonItem {
 public:
  template <class Value>
  requires(std::constructible_from<Json, Value> && !std::same_as<std::remove_cvref_t<Value>, JsonItem>)
      JsonItem(Value&& value)  // NOLINT(bugprone-forwarding-reference-overload): another JsonItem is excluded
      : value_(std::forward<Value>(value)) {}
  JsonItem(std::initializer_list<JsonItem> items) : value_(items) {}

  Json take() const { return std::move(value_); }
  const Json& value() const { return value_; }

 private:
  mutable Json value_;
};

}  // namespace linblock
