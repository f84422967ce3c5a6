// What the command line asks of train, cv and tune, and the checks that need nothing but the command line.
#pragma once

#include <string>

#include "cli/parser.h"
#include "learn/request.h"
#include "learn/train.h"

namespace linblock::cli {

struct TrainRequest : LearnRequest {
  std::string model = {};
  std::string trace = {};
  bool dry_run = false;
  bool require_converged = false;

  std::string checkpoint_folder() const {
    return checkpoint.folder.empty() ? model + ".checkpoint" : checkpoint.folder;
  }
  // Of a command without a model: beside the data.
  std::string checkpoint_folder(const std::string& purpose) const;
};

// Before hours of packing and training: fills in what the options imply, and throws for options that do not go together
// and for paths that cannot work.
void check_request(TrainRequest& request);
// The part that has nothing to do with a model.
void check_learning(TrainRequest& request);

}  // namespace linblock::cli
