#include "cli/train_request.h"

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "cli/show/outputs.h"
#include "learn/examples.h"
#include "learn/model.h"
#include "learn/start_weights.h"
#include "learn/state.h"
#include "store/core/store_writer.h"

namespace linblock::cli {

std::string TrainRequest::checkpoint_folder(const std::string& purpose) const {
  if (!checkpoint.folder.empty()) return checkpoint.folder;
  std::string data = options.store.empty() ? options.inputs.front() : options.store;
  while (data.size() > 1 && data.back() == '/') data.pop_back();
  // Beside the directory, not in it.
  const std::string name = data.substr(data.find_last_of('/') + 1);
  if (name == "." || name == "..") data = std::filesystem::weakly_canonical(data).string();
  if (data == "-") fail(ErrorKind::usage, "standard input is packed before training: say where with --store DIR");
  return data + "." + purpose + ".checkpoint";
}

namespace {

// What --warm starts from. A run that was interrupted may have it in its checkpoint already.
void check_warm(const TrainRequest& request) {
  if (request.options.warm.empty() || path_kind(request.checkpoint_folder()) == PathKind::directory) return;
  if (abilities_of(request.options.solve.method).start == Start::weights)
    ModelRows(request.options.warm);
  else
    check_state(state_path(request.options.warm));
}

void check_outputs(const TrainRequest& request) {
  std::vector<std::string> read = request.options.inputs;
  read.insert(read.end(), request.options.test.begin(), request.options.test.end());
  read.push_back(request.options.pack.weights);
  read.push_back(request.options.pack.names);
  // A model may be the start of its own successor.
  if (request.model.empty() || !same_file(request.options.warm, request.model)) read.push_back(request.options.warm);
  Outputs outputs(read);
  if (!request.model.empty()) outputs.add_model(request.model, request.state.keep_state);
  if (!request.trace.empty()) outputs.add_trace(request.trace);
  if (!request.options.pack.rejects.empty()) outputs.add_text(request.options.pack.rejects, "--rejects");
  if (!request.checkpoint.folder.empty()) outputs.add_directory(request.checkpoint.folder, "--checkpoint");
  const std::string& input = request.options.inputs.front();
  if (!request.options.store.empty() || !is_store(input)) {
    const std::string store = request.options.store.empty() ? input + ".linblock" : request.options.store;
    const char* option = request.options.store.empty() ? "INPUT.linblock" : "--store";
    outputs.add_directory(store, option);
    outputs.add_directory(partial_path(store), option);
  }
}

}  // namespace

void check_learning(TrainRequest& request) {
  resolve(request);
  check_outputs(request);
}

void check_request(TrainRequest& request) {
  if (request.model.empty()) fail(ErrorKind::usage, "--output is empty: name the model's file");
  resolve(request);
  check_outputs(request);
  check_test_inputs(request.options.test);
  check_warm(request);
}

}  // namespace linblock::cli
