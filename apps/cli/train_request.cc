#include "cli/train_request.h"

#include <array>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "cli/show/outputs.h"
#include "learn/examples.h"
#include "learn/model.h"
#include "learn/state.h"
#include "learn/train.h"
#include "store/core/store_writer.h"

namespace linblock::cli {

namespace {

// Options that are for some solvers alone; who gives one has chosen the first of them, except for pegasos: what
// certifies nothing must be asked for by its name.
struct OwnOption {
  const char* name;
  std::array<std::string_view, 2> solvers;

  bool is_for(std::string_view solver) const {
    return !solver.empty() && (solver == solvers[0] || solver == solvers[1]);
  }
};
constexpr double kIndexedTruncation = 1;
constexpr std::array<OwnOption, 10> kOwnOptions = {{{"--schedule", {"dual"}},
                                                    {"--blocks", {"dual"}},
                                                    {"--block-order", {"dual"}},
                                                    {"--inner", {"dual"}},
                                                    {"--cache-fraction", {"dual"}},
                                                    {"--step", {"pegasos"}},
                                                    {"--order", {"primal", "cmls"}},
                                                    {"--exponential", {"primal"}},
                                                    {"--query", {"indexed"}},
                                                    {"--block-solver", {"indexed"}}}};

void check_state_options(const TrainRequest& request) {
  const std::optional<AnyMethod> method = method_of(request);
  const bool primal = method && is_primal(*method);
  const bool has_state = request.solver == "dual" || request.solver == "pegasos";
  const std::string name = all_classes_at_once(request) ? request.multiclass : request.solver;
  if (primal && request.keep_state)
    fail(ErrorKind::usage, "{} needs no state: --warm MODEL goes on from the model itself; leave out --keep-state",
         name);
  if (!primal && !has_state && (request.keep_state || !request.options.warm.empty()))
    fail(ErrorKind::usage,
         "{} has nothing to go on from: --keep-state is for --solver dual and pegasos, --warm for them, newton, "
         "primal and cmls",
         name);
}

// As the solvers themselves would, but before packing.
void check_loss(const TrainRequest& request) {
  const std::optional<AnyMethod> method = method_of(request);
  if (request.solver == "indexed") {
    if (std::holds_alternative<Logistic>(request.options.loss))
      fail(ErrorKind::usage,
           "indexed is for hinge and squared-hinge: with logistic loss every row matters, and no index can leave any "
           "out");
    if (request.indexed.block_solver == BlockSolver::newton &&
        !std::holds_alternative<SquaredHinge>(request.options.loss))
      fail(ErrorKind::usage, "--block-solver newton needs --loss squared-hinge: the hinge has no curvature");
  }
  if (!method || !is_primal(*method)) return;
  if (std::holds_alternative<Hinge>(request.options.loss))
    fail(ErrorKind::usage,
         "{} needs a smooth loss, and the hinge has a corner: use --loss squared-hinge, or --solver dual",
         request.solver);
  if (request.solver != "cmls") return;
  if (std::holds_alternative<Logistic>(request.options.loss))
    fail(ErrorKind::usage, "cmls is for squared-hinge: use --solver primal with --loss logistic");
  if (request.order && *request.order != ColumnOrder::cyclic && *request.order != ColumnOrder::permuted)
    fail(ErrorKind::usage,
         "cmls goes over features in --order cyclic or permuted: --order once and online are for primal");
}

// An option that would be ignored is refused: whoever gave it expects something of it.
void check_options(const TrainRequest& request, const CLI::App& command) {
  if (all_classes_at_once(request)) {
    if (command.count("--loss") > 0 && !std::holds_alternative<Hinge>(request.options.loss))
      fail(ErrorKind::usage, "--multiclass crammer-singer has a hinge loss of its own: leave out --loss {}",
           name_of(request.options.loss));
    if (request.options.positive)
      fail(ErrorKind::usage, "--multiclass crammer-singer tells all labels apart: leave out --positive {}",
           *request.options.positive);
    if (command.count("--solver") > 0 && request.solver != "dual")
      fail(ErrorKind::usage, "--multiclass crammer-singer is a solver of its own: leave out --solver");
    for (const OwnOption& option : kOwnOptions)
      if (command.count(option.name) > 0)
        fail(ErrorKind::usage, "--multiclass crammer-singer is a solver of its own: leave out {}", option.name);
  }
  for (const OwnOption& option : kOwnOptions)
    if (command.count(option.name) > 0 && !option.is_for(request.solver))
      fail(ErrorKind::usage, "{} is for --solver {}{}, and {} has no such choice: leave it out", option.name,
           option.solvers[0], option.solvers[1].empty() ? "" : fmt::format(" and {}", option.solvers[1]),
           request.solver.empty() ? "the default" : request.solver);
  for (const char* option : {"--blocks", "--block-order"})
    if (request.dual.schedule != Schedule::fixed && command.count(option) > 0)
      fail(ErrorKind::usage, "{} needs --schedule fixed: other blocks are drawn anew for each pass", option);
  check_state_options(request);
  if (request.options.calibrate > 0 && std::holds_alternative<Logistic>(request.options.loss))
    fail(ErrorKind::usage, "--calibrate is for hinge losses: a logistic model has probabilities of its own");
  check_loss(request);
  TrainOptions options = request.options;
  options.choose_method = !method_of(request);
  options.solve.method = method_of(request).value_or(Dual{});
  check_truncation(options, request.keep_state);
  if (request.solver == "pegasos" && std::holds_alternative<Logistic>(request.options.loss))
    fail(ErrorKind::usage, "pegasos is for hinge and squared-hinge: use --solver dual with --loss logistic");
}

// What --warm goes on from. A run that was interrupted may have it in its checkpoint already.
void check_warm(const TrainRequest& request) {
  if (request.options.warm.empty() || path_kind(request.checkpoint_folder()) == PathKind::directory) return;
  if (const std::optional<AnyMethod> method = method_of(request); method && is_primal(*method))
    ModelRows(request.options.warm);
  else
    check_state(state_path(request.options.warm));
}

}  // namespace

namespace {

void settle_solver(TrainRequest& request, const CLI::App& command) {
  if (!request.solver.empty() || all_classes_at_once(request)) return;
  const auto choose = [&](std::string_view solver, std::string why) {
    request.solver = solver;
    request.options.method_reason = std::move(why);
  };
  for (const OwnOption& option : kOwnOptions)
    if (command.count(option.name) > 0 && option.solvers[0] != "pegasos")
      choose(option.solvers[0], fmt::format("{} is for it", option.name));
  if (request.keep_state) choose("dual", "--keep-state keeps duals");
  if (!request.options.warm.empty()) choose("dual", "--warm goes on from duals");
}

// The index is for models of few rows, and those are what truncated losses make.
void settle_truncation(TrainRequest& request, const CLI::App& command) {
  if (request.solver == "indexed" && command.count("--truncate") == 0) request.options.truncate = kIndexedTruncation;
}

}  // namespace

std::optional<AnyMethod> method_of(const TrainRequest& request) {
  if (request.multiclass != "one-vs-rest" && !all_classes_at_once(request))
    fail(ErrorKind::usage, "--multiclass '{}' is not one-vs-rest or crammer-singer", request.multiclass);
  if (all_classes_at_once(request)) return CrammerSinger{};
  if (request.solver.empty()) return {};
  if (request.solver == "dual") return request.dual;
  if (request.solver == "newton") return Newton{};
  if (request.solver == "primal") return request.primal;
  if (request.solver == "cmls") return Cmls{.order = request.order.value_or(Cmls{}.order)};
  if (request.solver == "indexed") return request.indexed;
  if (request.solver == "pegasos") return request.pegasos;
  if (request.solver == "average") return Average{};
  if (request.solver == "subsample") return Subsample{};
  fail(ErrorKind::usage, "--solver '{}' is not dual, newton, primal, cmls, indexed, pegasos, average or subsample",
       request.solver);
}

std::string TrainRequest::checkpoint_folder(const std::string& purpose) const {
  if (!checkpoint.empty()) return checkpoint;
  std::string data = options.store.empty() ? options.inputs.front() : options.store;
  while (data.size() > 1 && data.back() == '/') data.pop_back();
  // Beside the directory, not in it.
  const std::string name = data.substr(data.find_last_of('/') + 1);
  if (name == "." || name == "..") data = std::filesystem::weakly_canonical(data).string();
  if (data == "-") fail(ErrorKind::usage, "standard input is packed before training: say where with --store DIR");
  return data + "." + purpose + ".checkpoint";
}

namespace {

void check_choices(TrainRequest& request, const CLI::App& command) {
  settle_solver(request, command);
  settle_truncation(request, command);
  method_of(request);
  check_options(request, command);
}

void check_outputs(const TrainRequest& request) {
  std::vector<std::string> read = request.options.inputs;
  read.insert(read.end(), request.options.test.begin(), request.options.test.end());
  read.push_back(request.options.pack.weights);
  // A model may be the start of its own successor.
  if (request.model.empty() || !same_file(request.options.warm, request.model)) read.push_back(request.options.warm);
  Outputs outputs(read);
  if (!request.model.empty()) outputs.add_model(request.model, request.keep_state);
  if (!request.trace.empty()) outputs.add_trace(request.trace);
  if (!request.options.pack.rejects.empty()) outputs.add_text(request.options.pack.rejects, "--rejects");
  if (!request.checkpoint.empty()) outputs.add_directory(request.checkpoint, "--checkpoint");
  const std::string& input = request.options.inputs.front();
  if (!request.options.store.empty() || !is_store(input)) {
    const std::string store = request.options.store.empty() ? input + ".linblock" : request.options.store;
    const char* option = request.options.store.empty() ? "INPUT.linblock" : "--store";
    outputs.add_directory(store, option);
    outputs.add_directory(partial_path(store), option);
  }
}

}  // namespace

void check_learning(TrainRequest& request, const CLI::App& command) {
  check_choices(request, command);
  check_outputs(request);
}

void check_request(TrainRequest& request, const CLI::App& command) {
  if (request.model.empty()) fail(ErrorKind::usage, "--output is empty: name the model's file");
  check_choices(request, command);
  check_outputs(request);
  check_test_inputs(request.options.test);
  check_warm(request);
}

}  // namespace linblock::cli
