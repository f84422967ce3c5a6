// A checked file of named arrays with their element types, replaced atomically: what a run needs to resume. Arrays go
// to the file and come from it directly, so that a checkpoint needs no memory of its own. The layout is in
// docs/format.md; base/fields writes and reads objects by it.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"

namespace linblock {

// How every such file begins, of any version; and of this one.
inline constexpr std::string_view kSnapshotFamily = "LBSNAP";
inline constexpr std::string_view kSnapshotMagic = "LBSNAP02";

enum class ElementType { f64, f32, u64, u32, u16, u8, i64, i32, boolean, text };
// As the file spells it: "f64".
std::string_view name_of(ElementType type);
uint64_t bytes_of(ElementType type);

template <typename T>
concept Element = std::same_as<T, double> || std::same_as<T, float> ||
    (std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> && (sizeof(T) >= 4 || std::is_unsigned_v<T>));

template <Element T>
constexpr ElementType element_type() {
  if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 8 ? ElementType::f64 : ElementType::f32;
  if constexpr (std::is_signed_v<T>) return sizeof(T) == 8 ? ElementType::i64 : ElementType::i32;
  constexpr ElementType kUnsigned[] = {ElementType::u8, ElementType::u16, ElementType::u32, ElementType::u64};
  return kUnsigned[sizeof(T) == 8 ? 3 : sizeof(T) / 2];
}

template <typename T>
std::span<const unsigned char> as_raw(std::span<const T> values) {
  return {reinterpret_cast<const unsigned char*>(values.data()), values.size_bytes()};
}
template <typename T>
std::span<unsigned char> as_writable_raw(std::span<T> values) {
  return {reinterpret_cast<unsigned char*>(values.data()), values.size_bytes()};
}

class SnapshotWriter {
 public:
  // Nothing is seen under `path` before commit(), and nothing is left where it is not reached.
  explicit SnapshotWriter(const std::string& path);
  ~SnapshotWriter();
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  // An array that comes in pieces: so many elements in all, then their bytes.
  void begin(std::string_view name, ElementType type, uint64_t count);
  void add(std::span<const unsigned char> bytes);

  template <Element T>
  void put(std::string_view name, std::span<const T> values) {
    begin(name, element_type<T>(), values.size());
    add(as_raw(values));
  }
  void put_text(std::string_view name, std::string_view text);
  void commit();

 private:
  void write(std::span<const unsigned char> bytes);

  std::string path_;
  File file_;
  Checksum checksum_;
  uint64_t due_ = 0;  // bytes of the array that was begun
  bool committed_ = false;
};

class SnapshotReader {
 public:
  // Checks the whole file; throws ErrorKind::damaged for anything that commit() did not write.
  // `remedies`: what to do then; a checkpoint that cannot be read is started over.
  explicit SnapshotReader(const std::string& path, std::vector<Remedy> remedies = {start_over()});

  bool has(const std::string& name) const { return places_.contains(name); }
  std::vector<std::string> names() const;

  // Each refuses an array that is missing or of another type.
  uint64_t count(const std::string& name, ElementType type) const;
  template <Element T>
  uint64_t count(const std::string& name) const {
    return count(name, element_type<T>());
  }
  // As many whole elements as `into` has room for, from number `first` on.
  void read(const std::string& name, ElementType type, uint64_t first, std::span<unsigned char> into) const;
  template <Element T>
  void take_part(const std::string& name, uint64_t first, std::span<T> values) const {
    read(name, element_type<T>(), first, as_writable_raw(values));
  }
  // Refuses an array of another size.
  void expect(const std::string& name, ElementType type, uint64_t count) const;
  std::string take_text(const std::string& name) const;
  // The elements as the file has them.
  std::vector<unsigned char> bytes(const std::string& name) const;

  // Throws ErrorKind::damaged: the file, what is wrong with it, the remedies.
  [[noreturn]] void refuse(std::string_view what) const;

 private:
  struct FieldPlace {
    ElementType type = ElementType::u8;
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };
  void check_sum(uint64_t end) const;
  void read_places(uint64_t end);
  const FieldPlace& place_of(const std::string& name, ElementType type) const;

  File file_;
  std::vector<Remedy> remedies_;
  std::map<std::string, FieldPlace> places_;
};

}  // namespace linblock
