#include "base/bytes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <new>

namespace linblock {

namespace {
constexpr size_t kPage = 4096;
}

uint64_t checked_size(uint64_t claimed, uint64_t limit, std::string_view what) {
  if (claimed > limit) fail(ErrorKind::damaged, "{} claims {}, more than the {} possible here", what, claimed, limit);
  return claimed;
}

std::optional<uint64_t> read_size(std::string_view text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  std::string_view unit(rest, static_cast<size_t>(end - rest));
  if (unit.size() == 2 && unit.front() != 'B' && (unit.back() == 'B' || unit.back() == 'b')) unit.remove_suffix(1);
  int shift = -1;
  if (unit.empty() || unit == "B") shift = 0;
  if (unit == "K" || unit == "k") shift = 10;
  if (unit == "M" || unit == "m") shift = 20;
  if (unit == "G" || unit == "g") shift = 30;
  if (unit == "T" || unit == "t") shift = 40;
  if (error != std::errc() || shift < 0 || number > (UINT64_MAX >> shift >> 1)) return {};
  return number << shift;
}

std::string human_bytes(uint64_t bytes) {
  constexpr std::array<const char*, 5> units = {"bytes", "KB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} bytes", bytes);
  return fmt::format("{:.{}f} {}", value, value < 10 ? 1 : 0, units[unit]);
}

std::string size_of_at_least(uint64_t bytes) {
  constexpr uint64_t kMega = uint64_t{1} << 20;
  return fmt::format("{}M", round_up(std::max<uint64_t>(1, bytes), kMega) / kMega);
}

std::string grouped(uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

void Buffer::resize(size_t bytes) {
  if (bytes + kSlack > capacity_) {
    const size_t wanted = round_up(bytes + kSlack, kPage);
    memory_.reset();
    capacity_ = 0;
    memory_.reset(static_cast<unsigned char*>(std::aligned_alloc(kPage, wanted)));
    if (!memory_) throw std::bad_alloc();
    capacity_ = wanted;
  }
  size_ = bytes;
  std::memset(memory_.get() + size_, 0, kSlack);
}

void Buffer::grow(size_t bytes) {
  if (bytes + kSlack > capacity_) {
    Buffer larger(std::max(bytes, capacity_ * 2));
    if (size_ > 0) std::memcpy(larger.data(), data(), std::min(size_, bytes));
    std::swap(*this, larger);
  }
  size_ = bytes;
  std::memset(memory_.get() + size_, 0, kSlack);
}

void Buffer::release() { *this = Buffer(); }

}  // namespace linblock
