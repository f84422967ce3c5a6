#include "learn/tune.h"

#include "base/file.h"
#include "cli/learning.h"
#include "cli/numbers.h"
#include "learn/stages.h"

namespace linblock::cli {

namespace {

struct TuneRequest {
  TrainRequest train;
  uint32_t folds = 5;
  std::optional<CostRange> costs;
};

void print_json(const Tuning& tuning, const std::optional<TrainReport>& final, double seconds) {
  using Json = nlohmann::ordered_json;
  const TunedCost& best = tuning.costs[tuning.best];
  Json json = {{"best_cost", best.cost}, {"accuracy", best.accuracy}, {"deviation", best.deviation}};
  json["costs"] = Json::array();
  for (const TunedCost& one : tuning.costs) {
    json["costs"].push_back({{"cost", one.cost},
                             {"accuracy", one.accuracy},
                             {"deviation", one.deviation},
                             {"passes", one.passes},
                             {"seconds", one.seconds}});
    if (one.auc > 0) json["costs"].back()["auc"] = one.auc;
  }
  json["ended"] = tuning.ended.empty() ? Json(nullptr) : Json(tuning.ended);
  Summary all = tuning.summary;
  if (final) add_summary(final->summary, all);
  json.update(summary_json(tuning.info, all, tuning.pack_seconds, seconds));
  if (final) json["model"] = {{"passes", final->summary.passes}, {"gap", final->summary.largest_gap()}};
  fmt::print("{}\n", json.dump());
}

void print_text(const Tuning& tuning) {
  fmt::print("{:>14} {:>10} {:>10} {:>8} {:>9}\n", "cost", "accuracy", "deviation", "passes", "seconds");
  for (size_t i = 0; i < tuning.costs.size(); ++i) {
    const TunedCost& one = tuning.costs[i];
    fmt::print("{:>14.6g} {:>9.2f}% {:>10.2f} {:>8} {:>9.2f}{}\n", one.cost, 100 * one.accuracy, 100 * one.deviation,
               one.passes, one.seconds, i == tuning.best ? "  best" : "");
  }
}

// On all rows, with the best cost, from the mean of its folds.
TrainReport train_best(TuneRequest& request, Tuning& tuning, const Context& context, Watching& watching) {
  TrainRequest& train = request.train;
  train.options.cost = tuning.costs[tuning.best].cost;
  train.options.inputs = {tuning.store};
  Context last = context;
  last.checkpoint.path += ".final";
  TrainReport report = linblock::train(train.options, last, watching.observer(), false, std::move(tuning.start));
  save_or_explain(train, report, context.checkpoint.path);
  return report;
}

void run_tune(TuneRequest& request, const CLI::App& command, Session& session) {
  const Stopwatch clock;
  TrainRequest& train = request.train;
  const Terminal& terminal = session.terminal;
  if (train.model.empty())
    check_learning(train, command);
  else
    check_request(train, command);
  const std::string checkpoint = train.model.empty() ? train.checkpoint_folder("tune") : train.checkpoint_folder();
  const Context context = prepare(train, checkpoint, session);
  Watching watching(train, context, session, true);
  const CheckpointFolder folder(checkpoint);
  Tuning tuning =
      tune(train.options, request.folds, request.costs, context, watching.observer(), [&](const TunedCost& one) {
        terminal.say(fmt::format("cost {:.6g}: accuracy {:.2f}%, standard deviation {:.2f}", one.cost,
                                 100 * one.accuracy, 100 * one.deviation));
      });
  if (!tuning.ended.empty()) terminal.say("no larger costs were tried: " + tuning.ended);
  const double best = tuning.costs[tuning.best].cost;
  terminal.say(fmt::format("the best cost is {}{}", best, train.model.empty() ? "" : "; a model of all rows:"));
  std::optional<TrainReport> final;
  if (!train.model.empty()) final = train_best(request, tuning, context, watching);
  forget_checkpoint(checkpoint);
  const double seconds = clock.seconds();
  terminal.say(summary_words(final ? final->summary : tuning.summary, train.memory_bytes, seconds));
  if (session.json)
    print_json(tuning, final, seconds);
  else
    print_text(tuning);
  terminal.say(final ? fmt::format("next: linblock predict {} DATA.svm", train.model)
                     : fmt::format("next: linblock train {} -o MODEL --cost {}, with the other options of this command",
                                   tuning.store, best));
}

}  // namespace

void add_tune(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("tune", "Choose the cost by cross-validation along a path of costs");
  auto request = std::make_shared<TuneRequest>();
  const std::shared_ptr<TrainRequest> train(request, &request->train);
  add_learning_options(*command, train, session);
  command->remove_option(command->get_option("--cost"));
  command->add_option("-o,--output", train->model, "Train this model with the best cost, on all rows")
      ->type_name("MODEL");
  add_whole_number(*command, "--folds", request->folds, "How many parts, each held out once (default: 5)", kLeastFolds,
                   kMostFolds)
      ->type_name("V");
  command
      ->add_option_function<std::string>(
          "--costs", [request](const std::string& text) { request->costs = CostRange::parse(text); },
          "The costs to try (default: doubled, from the smallest useful one until it no longer helps)")
      ->type_name("FROM:TO:FACTOR");
  add_examples(
      *command,
      "  linblock tune train.svm -o model\n"
      "  linblock tune train.store --folds 10 --costs 0.01:100:10 --loss hinge\n\n"
      "All folds, and several costs, are trained in the same reading; each cost begins where a smaller one ended.");
  command->callback([request, command, &session] { run_tune(*request, *command, session); });
}

}  // namespace linblock::cli
