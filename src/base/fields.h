// What is saved has one function that names its fields, for writing and for reading:
//
//   struct Position {
//     int pass = 0;
//     uint64_t block = 0;
//     static void visit_fields(auto& self, auto&& field) { field("pass", self.pass), field("block", self.block); }
//   };
//
// A field is a number, a bool, an enum, a text, an optional number, or an array of numbers; a vector takes the size
// that the file has, a span or an array insists on its own. Objects with fields nest: "position.pass". A vector of such
// objects becomes one array per field, so that padding never reaches a file. A class that must check what it reads, or
// has parts that only sometimes exist, has save(FieldWriter&) and restore(FieldReader&) instead.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/snapshot.h"

namespace linblock {

class FieldWriter;
class FieldReader;

template <class T>
concept HasFields = requires(T& value) {
  T::visit_fields(value, [](std::string_view, auto&&) {});
};

template <class T>
concept SavesItself = requires(const T& value, T& target, FieldWriter& to, FieldReader& from) {
  value.save(to);
  target.restore(from);
};

// last_of(E{}) is the enum's last value; they count from 0. No number beyond it is ever taken from a file.
template <class E>
concept RangedEnum = std::is_enum_v<E> && requires(E value) {
  { last_of(value) } -> std::same_as<E>;
};

// "task.3": a field among several.
std::string numbered(std::string_view name, size_t number);

namespace fields_detail {

inline constexpr size_t kPiece = 4096;  // values of an array that is gathered from objects

template <class T>
struct OptionalOf : std::false_type {};
template <class T>
struct OptionalOf<std::optional<T>> : std::true_type {};

template <class T>
concept Flag = std::same_as<T, bool>;
template <class T>
concept Scalar = Element<T> || Flag<T> || RangedEnum<T>;
template <class T>
concept TextValue = std::same_as<T, std::string> || std::same_as<T, std::string_view>;

// What stands in the file for a scalar.
template <Scalar T>
using Stored = std::conditional_t<Flag<T>, uint8_t, std::conditional_t<std::is_enum_v<T>, uint32_t, T>>;
template <Scalar T>
constexpr ElementType type_of() {
  return Flag<T> ? ElementType::boolean : element_type<Stored<T>>();
}
template <Scalar T>
bool is_possible(Stored<T> stored) {
  if constexpr (Flag<T>) return stored <= 1;
  if constexpr (std::is_enum_v<T>) return stored <= static_cast<Stored<T>>(last_of(T{}));
  return true;
}

// Calls act(path, offset, type_identity<Scalar>) for each scalar in an object.
template <class Object, class Act>
struct ScalarsOf {
  const Object& object;
  std::string path;
  const Act& act;

  template <class T>
  void operator()(std::string_view name, T& member) const {
    using Member = std::remove_const_t<T>;
    const std::string inner_path = path + "." + std::string(name);
    if constexpr (HasFields<Member>) {
      Member::visit_fields(member, ScalarsOf{object, inner_path, act});
    } else {
      static_assert(Scalar<Member>, "objects in a vector have scalar fields only");
      const auto offset = reinterpret_cast<const char*>(&member) - reinterpret_cast<const char*>(&object);
      act(inner_path, static_cast<size_t>(offset), std::type_identity<Member>{});
    }
  }
};

template <class Object, class Act>
void for_each_scalar(const std::string& path, const Act& act) {
  const Object object{};
  Object::visit_fields(object, ScalarsOf<Object, Act>{object, path, act});
}

}  // namespace fields_detail

class FieldWriter {
 public:
  explicit FieldWriter(SnapshotWriter& file, std::string path = {}) : file_(&file), path_(std::move(path)) {}

  // For the fields of what is called so.
  FieldWriter inside(std::string_view name) const { return FieldWriter(*file_, path_of(name)); }

  template <class T>
  void operator()(std::string_view name, const T& value) {
    if constexpr (SavesItself<T>) {
      FieldWriter inner = inside(name);
      value.save(inner);
    } else if constexpr (HasFields<T>) {
      T::visit_fields(value, inside(name));
    } else if constexpr (fields_detail::TextValue<T>) {
      file_->put_text(path_of(name), value);
    } else if constexpr (fields_detail::OptionalOf<T>::value) {
      put_scalars(name, std::span(value ? &*value : nullptr, value ? 1 : 0));
    } else if constexpr (fields_detail::Scalar<T>) {
      put_scalars(name, std::span(&value, 1));
    } else {
      put_all(path_of(name), std::span<const typename T::value_type>(value));
    }
  }

  // An array that comes in pieces: so many values in all, then the pieces.
  template <Element T>
  void begin(std::string_view name, uint64_t count) {
    file_->begin(path_of(name), element_type<T>(), count);
  }
  template <Element T>
  void add_piece(std::span<const T> values) {
    file_->add(as_raw(values));
  }

 private:
  std::string path_of(std::string_view name) const;

  template <class T>
  void put_scalars(std::string_view name, std::span<const T> values) {
    file_->begin(path_of(name), fields_detail::type_of<T>(), values.size());
    for (const T& value : values) {
      const auto stored = static_cast<fields_detail::Stored<T>>(value);
      file_->add(as_raw(std::span(&stored, 1)));
    }
  }

  template <class T>
  void put_all(const std::string& path, std::span<const T> values) {
    if constexpr (HasFields<T>)
      put_objects(path, values);
    else
      file_->put<T>(path, values);
  }

  // One array per field, through a small buffer.
  template <class T>
  void put_objects(const std::string& path, std::span<const T> values) {
    fields_detail::for_each_scalar<T>(
        path, [&]<class S>(const std::string& scalar_path, size_t offset, std::type_identity<S>) {
          using Stored = fields_detail::Stored<S>;
          file_->begin(scalar_path, fields_detail::type_of<S>(), values.size());
          std::array<Stored, fields_detail::kPiece> piece;
          for (size_t begin = 0; begin < values.size(); begin += piece.size()) {
            const size_t count = std::min(piece.size(), values.size() - begin);
            for (size_t i = 0; i < count; ++i)
              piece[i] = static_cast<Stored>(
                  *reinterpret_cast<const S*>(reinterpret_cast<const char*>(&values[begin + i]) + offset));
            file_->add(as_raw(std::span<const Stored>(piece).first(count)));
          }
        });
  }

  SnapshotWriter* file_;
  std::string path_;
};

class FieldReader {
 public:
  // Throws as SnapshotReader does. `remedies`: what helps against a file that cannot be read.
  explicit FieldReader(const std::string& path, std::vector<Remedy> remedies = {start_over()});

  FieldReader inside(std::string_view name) const { return FieldReader(open_, path_of(name)); }

  // Refuses, with the field's name, what is missing, of another type or size, or out of range.
  template <class T>
  void operator()(std::string_view name, T&& value) {
    using Value = std::remove_cvref_t<T>;
    if constexpr (SavesItself<Value>) {
      FieldReader inner = inside(name);
      value.restore(inner);
    } else if constexpr (HasFields<Value>) {
      Value::visit_fields(value, inside(name));
      if constexpr (requires { value.is_possible(); })
        if (!value.is_possible()) refuse_value(name);
    } else if constexpr (fields_detail::TextValue<Value>) {
      value = take_text(name);
    } else if constexpr (fields_detail::OptionalOf<Value>::value) {
      take_optional(name, value);
    } else if constexpr (fields_detail::Scalar<Value>) {
      take_scalars(name, std::span(&value, 1));
    } else {
      using Item = std::remove_cv_t<typename Value::value_type>;
      if constexpr (requires { value.resize(1); }) value.resize(count_of<Item>(path_of(name)));
      take_all(path_of(name), std::span<Item>(value));
    }
  }
  template <class T>
  T take(std::string_view name) {
    T value{};
    (*this)(name, value);
    return value;
  }

  bool has(std::string_view name) const { return open_->file.has(path_of(name)); }
  // Of an array that is read in parts, in any order: how many values it has.
  template <Element T>
  uint64_t count(std::string_view name) {
    return count_of<T>(path_of(name));
  }
  template <Element T>
  void take_part(std::string_view name, uint64_t first, std::span<T> values) const {
    open_->file.take_part(path_of(name), first, values);
  }

  // After the last field: refuses a file that has others.
  void finish() const;

  [[noreturn]] void refuse_value(std::string_view name) const;
  // What is wrong with the file as a whole: "contradicts itself".
  [[noreturn]] void refuse(std::string_view what) const { open_->file.refuse(what); }

 private:
  struct Open {
    SnapshotReader file;
    std::set<std::string> taken = {};
  };
  FieldReader(std::shared_ptr<Open> open, std::string path) : open_(std::move(open)), path_(std::move(path)) {}

  std::string path_of(std::string_view name) const;
  std::string take_text(std::string_view name);
  // Of an array, which then counts as taken.
  uint64_t count_at(const std::string& path, ElementType type);
  void expect(const std::string& path, ElementType type, uint64_t count);

  template <class T>
  uint64_t count_of(const std::string& path) {
    if constexpr (HasFields<T>) {
      std::optional<uint64_t> common_count;
      fields_detail::for_each_scalar<T>(path,
                                        [&]<class S>(const std::string& scalar_path, size_t, std::type_identity<S>) {
                                          if (!common_count)
                                            common_count = count_at(scalar_path, fields_detail::type_of<S>());
                                        });
      return common_count.value_or(0);
    } else {
      return count_at(path, element_type<T>());
    }
  }

  template <class T>
  void take_optional(std::string_view name, std::optional<T>& value) {
    const uint64_t count = count_at(path_of(name), fields_detail::type_of<T>());
    value.reset();
    if (count > 0) take_scalars(name, std::span(&value.emplace(), 1));
  }

  template <class T>
  void take_scalars(std::string_view name, std::span<T> values) {
    const std::string path = path_of(name);
    constexpr ElementType kType = fields_detail::type_of<T>();
    expect(path, kType, values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      fields_detail::Stored<T> stored{};
      open_->file.read(path, kType, i, as_writable_raw(std::span(&stored, 1)));
      if (!fields_detail::is_possible<T>(stored)) refuse_value(name);
      values[i] = static_cast<T>(stored);
    }
  }

  template <class T>
  void take_all(const std::string& path, std::span<T> values) {
    if constexpr (HasFields<T>) {
      take_objects(path, values);
    } else {
      expect(path, element_type<T>(), values.size());
      open_->file.take_part(path, 0, values);
    }
  }

  template <class T>
  void take_objects(const std::string& path, std::span<T> values) {
    fields_detail::for_each_scalar<T>(
        path, [&]<class S>(const std::string& scalar_path, size_t offset, std::type_identity<S>) {
          using Stored = fields_detail::Stored<S>;
          constexpr ElementType kType = fields_detail::type_of<S>();
          expect(scalar_path, kType, values.size());
          std::array<Stored, fields_detail::kPiece> piece;
          for (size_t begin = 0; begin < values.size(); begin += piece.size()) {
            const size_t count = std::min(piece.size(), values.size() - begin);
            open_->file.read(scalar_path, kType, begin, as_writable_raw(std::span(piece).first(count)));
            for (size_t i = 0; i < count; ++i) {
              if (!fields_detail::is_possible<S>(piece[i])) refuse_path(scalar_path);
              *reinterpret_cast<S*>(reinterpret_cast<char*>(&values[begin + i]) + offset) = static_cast<S>(piece[i]);
            }
          }
        });
  }

  [[noreturn]] void refuse_path(const std::string& path) const;

  std::shared_ptr<Open> open_;
  std::string path_;
};

}  // namespace linblock
