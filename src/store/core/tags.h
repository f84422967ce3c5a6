// Tags: a word for the rows of one pack or append, such as its date. The manifest keeps which row ids have which tag.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/core/manifest.h"

namespace linblock {

// Letters, digits, '.', '_' and '-'; empty: no tag.
struct Tag {
  std::string name;

  explicit Tag(std::string text) : name(std::move(text)) {}
  static std::optional<Tag> read(std::string_view text);
  std::string show() const { return name; }
  static std::string what();
  explicit operator std::string() const { return name; }
};

// The rows with this tag, or null.
const TaggedRows* find_tag(const StoreInfo& info, std::string_view tag);
// Throws ErrorKind::input if the store has the tag already; `store` is its path.
void expect_new_tag(const StoreInfo& info, const std::string& store, const std::string& tag);
// Throws ErrorKind::input, with some of the tags that there are, if the store does not have it.
const TaggedRows& expect_tag(const StoreInfo& info, const std::string& store, const std::string& tag);

// How many rows have each of the tags, in their order: rows are counted one by one.
class TagCounts {
 public:
  explicit TagCounts(const std::vector<TaggedRows>& tags) : tags_(&tags), rows_(tags.size(), 0) {}

  void add(uint64_t row_id);
  void add(const TagCounts& other);
  const std::vector<uint64_t>& rows() const { return rows_; }

 private:
  const std::vector<TaggedRows>* tags_;
  std::vector<uint64_t> rows_;
};

// What is wrong with the tags that a manifest lists; null: nothing.
const char* wrong_tags(const StoreInfo& info);

}  // namespace linblock
