#include "learn/tune.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/file.h"
#include "cli/learning.h"
#include "cli/show/evaluation.h"
#include "cli/show/outputs.h"
#include "cli/show/print_json.h"
#include "cli/show/verdict.h"
#include "learn/checkpoint_directory.h"
#include "learn/stages.h"

namespace linblock::cli {

namespace {

struct TuneRequest {
  TrainRequest train;
  TuneOptions tuning;
};

void print_json(const Tuning& tuning, const std::optional<TrainReport>& final, double seconds) {
  const TunedCost& best = tuning.costs[tuning.best];
  Json json = {{"best_cost", best.cost},      {"metric", name_of(tuning.metric)},   {"value", best.value},
               {"deviation", best.deviation}, {"metric_baseline", tuning.baseline}, {"accuracy", best.accuracy}};
  json["costs"] = Json::array();
  for (size_t i = 0; i < tuning.costs.size(); ++i) {
    const TunedCost& cost = tuning.costs[i];
    Json folds = Json::array();
    for (size_t fold = 0; fold < tuning.folds(); ++fold) {
      const double value = tuning.fold_values[i * tuning.folds() + fold];
      folds.push_back(std::isnan(value) ? Json(nullptr) : Json(value));
    }
    json["costs"].push_back({{"cost", cost.cost},
                             {"accuracy", cost.accuracy},
                             {"value", cost.value},
                             {"folds", folds},
                             {"deviation", cost.deviation},
                             {"passes", cost.passes},
                             {"seconds", cost.seconds}});
    if (cost.auc > 0) json["costs"].back()["auc"] = cost.auc;
  }
  json["ended"] = tuning.ended.empty() ? Json(nullptr) : Json(tuning.ended);
  Summary all = tuning.summary;
  if (final) add_summary(final->summary, all);
  json.update(summary_json(tuning.info, all, tuning.pack_seconds, seconds));
  if (final) json["model"] = {{"passes", final->summary.passes}, {"certified_gap", final->summary.largest_gap()}};
  print_line(json);
}

// A line of the table as soon as it is known: tuning may take hours.
void print_cost(const TunedCost& cost, Metric metric, bool first) {
  const std::string name(words_of(metric));
  const size_t width = std::max<size_t>(10, name.size());
  if (first) fmt::print("{:>14} {:>{}} {:>10} {:>8} {:>9}\n", "cost", name, width, "deviation", "passes", "seconds");
  fmt::print("{:>14.6g} {:>{}} {:>10} {:>8} {:>9.2f}\n", cost.cost, metric_text(metric, cost.value), width,
             deviation_text(metric, cost.deviation), cost.passes, cost.seconds);
  std::fflush(stdout);
}

std::string best_words(const Tuning& tuning) {
  const TunedCost& best = tuning.costs[tuning.best];
  const auto equals = std::count_if(tuning.costs.begin(), tuning.costs.end(),
                                    [&](const TunedCost& cost) { return as_good(cost, best); });
  return fmt::format("the best cost is {}, with {} {}{}", best.cost, words_of(tuning.metric),
                     metric_text(tuning.metric, best.value),
                     equals > 1 ? fmt::format(": the smallest of {} that have it", equals) : "");
}

// Equally good by the folds' spread, and simpler.
std::string simpler_words(const Tuning& tuning) {
  const TunedCost& found = tuning.smallest_within_deviation();
  if (found.cost >= tuning.costs[tuning.best].cost) return "";
  return fmt::format("the smallest cost within one standard deviation of it is {}, with {} {}", found.cost,
                     words_of(tuning.metric), metric_text(tuning.metric, found.value));
}

// The command that trains what was tuned: on the store, so without what is said about text.
std::string train_command(const Command& command, const std::string& store, double cost) {
  constexpr std::array<std::string_view, 17> kNotForIt = {
      "--folds",        "--metric",  "--costs",       "--checkpoint", "--checkpoint-seconds",
      "--fresh",        "--store",   "--weights",     "--json",       "--require-converged",
      "--max-bad-rows", "--rejects", "--chunk-bytes", "--codec",      "--index-base",
      "--normalize",    "--names"};
  std::string words = fmt::format("linblock train {} -o MODEL --cost {}", store, cost);
  for (const auto& [flag, value] : command.given_values())
    if (std::find(kNotForIt.begin(), kNotForIt.end(), flag) == kNotForIt.end())
      words += value.empty() ? " " + flag : fmt::format(" {} {}", flag, value);
  return words;
}

// On all rows, with the best cost, from the mean of its folds.
TrainReport train_best(TuneRequest& request, Tuning& tuning, const Context& context, TrainingView& watching,
                       const Terminal& terminal) {
  TrainRequest& train = request.train;
  train.options.cost = tuning.costs[tuning.best].cost;
  train.options.inputs = {tuning.store};
  // At this cost the default may be another method, for which the folds' mean is no start.
  train.options.solve.method = tuning.method;
  train.options.choose_method = false;
  train.options.pack.names.clear();  // the store has them
  Context last = context;
  last.checkpoint.path += ".final";
  last.memory_bytes = tuning.memory_bytes;
  TrainReport report = linblock::train(train.options, last, watching.observer(), false, std::move(tuning.start));
  save_or_explain(train, context.team, report, context.checkpoint.path, terminal);
  return report;
}

void run_tune(TuneRequest& request, const Command& command, Session& session) {
  const Stopwatch clock;
  TrainRequest& train = request.train;
  const Terminal& terminal = session.terminal;
  if (train.model.empty())
    check_learning(train);
  else
    check_request(train);
  const std::string checkpoint = train.model.empty() ? train.checkpoint_folder("tune") : train.checkpoint_folder();
  const Context context = prepare(train, checkpoint, session);
  TrainingView watching(train, context, session, true);
  std::optional<FileLock> lock;
  if (!train.model.empty())
    lock.emplace(FileLock::acquire_temporary(model_lock_path(train.model), "tuning", train.model));
  CheckpointDirectory directory(checkpoint, !train.checkpoint.folder.empty());
  bool first = true;
  const Metric metric = request.tuning.metric;
  Tuning tuning = tune(train.options, request.tuning, context, watching.observer(), [&](const TunedCost& cost) {
    if (session.json)
      terminal.say(fmt::format("cost {:.6g}: {} {}, standard deviation {}", cost.cost, words_of(metric),
                               metric_text(metric, cost.value), deviation_text(metric, cost.deviation)));
    else
      print_cost(cost, metric, first);
    first = false;
  });
  if (!tuning.ended.empty()) terminal.say("no larger costs were tried: " + tuning.ended);
  const double best = tuning.costs[tuning.best].cost;
  if (session.json)
    terminal.say(best_words(tuning));
  else
    fmt::print("{}\n", best_words(tuning));
  std::fflush(stdout);
  if (const std::string simpler = simpler_words(tuning); !simpler.empty()) terminal.say(simpler);
  warn_if_useless(metric, tuning.costs[tuning.best].value, tuning.baseline, terminal);
  if (!train.model.empty()) terminal.say(fmt::format("training with cost {}, on all rows:", best));
  std::optional<TrainReport> final;
  if (!train.model.empty()) final = train_best(request, tuning, context, watching, terminal);
  directory.forget();
  const double seconds = clock.seconds();
  const Summary& summary = final ? final->summary : tuning.summary;
  say_result(summary, train, terminal, seconds);
  if (session.json) print_json(tuning, final, seconds);
  terminal.offer(
      final ? fmt::format("linblock predict {} DATA.svm ({} was trained with cost {})", train.model, train.model, best)
            : train_command(command, tuning.store, best));
  check_converged(summary, train);
}

}  // namespace

void add_tune(Parser& parser, Session& session) {
  Command command = parser.add("tune", "Choose the cost by cross-validation along a path of costs");
  if (!command.wanted()) return;
  auto request = std::make_shared<TuneRequest>();
  TrainRequest& train = request->train;
  add_learning_options(command, train, session, "cost");
  command.option("-o,--output", "MODEL", "Train this model with the best cost, on all rows", train.model);
  command.settings(settings_of(request->tuning), "Folds");
  command.examples(
      "  linblock tune train.svm -o model\n"
      "  linblock tune train.store --folds 10 --costs 0.01:100:10 --loss hinge\n"
      "  linblock tune train.store --costs 0.1,0.5,1\n"
      "  linblock tune rare.store --metric f1\n\n"
      "All folds, and several costs, are trained in the same reading; each cost begins where a smaller one ended.\n"
      "The best is the smallest of the costs with the best accuracy (or --metric), in hundredths of a percent.");
  command.run([request, command, &session] { run_tune(*request, command, session); });
}

}  // namespace linblock::cli
