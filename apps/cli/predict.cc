#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "learn/evaluate.h"

namespace linblock::cli {

namespace {

constexpr size_t kMostTabled = 20;  // classes: more do not fit a screen

struct PredictRequest {
  std::string model;
  std::vector<std::string> inputs;
  std::string output;
  bool scores = false;
  bool probability = false;
  uint64_t memory_bytes = 0;
};

void append_number(double number, std::string& to) {
  std::array<char, 40> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  to.append(digits.data(), end);
}

void run_predict(const PredictRequest& request, Session& session) {
  constexpr size_t kPiece = size_t{256} << 10;
  const Model model = load_model(request.model);
  if (request.probability && !model.has_probability())
    fail(ErrorKind::usage,
         "--probability needs a logistic or a calibrated model, and '{}' is {} alone: train with --loss logistic or "
         "with --calibrate",
         request.model, model.solver_type);
  File file = request.output.empty() ? File::standard_output() : File::create(request.output);
  std::string lines;
  const auto flush = [&] {
    file.write_next({reinterpret_cast<const unsigned char*>(lines.data()), lines.size()});
    lines.clear();
  };
  if (request.probability) {
    lines = "labels";
    for (const int32_t label : model.labels) lines += fmt::format(" {}", label);
    lines += '\n';
  }
  std::vector<double> shares(model.labels.size());
  const auto write = [&](const Decision& decision) {
    lines += std::to_string(decision.predicted);
    if (request.scores)
      for (const double score : decision.decisions) {
        lines += ' ';
        append_number(score, lines);
      }
    if (request.probability) {
      model.probabilities(decision.decisions, shares);
      for (const double share : shares) {
        lines += ' ';
        append_number(share, lines);
      }
    }
    lines += '\n';
    if (lines.size() >= kPiece) flush();
  };
  ProgressBar bar(session.terminal, "predicting");
  const ApplyReport report = apply_model(model, request.inputs, request.memory_bytes, write, reading(bar, session));
  bar.finish();
  flush();
  file.close();
  if (report.unknown_features > 0)
    session.terminal.say(fmt::format("{} nonzeros belong to features that the model does not know, and were ignored",
                                     grouped(report.unknown_features)));
  if (!request.output.empty())
    session.terminal.say(fmt::format("wrote {} predictions to {}", grouped(report.rows), request.output));
}

void print_json(const Evaluation& result) {
  nlohmann::ordered_json classes = nlohmann::ordered_json::object();
  for (const auto& [label, quality] : result.classes)
    classes[std::to_string(label)] = {
        {"rows", quality.rows}, {"precision", quality.precision()}, {"recall", quality.recall()}, {"f1", quality.f1()}};
  nlohmann::ordered_json confusion = nlohmann::ordered_json::array();
  for (const auto& [pair, rows] : result.confusion)
    confusion.push_back({{"label", pair.first}, {"predicted", pair.second}, {"rows", rows}});
  nlohmann::ordered_json json = {{"rows", result.rows},
                                 {"accuracy", result.accuracy()},
                                 {"macro_f1", result.macro_f1()},
                                 {"per_class", classes},
                                 {"confusion", confusion}};
  json["auc"] = result.auc ? nlohmann::ordered_json(*result.auc) : nlohmann::ordered_json(nullptr);
  json["log_loss"] = result.log_loss ? nlohmann::ordered_json(*result.log_loss) : nlohmann::ordered_json(nullptr);
  fmt::print("{}\n", json.dump());
}

// True labels down, predicted ones across.
void print_confusion(const Evaluation& result) {
  size_t width = 9;
  for (const auto& [label, quality] : result.classes)
    width = std::max({width, grouped(quality.rows).size(), std::to_string(label).size()});
  fmt::print("\n{:>11} {}\n{:>11}", "", "predicted", "label");
  for (const auto& [label, quality] : result.classes) fmt::print(" {:>{}}", label, width);
  fmt::print("\n");
  for (const auto& [label, quality] : result.classes) {
    fmt::print("{:>11}", label);
    for (const auto& [predicted, ignored] : result.classes) {
      const auto rows = result.confusion.find({label, predicted});
      fmt::print(" {:>{}}", grouped(rows == result.confusion.end() ? 0 : rows->second), width);
    }
    fmt::print("\n");
  }
}

void print_text(const Evaluation& result) {
  fmt::print("accuracy {:.4f}% ({} of {})\n", 100 * result.accuracy(), grouped(result.correct), grouped(result.rows));
  fmt::print("macro F1 {:.4f}%\n", 100 * result.macro_f1());
  if (result.auc) fmt::print("AUC      {:.5f}\n", *result.auc);
  if (result.log_loss) fmt::print("log-loss {:.5f}\n", *result.log_loss);
  fmt::print("{:>11} {:>10} {:>10} {:>10} {:>10}\n", "label", "rows", "precision", "recall", "F1");
  for (const auto& [label, quality] : result.classes)
    fmt::print("{:>11} {:>10} {:>9.2f}% {:>9.2f}% {:>9.2f}%\n", label, grouped(quality.rows), 100 * quality.precision(),
               100 * quality.recall(), 100 * quality.f1());
  if (result.classes.size() <= kMostTabled) print_confusion(result);
}

void run_evaluate(const PredictRequest& request, Session& session) {
  const Model model = load_model(request.model);
  ProgressBar bar(session.terminal, "evaluating");
  const Evaluation result = evaluate(model, request.inputs, request.memory_bytes, reading(bar, session));
  bar.finish();
  if (result.report.unknown_features > 0)
    session.terminal.say(fmt::format("{} nonzeros belong to features that the model does not know, and were ignored",
                                     grouped(result.report.unknown_features)));
  if (session.json)
    print_json(result);
  else
    print_text(result);
}

}  // namespace

void add_predict(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("predict", "Apply a model to svmlight text");
  auto request = std::make_shared<PredictRequest>();
  command->add_option("MODEL", request->model, "A model of linblock or LIBLINEAR")->required()->type_name("");
  command->add_option("INPUT", request->inputs, "svmlight text, labels not needed; - is standard input")
      ->required()
      ->type_name("");
  command->add_option("-o,--output", request->output, "The file to write (default: standard output)")
      ->type_name("FILE");
  command->add_flag("--scores", request->scores, "Write the decision values behind each label");
  command->add_flag("--probability", request->probability, "Write probabilities (logistic and calibrated models)");
  add_memory_option(*command, request->memory_bytes);
  command->add_flag_callback(
      "-q,--quiet", [&session] { session.terminal.set_quiet(true); }, "Say nothing but errors");
  add_examples(*command,
               "  linblock predict model test.svm -o labels.txt\n"
               "  linblock predict model - --scores < new.svm\n"
               "  linblock predict model test.svm.gz --probability | head");
  command->callback([request, &session] { run_predict(*request, session); });
}

void add_evaluate(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("evaluate", "How good a model is on labelled text");
  auto request = std::make_shared<PredictRequest>();
  command->add_option("MODEL", request->model, "A model of linblock or LIBLINEAR")->required()->type_name("");
  command->add_option("INPUT", request->inputs, "svmlight text with labels")->required()->type_name("");
  add_memory_option(*command, request->memory_bytes);
  add_json_option(*command, session);
  command->add_flag_callback(
      "-q,--quiet", [&session] { session.terminal.set_quiet(true); }, "Say nothing but errors and the result");
  add_examples(*command,
               "  linblock evaluate model test.svm\n  linblock evaluate model test.svm --json | jq .accuracy");
  command->callback([request, &session] { run_evaluate(*request, session); });
}

}  // namespace linblock::cli
