#include "store/core/new_store.h"

#include <optional>

#include "base/error.h"
#include "store/core/manifest.h"

namespace linblock {

namespace {

bool holds_manifest(const std::string& path) { return path_kind(manifest_path(path)) == PathKind::file; }

}  // namespace

std::string new_store_path(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  switch (path_kind(path)) {
    case PathKind::absent: break;
    case PathKind::directory:
      if (holds_manifest(path))
        fail(ErrorKind::usage, {say("remove it"), say("choose another name"), say("add rows with 'linblock append'")},
             "'{}' exists already", path);
      fail(ErrorKind::usage, "'{}' is a directory and not a store: choose another name for the store", path);
    default: fail(ErrorKind::usage, "'{}' exists and is not a directory: choose another name for the store", path);
  }
  if (is_link(path))
    fail(ErrorKind::usage, "'{}' is a symbolic link that leads nowhere: choose another name for the store", path);
  if (path.ends_with(partial_path("")))
    fail(ErrorKind::usage, "'{}' is how linblock names an unfinished store: choose another name", path);
  if (holds_manifest(parent_directory(path)))
    fail(ErrorKind::usage, "'{}' is in a store, where only linblock's own files belong: choose another place", path);
  return path;
}

FileLock lock_partial(const std::string& path, std::string_view purpose) {
  const std::string folder = partial_path(path);
  const bool created = path_kind(folder) == PathKind::absent;
  if (created) make_directory(folder);
  std::optional<FileLock> lock;
  try {
    expect_own(folder, store_directory(), {say("move it away"), say("choose another name for the store")});
    lock.emplace(FileLock::acquire(folder + "/" + format::kLockName, purpose, path));
    remove_own_files(folder, store_directory(), format::kLockName);
    return std::move(*lock);
  } catch (...) {
    // Without the lock, another writer may have come first: what it has there is not ours to remove.
    if (lock)
      discard_partial(path);
    else if (created)
      remove_empty_directory(folder);
    throw;
  }
}

void discard_partial(const std::string& path) noexcept {
  try {
    const std::string folder = partial_path(path);
    if (path_kind(folder) != PathKind::directory) return;
    remove_own_files(folder, store_directory());
    remove_empty_directory(folder);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
}

void write_new(const std::string& path, std::span<const unsigned char> bytes, std::string_view beginning) {
  File file = File::create(path, beginning);
  file.write_at(bytes, 0);
  file.sync();
  file.close();
}

}  // namespace linblock
