// The folder beside a store's path in which the store is made, until a rename makes it visible.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/file.h"

namespace linblock {

// Where a new store is written.
inline std::string partial_path(const std::string& store) { return store + ".partial"; }
// `path` without slashes at its end; throws ErrorKind::usage where no store can be made.
std::string new_store_path(std::string path);
// Makes that folder for a path from new_store_path, and locks it against other writers; what a killed writer left there
// is removed.
FileLock lock_partial(const std::string& path, std::string_view purpose);
// For whoever holds that lock, and gives up. Best effort: the next writer removes what is left.
void discard_partial(const std::string& path) noexcept;
// A file in that folder, on the disk.
void write_new(const std::string& path, std::span<const unsigned char> bytes, std::string_view beginning);

}  // namespace linblock
