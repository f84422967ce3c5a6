#include "base/own_files.h"

#include <algorithm>
#include <utility>

#include "base/file.h"

namespace linblock {

namespace {

constexpr std::string_view kTemporary = ".new";
constexpr size_t kLeastDigits = 6;
constexpr size_t kMostDigits = 7;
constexpr size_t kPage = 4096;

// The page that the header belongs in never reached the disk.
bool begins_with_a_page_of_zeros(const File& file) {
  std::vector<unsigned char> page(kPage);
  page.resize(file.read_at(page, 0));
  return std::all_of(page.begin(), page.end(), [](unsigned char byte) { return byte == 0; });
}

std::string in(const std::string& directory, std::string_view name) { return fmt::format("{}/{}", directory, name); }

bool is_subdirectory(const OwnDirectory& kind, std::string_view name) {
  return std::find(kind.subdirectories.begin(), kind.subdirectories.end(), name) != kind.subdirectories.end();
}

}  // namespace

bool is_temporary(std::string_view name) { return name.ends_with(kTemporary); }

bool is_own_file(const std::string& directory, const OwnDirectory& kind, std::string_view name) {
  std::optional<std::string_view> beginning = kind.beginning_of(name);
  if (!beginning && is_temporary(name)) beginning = kind.beginning_of(name.substr(0, name.size() - kTemporary.size()));
  return beginning && file_begins_as(in(directory, name), *beginning);
}

bool begins_as(std::string_view text, std::string_view beginning) {
  return beginning.starts_with(text.substr(0, beginning.size()));
}

bool file_begins_as(const std::string& path, std::string_view beginning) {
  if (is_link(path)) return false;
  const PathKind kind = path_kind(path);
  if (kind != PathKind::file) return kind == PathKind::absent;
  if (beginning.empty()) return true;
  const File file = File::open_read(path);
  std::string text(beginning.size(), '\0');
  text.resize(file.read_at({reinterpret_cast<unsigned char*>(text.data()), text.size()}, 0));
  return begins_as(text, beginning) || begins_with_a_page_of_zeros(file);
}

void refuse_foreign(const std::string& path) {
  fail(ErrorKind::usage,
       "'{}' exists, and linblock did not write it, so it is not overwritten: move it away, or choose another name",
       path);
}

std::optional<std::string> foreign_entry(const std::string& directory, const OwnDirectory& kind) {
  if (is_link(directory)) return directory;
  for (const std::string& name : list_directory(directory)) {
    const std::string path = in(directory, name);
    if (is_subdirectory(kind, name) && path_kind(path) == PathKind::directory) {
      if (auto foreign = foreign_entry(path, kind)) return foreign;
    } else if (!is_own_file(directory, kind, name)) {
      return path;
    }
  }
  return {};
}

void expect_own(const std::string& directory, const OwnDirectory& kind, std::vector<Remedy> remedies) {
  if (const auto foreign = foreign_entry(directory, kind))
    fail(ErrorKind::usage, std::move(remedies),
         "'{}' cannot be used as a {}: linblock did not write '{}' and will not delete it", directory, kind.what,
         *foreign);
}

void remove_own_files(const std::string& directory, const OwnDirectory& kind, std::string_view kept) {
  for (const std::string& name : list_directory(directory)) {
    if (name == kept) continue;
    const std::string path = in(directory, name);
    if (is_subdirectory(kind, name) && path_kind(path) == PathKind::directory && !is_link(path)) {
      remove_own_files(path, kind);
      remove_empty_directory(path);
    } else {
      remove_own_file(directory, kind, name);
    }
  }
}

void remove_own_file(const std::string& directory, const OwnDirectory& kind, std::string_view name) {
  if (is_own_file(directory, kind, name)) remove_file(in(directory, name));
}

void remove_own_directory(const std::string& directory, const OwnDirectory& kind, std::string_view first) {
  expect_own(directory, kind, {say("move it away")});
  if (!first.empty()) remove_file(in(directory, first));
  remove_own_files(directory, kind);
  remove_empty_directory(directory);
}

bool is_numbered(std::string_view name, std::string_view prefix, std::string_view suffix) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix) ||
      name.size() < prefix.size() + kLeastDigits + suffix.size() ||
      name.size() > prefix.size() + kMostDigits + suffix.size())
    return false;
  name.remove_prefix(prefix.size());
  name.remove_suffix(suffix.size());
  return name.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace linblock
