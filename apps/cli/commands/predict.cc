#include <algorithm>
#include <charconv>

#include "base/bytes.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/commands/commands.h"
#include "cli/show/evaluation.h"
#include "cli/show/outputs.h"
#include "cli/show/print_json.h"
#include "learn/evaluate.h"

namespace linblock::cli {

namespace {

struct PredictRequest {
  std::string model;
  std::vector<std::string> inputs;
  std::string output;
  bool scores = false;
  bool probability = false;
  uint64_t memory_bytes = 0;
  Team team = 1;
};

void append_number(double number, std::string& to) {
  std::array<char, 40> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  to.append(digits.data(), end);
}

void say_ignored(uint64_t nonzeros, const Session& session) {
  if (nonzeros > 0)
    session.terminal.say(fmt::format("{} nonzeros belong to features that the model does not know, and were ignored",
                                     grouped(nonzeros)));
}

// Labels of another numbering look like a bad model.
void say_unknown_labels(const Model& model, const Evaluation& result, const Session& session) {
  uint64_t rows = 0;
  int32_t example = 0;
  for (const auto& [label, quality] : result.classes) {
    if (quality.rows == 0 || std::find(model.labels.begin(), model.labels.end(), label) != model.labels.end()) continue;
    rows += quality.rows;
    example = label;
  }
  if (rows > 0)
    session.terminal.say(
        fmt::format("{} rows have a label that the model does not know, such as {} (it knows {}), and count as wrong",
                    grouped(rows), result.label_names.show(example), model.label_names.list(model.labels, ", ")));
}

Model load(const std::string& path, const Session& session) {
  Model model = load_model(path);
  if (!model.warning.empty()) session.terminal.say("warning: " + model.warning);
  return model;
}

void run_predict(const PredictRequest& request, Session& session) {
  const Model model = load(request.model, session);
  if (request.probability && !model.has_probability())
    fail(ErrorKind::usage,
         "--probability needs a logistic or a calibrated model, and '{}' is {} alone: train with --loss logistic or "
         "with --calibrate",
         request.model, model.solver_type);
  if (!request.output.empty()) {
    std::vector<std::string> read = request.inputs;
    read.push_back(request.model);
    Outputs(read).add_text(request.output, "--output");
  }
  File file = request.output.empty() ? File::standard_output() : File::create_output(request.output);
  const auto write = [&](const std::string& text) {
    file.write_next({reinterpret_cast<const unsigned char*>(text.data()), text.size()});
  };
  if (request.probability) {
    write("labels " + model.label_names.list(model.labels, " ") + '\n');
  }
  const auto append = [&](const Decision& decision, std::string& to) {
    model.label_names.append(decision.predicted, to);
    if (request.scores)
      for (const double score : decision.decisions) {
        to += ' ';
        append_number(score, to);
      }
    if (request.probability) {
      std::vector<double> shares(model.labels.size());
      model.probabilities(decision.decisions, shares);
      for (const double share : shares) {
        to += ' ';
        append_number(share, to);
      }
    }
    to += '\n';
  };
  ProgressBar bar(session.terminal, "predicting");
  const ApplyReport report =
      predict(model, request.inputs, request.memory_bytes, request.team, append, write, reading(bar, session));
  bar.finish();
  file.close();
  say_ignored(report.unknown_features, session);
  if (!request.output.empty())
    session.terminal.say(fmt::format("wrote {} predictions to {}", grouped(report.rows), request.output));
}

void run_evaluate(const PredictRequest& request, Session& session) {
  const Model model = load(request.model, session);
  ProgressBar bar(session.terminal, "evaluating");
  const Evaluation result = evaluate(model, request.inputs, request.memory_bytes, reading(bar, session));
  bar.finish();
  say_ignored(result.report.unknown_features, session);
  say_unknown_labels(model, result, session);
  // A threshold that was chosen for rare labels costs accuracy on purpose.
  if (model.threshold)
    warn_if_useless(Metric::balanced_accuracy, result.balanced_accuracy(), 1.0 / 2, session.terminal);
  else
    warn_if_useless(result.accuracy(), result.baseline(), session.terminal);
  if (session.json)
    print_line(evaluation_json(result));
  else
    print_evaluation(result);
}

}  // namespace

void add_predict(Parser& parser, Session& session) {
  Command command = parser.add("predict", "Apply a model to svmlight text or a store");
  if (!command.wanted()) return;
  auto request = std::make_shared<PredictRequest>();
  command.argument("MODEL", "A model of linblock or LIBLINEAR", request->model);
  command.arguments("INPUT", "svmlight text, plain or compressed, labels not needed; - is standard input; or one store",
                    request->inputs);
  command.option("-o,--output", "FILE", "The file to write (default: standard output)", request->output);
  command.flag("--scores", "Write the decision values behind each label", request->scores);
  command.flag("--probability", "Write probabilities (logistic and calibrated models)", request->probability);
  add_memory_option(command, request->memory_bytes);
  add_threads_option(command, request->team);
  add_quiet_option(command, session);
  command.examples(
      "  linblock predict model test.svm -o labels.txt\n"
      "  linblock predict model - --scores < new.svm\n"
      "  linblock predict model test.svm.gz --probability | head\n"
      "  linblock predict model test.store -o labels.txt");
  command.run([request, &session] { run_predict(*request, session); });
}

void add_evaluate(Parser& parser, Session& session) {
  Command command = parser.add("evaluate", "How good a model is on labeled text or a store");
  if (!command.wanted()) return;
  auto request = std::make_shared<PredictRequest>();
  command.argument("MODEL", "A model of linblock or LIBLINEAR", request->model);
  command.arguments("INPUT", "svmlight text with labels, plain or compressed; - is standard input; or one store",
                    request->inputs);
  add_memory_option(command, request->memory_bytes);
  add_json_option(command, session);
  add_quiet_option(command, session, "Print errors and the result only");
  command.examples("  linblock evaluate model test.svm\n  linblock evaluate model test.store --json | jq .accuracy");
  command.run([request, &session] { run_evaluate(*request, session); });
}

}  // namespace linblock::cli
