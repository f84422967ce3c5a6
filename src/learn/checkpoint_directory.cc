#include "learn/checkpoint_directory.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/snapshot.h"

namespace linblock {

namespace {

constexpr const char* kLockName = "LOCK";

// "duals-3" is "duals": numbers at the end are of a task, a group or a file. "v2" is nothing of ours.
std::string_view without_numbers(std::string_view word) {
  while (true) {
    const size_t dash = word.rfind('-');
    if (dash == std::string_view::npos || dash + 1 == word.size() ||
        word.find_first_not_of("0123456789", dash + 1) != std::string_view::npos)
      return word;
    word = word.substr(0, dash);
  }
}

// STATE, and words behind it that say of what: "STATE.final.stages", "STATE.kept.alpha-2".
std::optional<std::string_view> beginning_of(std::string_view name) {
  constexpr std::array<std::string_view, 6> kSnapshots = {"final", "convex", "stages", "column", "active", "best"};
  constexpr std::array<std::string_view, 7> kPlain = {"duals", "kept", "ids", "v", "alpha", "steps", "test"};
  const auto is_one_of = [](std::string_view word, const auto& words) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (name == kLockName) return kLockBeginning;
  if (!name.starts_with(kCheckpointName)) return {};
  name.remove_prefix(std::string_view(kCheckpointName).size());
  bool plain = false;
  while (!name.empty()) {
    if (name.front() != '.') return {};
    name.remove_prefix(1);
    const size_t end = std::min(name.find('.'), name.size());
    const std::string_view word = without_numbers(name.substr(0, end));
    const bool is_plain = is_one_of(word, kPlain);
    if (!is_plain && !is_one_of(word, kSnapshots)) return {};
    plain = plain || is_plain;
    name.remove_prefix(end);
  }
  return plain ? std::string_view() : kSnapshotFamily;
}

Remedy another_directory() { return say("name another directory with `checkpoint`"); }

}  // namespace

const OwnDirectory& checkpoint_directory() {
  static const OwnDirectory kind{.what = "checkpoint", .beginning_of = beginning_of};
  return kind;
}

CheckpointDirectory::CheckpointDirectory(const std::string& path, bool is_the_users) : path_(path) {
  switch (path_kind(path)) {
    case PathKind::absent: make_directory(path); break;
    case PathKind::directory: stays_ = is_the_users; break;
    default: fail(ErrorKind::usage, {another_directory()}, "'{}' exists and is no directory", path);
  }
  try {
    expect_own(path, checkpoint_directory(), {another_directory()});
    lock_.emplace(FileLock::acquire_temporary(fmt::format("{}/{}", path, kLockName), "training"));
  } catch (...) {
    if (!stays_) remove_empty_directory(path);
    throw;
  }
}

CheckpointDirectory::~CheckpointDirectory() {
  lock_.reset();
  if (!stays_) remove_empty_directory(path_);
}

void CheckpointDirectory::forget() {
  for (const char* name : {"STATE.stages", "STATE"}) {
    const std::string path = fmt::format("{}/{}", path_, name);
    if (file_begins_as(path, kSnapshotFamily)) remove_file(path);
  }
  remove_own_files(path_, checkpoint_directory(), kLockName);
}

}  // namespace linblock
