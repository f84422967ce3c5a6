// Labels that are words. Rows, chunks and solvers know a label by its code, a number from 0 up by first appearance; the
// words are here. Without words, labels are the numbers that the text has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace linblock {

class Json;

// What is wrong with a word as a label, as the end of a sentence; empty: nothing. Commas, semicolons and double quotes
// are refused since they are signs of CSV and separate labels elsewhere.
std::string wrong_with_label(std::string_view word);

class LabelNames {
 public:
  bool empty() const { return table_ == nullptr; }
  size_t size() const;
  std::string_view operator[](size_t code) const;
  // Of all names.
  size_t bytes() const;
  // What they take while a store is made, its manifest too.
  size_t memory_bytes() const;

  std::optional<int32_t> find(std::string_view name) const;
  // The code that the name has, or the next one, which it gets.
  int32_t add(std::string_view name);
  void clear() { table_.reset(); }

  // A label as users write it: a name, or without names a whole number.
  std::optional<int32_t> read(std::string_view label) const;
  // And as they see it.
  std::string show(int32_t label) const;
  void append(int32_t label, std::string& to) const;
  // A text, or without names a number.
  Json json(int32_t label) const;
  Json json(const std::vector<int32_t>& labels) const;
  // Separated by `separator`.
  std::string list(const std::vector<int32_t>& labels, std::string_view separator) const;

  // All names by code, with blanks in between: no name has one.
  std::string text() const;
  // Throws ErrorKind::damaged for what text() does not write.
  static LabelNames from_text(std::string_view text);

 private:
  struct Table;
  static std::string_view name_in(const Table& table, size_t code);
  static size_t slot_of(const Table& table, std::string_view name);
  Table& own_table();

  std::shared_ptr<Table> table_;  // copies share it until one of them gets another name; null: empty
};

}  // namespace linblock
