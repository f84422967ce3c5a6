#include "store/chunk/row_encoder.h"

#include <algorithm>
#include <cstring>

#include "store/chunk/index_code.h"

namespace linblock {

namespace {

// Bit for bit: 0.0 and -0.0 are two values.
bool all_equal(std::span<const float> value) {
  return value.empty() || std::memcmp(value.data(), value.data() + 1, (value.size() - 1) * sizeof(float)) == 0;
}

// Never gives memory back, never copies more than it must.
template <typename T>
T* reserve(std::vector<T>& memory, size_t used, size_t more) {
  if (memory.size() < used + more) memory.resize(std::max(used + more, memory.size() * 3 / 2));
  return memory.data() + used;
}

}  // namespace

void EncodedRows::clear() {
  heads_.clear();
  indices_used_ = 0;
  values_used_ = 0;
}

EncodedRow EncodedRows::operator[](size_t row) const {
  const Head& head = heads_[row];
  const bool equal = (head.index_bytes_and_flags & 2) != 0;
  return {.label = head.label,
          .weight = head.weight,
          .count = head.count,
          .wide = (head.index_bytes_and_flags & 1) != 0,
          .equal = equal,
          .indices = {indices_.data() + head.index_begin, head.index_bytes_and_flags / 4},
          .values = {values_.data() + head.value_begin, equal ? std::min<size_t>(1, head.count) : head.count}};
}

size_t EncodedRows::memory_bytes() const {
  return heads_.capacity() * sizeof(Head) + indices_.capacity() + (values_.capacity() + numbers_.capacity()) * 4;
}

void RowEncoder::add(int32_t label, float weight, std::span<const uint32_t> index, std::span<const float> value,
                     EncodedRows& out) const {
  const bool equal = all_equal(value);
  const size_t value_count = equal ? std::min<size_t>(1, value.size()) : value.size();
  uint32_t* numbers = reserve(out.numbers_, 0, index.size());
  float* values = reserve(out.values_, out.values_used_, value_count);
  if (equal && !value.empty()) values[0] = value[0];
  features_.apply(index, equal ? std::span<const float>{} : value, numbers, values);
  unsigned char* code = reserve(out.indices_, out.indices_used_, index_code_limit(index.size()));
  size_t bytes = encode_indices({numbers, index.size()}, width_set_, code);
  const bool wide = bytes == 0 && !index.empty();
  if (wide) bytes = encode_indices({numbers, index.size()}, 0, code);
  out.heads_.push_back({.label = label,
                        .weight = weight,
                        .count = static_cast<uint32_t>(index.size()),
                        .index_bytes_and_flags = static_cast<uint32_t>(bytes * 4 + (equal ? 2 : 0) + (wide ? 1 : 0)),
                        .index_begin = static_cast<uint32_t>(out.indices_used_),
                        .value_begin = static_cast<uint32_t>(out.values_used_)});
  out.indices_used_ += bytes;
  out.values_used_ += value_count;
}

}  // namespace linblock
