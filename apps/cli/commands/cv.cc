#include "base/bytes.h"
#include "base/file.h"
#include "cli/learning.h"
#include "cli/show/evaluation.h"
#include "cli/show/print_json.h"
#include "cli/show/verdict.h"
#include "learn/checkpoint_directory.h"
#include "learn/cross_validate.h"

namespace linblock::cli {

namespace {

void print_json(const CrossValidation& result, double seconds) {
  Json json = {{"metric", name_of(result.metric)}, {"value", result.value.mean}, {"deviation", result.value.deviation}};
  json["metric_baseline"] = result.baseline;
  json["folds"] = Json::array();
  for (const FoldResult& fold : result.folds) {
    Json item = {{"rows", fold.rows}, {"accuracy", fold.rows > 0 ? Json(fold.accuracy()) : Json(nullptr)}};
    item["value"] = fold.value ? Json(*fold.value) : Json(nullptr);
    if (fold.auc) item["auc"] = *fold.auc;
    if (!fold.learned_without.empty()) item["learned_without"] = fold.learned_without;
    json["folds"].push_back(item);
  }
  json.update(evaluation_json(result.pooled));
  json["accuracy"] = result.accuracy().mean;
  json.update(summary_json(result.info, result.summary, result.pack_seconds, seconds));
  json["groups"] = result.groups;
  print_line(json);
}

void print_text(const CrossValidation& result) {
  for (size_t i = 0; i < result.folds.size(); ++i) {
    const FoldResult& fold = result.folds[i];
    if (fold.rows == 0) {
      fmt::print("fold {:>3}  no rows\n", i + 1);
      continue;
    }
    fmt::print("fold {:>3}  accuracy {} ({} of {})", i + 1, percent(fold.accuracy()), grouped(fold.correct),
               grouped(fold.rows));
    if (fold.auc) fmt::print("  AUC {:.5f}", *fold.auc);
    if (result.metric != Metric::accuracy && result.metric != Metric::auc)
      fmt::print("  {} {}", words_of(result.metric), fold.value ? metric_text(result.metric, *fold.value) : "none");
    fmt::print("\n");
  }
  fmt::print("mean      {} {}, standard deviation {}\n\nall folds together:\n", words_of(result.metric),
             metric_text(result.metric, result.value.mean), deviation_text(result.metric, result.value.deviation));
  print_evaluation(result.pooled);
}

void run_cv(TrainRequest& request, const FoldOptions& folds, Session& session) {
  const Stopwatch clock;
  check_learning(request);
  const std::string checkpoint = request.checkpoint_folder("cv");
  const Context context = prepare(request, checkpoint, session);
  TrainingView watching(request, context, session);
  CheckpointDirectory directory(checkpoint, !request.checkpoint.folder.empty());
  const CrossValidation result = cross_validate(request.options, folds, context, watching.observer());
  directory.forget();
  const double seconds = clock.seconds();
  for (size_t i = 0; i < result.folds.size(); ++i)
    for (const int32_t label : result.folds[i].learned_without)
      session.terminal.say(
          fmt::format("fold {} holds out all rows with label {}, so its model has never seen one: use fewer folds or "
                      "another --seed",
                      i + 1, result.pooled.label_names.show(label)));
  say_result(result.summary, request, session.terminal, seconds);
  // Of accuracy: all folds together, each row once.
  warn_if_useless(result.metric, result.metric == Metric::accuracy ? result.pooled.accuracy() : result.value.mean,
                  result.baseline, session.terminal);
  if (session.json)
    print_json(result, seconds);
  else
    print_text(result);
  check_converged(result.summary, request);
}

}  // namespace

void add_cv(Parser& parser, Session& session) {
  Command command = parser.add("cv", "Cross-validation: how good such a model is on rows it has not seen");
  if (!command.wanted()) return;
  auto request = std::make_shared<TrainRequest>();
  auto options = std::make_shared<FoldOptions>();
  add_learning_options(command, *request, session);
  command.settings(settings_of(*options), "Folds");
  command.examples(
      "  linblock cv train.svm\n"
      "  linblock cv train.store --folds 10 --loss hinge --cost 0.5\n"
      "  linblock cv rare.store --metric f1\n\n"
      "All models are trained together: each block of rows is read once for all of them. A row's fold depends on\n"
      "its number and --seed alone.");
  command.run([request, options, &session] { run_cv(*request, *options, session); });
}

}  // namespace linblock::cli
