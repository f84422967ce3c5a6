// Work that is several solves, one after another: which are done, and what they left, so that a killed run goes on with
// the first that is not.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/fields.h"
#include "solve/solve.h"

namespace linblock {

class Stages {
 public:
  // Kept beside the solver's own checkpoint; nothing is kept where there is none. Refuses what another command has
  // left, with what differs, unless `fresh`. `identity`: the options, data and resources, one a line.
  Stages(const Checkpoint& checkpoint, std::string identity, bool fresh);

  size_t done() const { return done_; }
  bool resumed() const { return resumed_; }
  // What the stages before have left: `restore` reads all of it. False: there were none.
  bool restore(const std::function<void(FieldReader&)>& restore);
  // For the solver of the next stage.
  Checkpoint checkpoint() const;
  // The stage is done: what `save` writes is all that later ones will find.
  void finish(const std::function<void(FieldWriter&)>& save);

 private:
  Checkpoint checkpoint_;
  std::string path_;
  size_t done_ = 0;
  bool resumed_ = false;
  std::optional<FieldReader> left_;
};

// Of the run whose checkpoint is there, without the stage that it was in.
std::optional<std::string> saved_identity(const Checkpoint& checkpoint);

// Of two identities, the lines that differ, as "memory: 64M then, 128M now".
std::string differences(const std::string& then, const std::string& now);

// For a solve among several that share one limit of time: what is left of it.
SolveOptions with_time_left(const SolveOptions& options, const Stopwatch& since);

// What one solve adds to several.
void add_summary(const Summary& part, Summary& whole);

}  // namespace linblock
