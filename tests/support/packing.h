// Text in, a packed store out, and what a test wants to know of both.
#pragma once

#include <gtest/gtest.h>

#include <charconv>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "store/core/pack.h"
#include "support/errors.h"
#include "support/folder.h"
#include "support/rows.h"

namespace linblock::test {

inline void append_number(auto number, std::string& to) {
  char digits[64];
  to.append(digits, std::to_chars(digits, digits + sizeof(digits), number).ptr);
}

// What a row looks like in svmlight, written apart from unpack().
inline std::string line_of(const OwnedRow& row) {
  std::string line;
  append_number(row.label, line);
  for (size_t i = 0; i < row.index.size(); ++i) {
    line += ' ';
    append_number(row.index[i], line);
    line += ':';
    append_number(row.value[i], line);
  }
  return line + '\n';
}

inline std::string text_of(const std::vector<OwnedRow>& rows) {
  std::string text;
  for (const OwnedRow& row : rows) text += line_of(row);
  return text;
}

inline double squares_of(const std::vector<OwnedRow>& rows) {
  double squares = 0;
  for (const OwnedRow& row : rows)
    for (const float value : row.value) squares += double{value} * double{value};
  return squares;
}

inline std::string weights_of(const std::vector<OwnedRow>& rows) {
  std::string text;
  for (const OwnedRow& row : rows) {
    append_number(row.weight, text);
    text += '\n';
  }
  return text;
}

// Rows of several kinds, ids from `first_id` on, equal for an equal seed: some all ones, some of one value, some of
// few values, some of many, some empty. Enough of the features are frequent to have a feature map.
inline std::vector<OwnedRow> sample_rows(size_t count, uint64_t seed = 1, uint64_t first_id = 0,
                                         uint32_t features = 400, bool weighted = false) {
  Random random(seed);
  std::vector<OwnedRow> rows(count);
  for (size_t i = 0; i < count; ++i) {
    OwnedRow& row = rows[i];
    row.id = first_id + i;
    row.label = random.below(3) == 0 ? 1 : -1;
    if (weighted) row.weight = static_cast<float>(random.below(8)) / 2;
    const uint64_t kind = random.below(5);
    const uint64_t wanted = kind == 4 && i % 7 == 0 ? 0 : 1 + random.below(24);
    uint64_t index = 0;
    for (uint64_t k = 0; k < wanted; ++k) {
      index += 1 + random.below(features / 16);
      if (index > features) break;
      row.index.push_back(static_cast<uint32_t>(index));
      float value = 1;
      if (kind == 1) value = static_cast<float>(i % 5 + 2) / 4;
      if (kind == 2) value = static_cast<float>(random.below(4));
      if (kind >= 3) value = static_cast<float>(random.unit() - 0.5);
      row.value.push_back(value);
    }
  }
  return rows;
}

inline PackOptions small_options(const std::string& codec = "none", size_t threads = 1) {
  PackOptions options;
  options.memory_bytes = kLeastPackMemory;
  options.team = threads;
  options.chunk_bytes = 4096;
  options.codec = codec;
  return options;
}

// Packs rows from a text file beside the store.
inline PackReport pack_rows(const std::vector<OwnedRow>& rows, const std::string& store, PackOptions options) {
  write_file(store + ".svm", text_of(rows));
  for (const OwnedRow& row : rows)
    if (row.weight != 1) options.weights = store + ".weights";
  if (!options.weights.empty()) write_file(options.weights, weights_of(rows));
  return pack({store + ".svm"}, store, options);
}

inline PackReport append_rows(const std::vector<OwnedRow>& rows, const std::string& store, PackOptions options) {
  write_file(store + ".more.svm", text_of(rows));
  for (const OwnedRow& row : rows)
    if (row.weight != 1) options.weights = store + ".more.weights";
  if (!options.weights.empty()) write_file(options.weights, weights_of(rows));
  return append({store + ".more.svm"}, store, options);
}

inline std::vector<OwnedRow> joined(std::vector<OwnedRow> first, const std::vector<OwnedRow>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Every row, chunk by chunk as they lie, in the order of the ids.
inline std::vector<OwnedRow> rows_by_chunk(const Store& store, bool decode = false) {
  std::vector<OwnedRow> rows;
  Chunk chunk;
  RowBuffer buffer;
  for (size_t number = 0; number < store.chunks().size(); ++number) {
    store.read(number, chunk);
    if (decode) chunk.decode();
    for (size_t row = 0; row < chunk.rows(); ++row) rows.push_back(original(chunk.row(row, buffer), store.features()));
  }
  std::sort(rows.begin(), rows.end(), [](const OwnedRow& a, const OwnedRow& b) { return a.id < b.id; });
  return rows;
}

// What open, verify and reading find at a path.
inline std::vector<OwnedRow> verified_rows(const std::string& path) {
  const Store store = Store::open(path);
  verify(store, 1);
  return rows_in_order(store);
}

inline std::string unpacked(const Store& store) {
  std::string text;
  unpack(store, [&](std::string_view piece) { text += piece; });
  return text;
}

// Names and contents; LOCK is no part of a store.
inline std::map<std::string, std::string> files_of(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename() != "LOCK") files[entry.path().filename()] = read_file(entry.path());
  return files;
}

inline std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

inline void copy_store(const std::string& from, const std::string& to) {
  std::filesystem::remove_all(to);
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
}

}  // namespace linblock::test
