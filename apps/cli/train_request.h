// What the command line asks of train, and the checks that need nothing but the command line.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "learn/train.h"

namespace linblock::cli {

struct TrainRequest {
  TrainOptions options;
  std::string multiclass = "one-vs-rest";
  std::string solver = {};  // empty: chosen from the data
  Dual dual;
  Pegasos pegasos;
  Primal primal;
  Indexed indexed;
  std::optional<ColumnOrder> order;  // of features; none: as the solver has it
  std::string model;
  std::string trace;
  std::string checkpoint;  // a folder; empty: MODEL.checkpoint
  double checkpoint_seconds = 10;
  uint64_t memory_bytes = 0;
  size_t threads = 1;
  bool dry_run = false;
  bool keep_state = false;

  std::string checkpoint_folder() const { return checkpoint.empty() ? model + ".checkpoint" : checkpoint; }
  // Of a command without a model: beside the data.
  std::string checkpoint_folder(const std::string& purpose) const;
};

inline bool is_primal(const AnyMethod& method) { return abilities_of(method).primal; }
// Nothing where it is to be chosen from the data.
std::optional<AnyMethod> method_of(const TrainRequest& request);
inline bool all_classes_at_once(const TrainRequest& request) { return request.multiclass == "crammer-singer"; }

// Before hours of packing and training: fills in what the options imply, and throws for options that do not go together
// and for paths that cannot work.
void check_request(TrainRequest& request, const CLI::App& command);
// The part that has nothing to do with a model.
void check_learning(TrainRequest& request, const CLI::App& command);

}  // namespace linblock::cli
