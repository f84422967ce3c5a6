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
  // Makes the directory if it is absent, and locks it.
  explicit CheckpointDirectory(const std::string& path);
  // What the next try needs stays; a directory with nothing in it goes.
  ~CheckpointDirectory();
  CheckpointDirectory(const CheckpointDirectory&) = delete;
  CheckpointDirectory& operator=(const CheckpointDirectory&) = delete;

  // After success. What says that there is something to resume goes first.
  void forget();

 private:
  std::string path_;
  std::optional<FileLock> lock_;
};

}  // namespace linblock
