// Which files linblock may delete or write over: those that it wrote. They are known by their name and by how they
// begin; everything else belongs to somebody else, and is left alone. Every deletion in linblock goes by this rule.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace linblock {

// True of a header that was cut short, too.
bool begins_as(std::string_view text, std::string_view beginning);
// An absent file begins as anything, and so does one that was never written: an empty one, or one whose first page is
// zeros, which a power cut may leave. A link, a pipe or a directory begins as nothing.
bool file_begins_as(const std::string& path, std::string_view beginning);

// Throws ErrorKind::usage: this file is not overwritten.
[[noreturn]] void refuse_foreign(const std::string& path);

// A kind of directory that linblock makes. `beginning_of` knows its files: of a name that linblock gives there, how
// such a file begins (empty: it has no header); of any other name, nothing. A temporary NAME.new begins as NAME.
struct OwnDirectory {
  std::string_view what;  // "checkpoint": for messages
  std::optional<std::string_view> (*beginning_of)(std::string_view name);
  std::vector<std::string_view> subdirectories = {};  // of the same kind
};

// NAME.new: what a file is called until it is complete.
bool is_temporary(std::string_view name);
// A file in such a directory that linblock wrote.
bool is_own_file(const std::string& directory, const OwnDirectory& kind, std::string_view name);
// The first entry that linblock did not write, or nothing.
std::optional<std::string> foreign_entry(const std::string& directory, const OwnDirectory& kind);
// Throws ErrorKind::usage that names such an entry.
void expect_own(const std::string& directory, const OwnDirectory& kind, std::vector<Remedy> remedies);
// Deletes a directory of this kind; with anything foreign in it, nothing is deleted and expect_own's error is thrown.
// `first` goes first: without it, what a kill leaves is known to be worthless.
void remove_own_directory(const std::string& directory, const OwnDirectory& kind, std::string_view first = {});
// The files in it alone, but for `kept`.
void remove_own_files(const std::string& directory, const OwnDirectory& kind, std::string_view kept = {});

// Deletes a file in such a directory, if linblock wrote it.
void remove_own_file(const std::string& directory, const OwnDirectory& kind, std::string_view name);

// PREFIX, six or seven digits, SUFFIX. (A date has eight.)
bool is_numbered(std::string_view name, std::string_view prefix, std::string_view suffix = {});

}  // namespace linblock
