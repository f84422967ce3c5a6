#include "cli/train_request.h"

#include "base/error.h"
#include "base/file.h"
#include "learn/examples.h"
#include "learn/state.h"

namespace linblock::cli {

namespace {

// An option that would be ignored is refused: whoever gave it expects something of it.
void check_options(const TrainRequest& request, const CLI::App& command) {
  if (all_classes_at_once(request)) {
    if (command.count("--loss") > 0 && !std::holds_alternative<Hinge>(request.options.loss))
      fail(ErrorKind::usage, "--multiclass crammer-singer has a hinge loss of its own: leave out --loss {}",
           name_of(request.options.loss));
    if (request.options.positive)
      fail(ErrorKind::usage, "--multiclass crammer-singer tells all labels apart: leave out --positive {}",
           *request.options.positive);
    for (const char* option : {"--solver", "--schedule", "--blocks", "--block-order", "--inner", "--cache-fraction"})
      if (command.count(option) > 0 && (option != std::string("--solver") || request.solver != "dual"))
        fail(ErrorKind::usage, "--multiclass crammer-singer is a solver of its own: leave out {}", option);
  }
  for (const char* option : {"--schedule", "--blocks", "--block-order", "--inner", "--cache-fraction"})
    if (request.solver != "dual" && command.count(option) > 0)
      fail(ErrorKind::usage, "{} is for --solver dual, and {} has no such choice: leave it out", option,
           request.solver);
  if (request.solver != "pegasos" && command.count("--step") > 0)
    fail(ErrorKind::usage, "--step is for --solver pegasos, and {} has no such choice: leave it out", request.solver);
  for (const char* option : {"--blocks", "--block-order"})
    if (request.dual.schedule != Schedule::fixed && command.count(option) > 0)
      fail(ErrorKind::usage, "{} needs --schedule fixed: other blocks are drawn anew for each pass", option);
  const bool has_state = (request.solver == "dual" || request.solver == "pegasos") && !all_classes_at_once(request);
  if (!has_state && (request.keep_state || !request.options.warm.empty()))
    fail(ErrorKind::usage, "{} has nothing to go on from: --keep-state and --warm are for --solver dual and pegasos",
         all_classes_at_once(request) ? request.multiclass : request.solver);
  if (request.options.calibrate > 0 && std::holds_alternative<Logistic>(request.options.loss))
    fail(ErrorKind::usage, "--calibrate is for hinge losses: a logistic model has probabilities of its own");
  if (request.solver == "pegasos" && std::holds_alternative<Logistic>(request.options.loss))
    fail(ErrorKind::usage, "pegasos is for hinge and squared-hinge: use --solver dual with --loss logistic");
}

void check_output(const std::string& path, const char* option) {
  if (path_kind(path) == PathKind::directory) fail(ErrorKind::usage, "{}: '{}' is a folder: name a file", option, path);
  if (path_kind(parent_directory(path)) != PathKind::directory)
    fail(ErrorKind::io, "{}: cannot create '{}': the folder '{}' does not exist", option, path, parent_directory(path));
}

// What --warm goes on from. A run that was interrupted may have it in its checkpoint already.
void check_warm(const TrainRequest& request) {
  if (request.options.warm.empty() || path_kind(request.checkpoint_folder()) == PathKind::directory) return;
  check_state(state_path(request.options.warm));
}

}  // namespace

Method method_of(const TrainRequest& request) {
  if (request.multiclass != "one-vs-rest" && !all_classes_at_once(request))
    fail(ErrorKind::usage, "--multiclass '{}' is not one-vs-rest or crammer-singer", request.multiclass);
  if (all_classes_at_once(request)) return CrammerSinger{};
  if (request.solver == "dual") return request.dual;
  if (request.solver == "pegasos") return request.pegasos;
  if (request.solver == "average") return Average{};
  if (request.solver == "subsample") return Subsample{};
  if (request.solver == "newton") return Newton{};
  fail(ErrorKind::usage, "--solver '{}' is not dual, newton, pegasos, average or subsample", request.solver);
}

std::string TrainRequest::checkpoint_folder(const std::string& purpose) const {
  if (!checkpoint.empty()) return checkpoint;
  std::string data = options.store.empty() ? options.inputs.front() : options.store;
  while (data.size() > 1 && data.back() == '/') data.pop_back();
  if (data == "-") fail(ErrorKind::usage, "standard input is packed before training: say where with --store DIR");
  return data + "." + purpose + ".checkpoint";
}

void check_learning(const TrainRequest& request, const CLI::App& command) {
  method_of(request);
  check_options(request, command);
}

void check_request(const TrainRequest& request, const CLI::App& command) {
  check_learning(request, command);
  check_output(request.model, "--output");
  if (!request.trace.empty()) check_output(request.trace, "--trace");
  check_inputs(request.options.test, "--test");
  check_warm(request);
}

}  // namespace linblock::cli
