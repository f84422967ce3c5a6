#include "learn/train.h"

#include "base/bytes.h"
#include "base/file.h"
#include "base/own_files.h"
#include "base/snapshot.h"
#include "cli/learning.h"
#include "cli/show/evaluation.h"
#include "cli/show/outputs.h"
#include "cli/show/print_json.h"
#include "cli/show/verdict.h"
#include "learn/checkpoint_directory.h"
#include "learn/state.h"
#include "learn/truncated_json.h"

namespace linblock::cli {

namespace {

void print_json(const TrainReport& report, double total_seconds) {
  Json json = summary_json(report.info, report.summary, report.pack_seconds, total_seconds);
  if (report.test)
    json["test"] = {
        {"accuracy", report.test->accuracy()}, {"rows", report.test->rows}, {"baseline", report.test->baseline}};
  if (report.threshold)
    json["threshold"] = {{"threshold", report.threshold->threshold},
                         {"metric", name_of(report.threshold->metric)},
                         {"value", report.threshold->value},
                         {"value_at_0", report.threshold->at_zero},
                         {"rows", report.threshold->rows}};
  const std::vector<Certificate>& certificates = report.summary.certificates;
  for (size_t i = 0; i < certificates.size() && certificates.size() > 1; ++i) {
    json["tasks"].push_back({{"label", report.model.label_names.json(report.model.labels[i])},
                             {"primal", certificates[i].primal},
                             {"dual", certificates[i].dual},
                             {"certified_gap", certificates[i].gap()}});
    add_truncated(report.summary, i, json["tasks"].back());
  }
  print_line(json);
}

}  // namespace

// What was trained is not lost with the disk that is full: it says how it is had without training from the beginning.
void save_or_explain(const TrainRequest& request, const Team& team, TrainReport& report, const std::string& state,
                     const Terminal& terminal) {
  try {
    const uint64_t left_out = save_trained(request.model, request.options, report, team);
    say_names_left_out(left_out, terminal);
    if (request.options.model_format == ModelFormat::text) say_for_liblinear(report.model, terminal);
  } catch (const PartlySaved&) {
    throw;
  } catch (const Error& error) {
    throw Error(error.kind(),
                fmt::format("{}\nThe model could not be saved: afterwards the same command {}", error.sentence(),
                            path_kind(state) == PathKind::file ? "resumes from its checkpoint" : "trains it again"),
                error.remedies());
  }
}

namespace {

void run_train(TrainRequest& request, Session& session) {
  const Terminal& terminal = session.terminal;
  const Stopwatch clock;
  const TrainOptions& options = request.options;
  check_request(request);
  if (request.state.keep_state) request.options.keep_state = state_path(request.model);
  const std::string checkpoint = request.checkpoint_folder();
  const Context context = prepare(request, checkpoint, session);
  TrainingView watching(request, context, session);
  std::optional<FileLock> lock;
  std::optional<CheckpointDirectory> directory;
  if (!request.dry_run) {
    lock.emplace(FileLock::acquire_temporary(model_lock_path(request.model), "training", request.model));
    directory.emplace(checkpoint, !request.checkpoint.folder.empty());
  }
  const bool resumes = path_kind(context.checkpoint.path) != PathKind::absent;
  TrainReport report;
  try {
    report = train(options, context, watching.observer(), request.dry_run);
  } catch (const Error& error) {
    // The same command would be refused again, and another one, which helps, must not find its checkpoint.
    if (error.kind() == ErrorKind::input && directory && !resumes) directory->forget();
    throw;
  }
  if (request.dry_run) {
    if (session.json) print_line(Json{{"plan", report.summary.plan.describe()}});
    return;
  }
  save_or_explain(request, context.team, report, context.checkpoint.path, terminal);
  if (!request.state.keep_state) forget_state(request.model);
  directory->forget();
  const double seconds = clock.seconds();
  watching.trace().end(report.summary, seconds, report.test ? std::optional(report.test->accuracy()) : std::nullopt,
                       context.team);
  say_result(report.summary, request, terminal, seconds);
  if (report.threshold) {
    const ChosenThreshold& chosen = *report.threshold;
    terminal.say(fmt::format("threshold {:.6g}: {} {} on {} held-out rows, {} with the threshold 0", chosen.threshold,
                             words_of(chosen.metric), metric_text(chosen.metric, chosen.value), grouped(chosen.rows),
                             metric_text(chosen.metric, chosen.at_zero)));
  }
  if (report.test) {
    terminal.say(fmt::format("test accuracy {} ({} rows), baseline {}", percent(report.test->accuracy()),
                             grouped(report.test->rows), percent(report.test->baseline)));
    if (!report.threshold) warn_if_useless(report.test->accuracy(), report.test->baseline, terminal);
  }
  if (session.json) print_json(report, seconds);
  terminal.offer(fmt::format("linblock predict {} DATA.svm", request.model));
  check_converged(report.summary, request);
}

}  // namespace

void add_train(Parser& parser, Session& session) {
  Command command = parser.add("train", "Train a linear classifier to a certified optimum");
  if (!command.wanted()) return;
  auto request = std::make_shared<TrainRequest>();
  TrainOptions& options = request->options;
  add_learning_options(command, *request, session);
  command.required("-o,--output", "MODEL", "The model to write", request->model);
  command.repeated("--test", "INPUT", "Text or a store to test on, after each pass and at the end", options.test);
  command.option("--trace", "FILE", "Write what each block and pass took and reached, as lines of JSON",
                 request->trace);
  command.settings(model_settings(*request), "Model", Command::Shown::in_all);
  command.flag("--dry-run", "Show the plan and stop", request->dry_run);
  command.examples(
      "  linblock train train.svm -o model\n"
      "  linblock train train.store -o model --loss hinge --cost 0.5 --memory 64M --tolerance 0.001\n"
      "  linblock train train.svm -o model --test test.svm --class-weight balanced\n"
      "  linblock train noisy.svm -o model --truncate 1\n"
      "  linblock train rare.svm -o model --threshold f1\n"
      "  linblock train days.store -o monday --keep-state\n"
      "  linblock append days.store tuesday.svm\n"
      "  linblock train days.store -o tuesday --warm monday --keep-state\n"
      "  linblock train days.store -o exact --warm tuesday --solver newton --tolerance 1e-6\n\n"
      "More than two classes are trained one-vs-rest, all in the same pass over the data.");
  command.run([request, &session] { run_train(*request, session); });
}

}  // namespace linblock::cli
