// Little-endian bytes in and out, aligned buffers, and the one check for sizes read from disk.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace linblock {

static_assert(std::endian::native == std::endian::little, "the store format is little-endian and is read in place");

template <typename T>
requires std::is_trivially_copyable_v<T> T load_le(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename T>
requires std::is_trivially_copyable_v<T>
void store_le(void* to, T value) { std::memcpy(to, &value, sizeof(T)); }

// Every size that comes from a file passes through here before it is used to allocate or to index.
uint64_t checked_size(uint64_t claimed, uint64_t limit, std::string_view what);

template <std::integral T>
constexpr T round_up(T value, T multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// "64M", "1G", "4096": powers of 1024.
std::optional<uint64_t> read_size(std::string_view text);

// "41.2 MB", "3.1 GB": for people.
std::string human_bytes(uint64_t bytes);
// "10M": the least size that read_size takes and that is not below this one, in whole megabytes.
std::string size_of_at_least(uint64_t bytes);
// "1,234,567": for people.
std::string grouped(uint64_t number);

// Page-aligned memory that keeps its capacity, so that it can be recycled without touching new pages.
// `kSlack` readable bytes follow the size asked for: vector code may read past the end.
class Buffer {
 public:
  static constexpr size_t kSlack = 64;

  Buffer() = default;
  explicit Buffer(size_t bytes) { resize(bytes); }
  Buffer(Buffer&& other) noexcept
      : memory_(std::move(other.memory_)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    memory_ = std::move(other.memory_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }

  // Grows without keeping the contents.
  void resize(size_t bytes);
  // Grows and keeps the first `size()` bytes.
  void grow(size_t bytes);
  void release();

  unsigned char* data() { return memory_.get(); }
  const unsigned char* data() const { return memory_.get(); }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  std::span<unsigned char> span() { return {data(), size_}; }
  std::span<const unsigned char> span() const { return {data(), size_}; }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<unsigned char, Free> memory_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace linblock
