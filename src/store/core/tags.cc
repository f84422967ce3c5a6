#include "store/core/tags.h"

#include <algorithm>
#include <set>

#include "base/bytes.h"
#include "base/error.h"

namespace linblock {

namespace {

constexpr size_t kListed = 5;  // tags that a message lists

bool is_tag(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !text.empty() && text.size() <= format::kMostTagBytes && std::all_of(text.begin(), text.end(), allowed);
}

// The newest are the likeliest to be meant.
std::string some_tags(const StoreInfo& info) {
  if (info.tags.empty()) return "it has no tags";
  const size_t shown = std::min(kListed, info.tags.size());
  std::string text = shown < info.tags.size() ? fmt::format("its {} tags end with", info.tags.size()) : "it has";
  for (size_t i = info.tags.size() - shown; i < info.tags.size(); ++i)
    text += fmt::format("{} '{}'", i > info.tags.size() - shown ? "," : "", info.tags[i].tag);
  return text;
}

}  // namespace

std::optional<Tag> Tag::read(std::string_view text) {
  if (!is_tag(text)) return {};
  return Tag(std::string(text));
}

std::string Tag::what() {
  return fmt::format("a tag: write 1 to {} letters, digits, '.', '_' or '-', such as 2026-11-16",
                     format::kMostTagBytes);
}

const TaggedRows* find_tag(const StoreInfo& info, std::string_view tag) {
  const auto found =
      std::find_if(info.tags.begin(), info.tags.end(), [&](const TaggedRows& tagged) { return tagged.tag == tag; });
  return found == info.tags.end() ? nullptr : &*found;
}

void expect_new_tag(const StoreInfo& info, const std::string& store, const std::string& tag) {
  const TaggedRows* const there = find_tag(info, tag);
  if (there == nullptr) return;
  fail(ErrorKind::input,
       {say("leave it at that, if these are the same rows"),
        say("run 'linblock remove {} `tag` {}' first, to replace them", store, tag), say("choose another tag")},
       "'{}' already has {} rows with the tag '{}'; nothing was appended", store, grouped(there->rows), tag);
}

const TaggedRows& expect_tag(const StoreInfo& info, const std::string& store, const std::string& tag) {
  const TaggedRows* const there = find_tag(info, tag);
  if (there == nullptr)
    fail(ErrorKind::input, {say("choose one of those that 'linblock info {}' lists", store)},
         "'{}' has no rows with the tag '{}': {}; nothing was removed", store, tag, some_tags(info));
  return *there;
}

void TagCounts::add(uint64_t row_id) {
  const auto after = std::upper_bound(tags_->begin(), tags_->end(), row_id,
                                      [](uint64_t id, const TaggedRows& tagged) { return id < tagged.first_row; });
  if (after != tags_->begin() && row_id < (after - 1)->end()) ++rows_[static_cast<size_t>(after - tags_->begin()) - 1];
}

void TagCounts::add(const TagCounts& other) {
  for (size_t i = 0; i < rows_.size(); ++i) rows_[i] += other.rows_[i];
}

const char* wrong_tags(const StoreInfo& info) {
  if (info.tags.empty()) return nullptr;
  if (info.axis != Axis::rows) return "only a store of rows has tags";
  std::set<std::string_view> names;
  uint64_t next = 0;
  uint64_t rows = 0;
  for (const TaggedRows& tagged : info.tags) {
    if (!is_tag(tagged.tag)) return "a tag is not a word that a tag can be";
    if (!names.insert(tagged.tag).second) return "it lists a tag twice";
    if (tagged.first_row < next) return "its tags are out of order";
    if (tagged.rows == 0 || tagged.rows > tagged.ids) return "it lists a tag without rows, or with more than its ids";
    next = tagged.end();
    rows += tagged.rows;
  }
  if (next > info.next_row_id) return "it has a tag for row ids that it does not have";
  if (rows > info.rows) return "more rows have tags than there are rows";
  return nullptr;
}

}  // namespace linblock
