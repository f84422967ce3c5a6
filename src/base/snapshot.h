// A checked file of named arrays, replaced atomically: what a run needs to be taken up again. Arrays go to the file and
// come from it directly, so that a checkpoint needs no memory of its own.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/checksum.h"
#include "base/file.h"

namespace linblock {

// How every such file begins.
inline constexpr std::string_view kSnapshotMagic = "LBSNAP01";

class SnapshotWriter {
 public:
  // Nothing is seen under `path` before commit(), and nothing is left where it is not reached.
  explicit SnapshotWriter(const std::string& path);
  ~SnapshotWriter();
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void put(std::string_view name, std::span<const T> values) {
    add(name, {reinterpret_cast<const unsigned char*>(values.data()), values.size_bytes()});
  }
  template <typename T>
  requires std::is_arithmetic_v<T>
  void put(std::string_view name, T value) { put(name, std::span<const T>(&value, 1)); }
  void put(std::string_view name, const std::string& text) { put(name, std::span<const char>(text)); }
  // An array that comes in pieces: so many values in all, then the pieces.
  template <typename T>
  void begin(std::string_view name, uint64_t count) {
    begin_bytes(name, count * sizeof(T));
  }
  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void add_piece(std::span<const T> values) {
    write({reinterpret_cast<const unsigned char*>(values.data()), values.size_bytes()});
  }
  // One array that lies in several places.
  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void put_parts(std::string_view name, std::span<const std::span<const T>> parts) {
    uint64_t bytes = 0;
    for (const std::span<const T>& part : parts) bytes += part.size_bytes();
    begin_bytes(name, bytes);
    for (const std::span<const T>& part : parts)
      write({reinterpret_cast<const unsigned char*>(part.data()), part.size_bytes()});
  }
  void commit();

 private:
  void begin_bytes(std::string_view name, uint64_t bytes);
  void add(std::string_view name, std::span<const unsigned char> bytes);
  void write(std::span<const unsigned char> bytes);

  std::string path_;
  File file_;
  Checksum checksum_;
  bool committed_ = false;
};

class SnapshotReader {
 public:
  // Checks the whole file; throws ErrorKind::damaged for anything that commit() did not write.
  // `remedy`: what to do then.
  explicit SnapshotReader(const std::string& path, std::string remedy = "--fresh begins anew");

  // Exactly as many values as the span has, or ErrorKind::damaged.
  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void take(const std::string& name, std::span<T> values) const {
    read(name, {reinterpret_cast<unsigned char*>(values.data()), values.size_bytes()});
  }
  template <typename T>
  requires std::is_arithmetic_v<T> T take(const std::string& name)
  const {
    T value{};
    take(name, std::span<T>(&value, 1));
    return value;
  }
  std::string take_text(const std::string& name) const;
  bool has(const std::string& name) const { return places_.contains(name); }
  template <typename T>
  size_t count(const std::string& name) const {
    return place_of(name).bytes / sizeof(T);
  }
  // As many values as the span has, from number `first` on.
  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void take_part(const std::string& name, uint64_t first, std::span<T> values) const {
    read_part(name, first * sizeof(T), {reinterpret_cast<unsigned char*>(values.data()), values.size_bytes()});
  }

 private:
  struct Place {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };
  const Place& place_of(const std::string& name) const;
  void read(const std::string& name, std::span<unsigned char> into) const;
  void read_part(const std::string& name, uint64_t offset, std::span<unsigned char> into) const;

  File file_;
  std::string remedy_;
  std::map<std::string, Place> places_;
};

}  // namespace linblock
