// The directory that keeps what a killed run needs, for as long as the run lasts. Only linblock's own files may be in
// it: with anything else there it is refused before work begins, since at the end all of it is deleted.
#pragma once

#include <optional>
#include <string>

#include "base/file.h"
#include "base/own_files.h"

namespace linblock {

// The solver's checkpoint; what else is kept has names that begin so.
inline constexpr const char* kCheckpointName = "STATE";

const OwnDirectory& checkpoint_directory();

class CheckpointDirectory {
 public:
  // Makes the directory if it is absent, and locks it. `is_the_users`: one that was there before stays at the end.
  explicit CheckpointDirectory(const std::string& path, bool is_the_users = false);
  // What the next try needs stays; a directory with nothing in it goes.
  ~CheckpointDirectory();
  CheckpointDirectory(const CheckpointDirectory&) = delete;
  CheckpointDirectory& operator=(const CheckpointDirectory&) = delete;

  // After success. What says that there is something to resume goes first.
  void forget();

 private:
  std::string path_;
  bool stays_ = false;
  std::optional<FileLock> lock_;
};

}  // namespace linblock
